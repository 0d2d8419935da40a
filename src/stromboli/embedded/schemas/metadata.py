"""Metadata that every object has: names, labels, annotations, owners and finalizers, as Kubernetes wants them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from stromboli.embedded.schemas.problems import Problem, invalid, required, too_long

MAX_ANNOTATIONS = 256 * 1024
MAX_NAME = 253
MAX_LABEL = 63

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch

_ENDS = "must start and end with an alphanumeric character"
_NOT_LABEL = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_NOT_SUBDOMAIN = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_OF = f"consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
_NAME_EXAMPLE = f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
_NOT_VALUE = (
    f"a valid label must be an empty string or {_OF} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_QUALIFIED})?')"
)

_STANDARD_FINALIZERS = (
    "kubernetes",
    "orphan",
    "foregroundDeletion",
    "customresourcecleanup.apiextensions.k8s.io",
)
_LABEL_NAMES = frozenset({"Namespace", "Service"})
_PATH_NAMES = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


@lru_cache(maxsize=65536)
def label_errors(text: str) -> tuple[str, ...]:
    """What keeps a text from being an RFC 1123 label, such as the name of a container."""
    return _errors(text, _is_label(text) is not None, _NOT_LABEL, MAX_LABEL)


@lru_cache(maxsize=65536)
def subdomain_errors(text: str) -> tuple[str, ...]:
    """What keeps a text from being an RFC 1123 subdomain, as most names are."""
    return _errors(text, _is_subdomain(text) is not None, _NOT_SUBDOMAIN, MAX_NAME)


def _errors(text: str, fits: bool, otherwise: str, limit: int) -> tuple[str, ...]:
    long = (f"must be no more than {limit} bytes",) if len(text.encode()) > limit else ()
    return long if fits else (*long, otherwise)


def path_errors(text: str) -> tuple[str, ...]:
    """What keeps a text from standing in a path: names of roles may contain almost everything else."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{one}'" for one in "/%" if one in text)


def name_errors(kind: str) -> Callable[[str], tuple[str, ...]]:
    """The rule for the names of a kind."""
    if kind in _LABEL_NAMES:
        return label_errors
    return path_errors if kind in _PATH_NAMES else subdomain_errors


@lru_cache(maxsize=65536)
def key_errors(key: str) -> tuple[str, ...]:
    """What keeps a text from being the key of a label: a name, with a domain and a slash before it or without."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key must {_OF} {_NAME_EXAMPLE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    errors: list[str] = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += [f"prefix part {one}" for one in subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > MAX_LABEL:
        errors.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not _is_qualified(name):
        errors.append(f"name part must {_OF} {_NAME_EXAMPLE}")
    return tuple(errors)


@lru_cache(maxsize=65536)
def value_errors(value: str) -> tuple[str, ...]:
    """What keeps a text from being the value of a label."""
    fits = not value or _is_qualified(value) is not None
    return _errors(value, fits, _NOT_VALUE, MAX_LABEL)


def label_problems(labels: dict[str, str], path: str) -> Iterator[Problem]:
    """Problems of labels and of selectors that name labels."""
    for key, value in labels.items():
        for error in key_errors(key):
            yield invalid(path, key, error)
        for error in value_errors(value):
            yield invalid(path, value, error)


def metadata_problems(metadata: dict[str, Any], kind: str) -> list[Problem]:
    """What is wrong with the metadata of an object whose types are right and whose name has been made, if need be."""
    return list(_metadata_problems(metadata, name_errors(kind)))


def _metadata_problems(
    metadata: dict[str, Any], name_errors: Callable[[str], tuple[str, ...]]
) -> Iterator[Problem]:
    name = metadata.get("name")
    prefix = metadata.get("generateName")
    if prefix:
        for error in name_errors(prefix.rstrip("-.") or prefix):
            yield invalid("metadata.generateName", prefix, error)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for error in name_errors(name):
            yield invalid("metadata.name", name, error)
    if labels := metadata.get("labels"):
        yield from label_problems(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        yield from _annotation_problems(annotations)
    if owners := metadata.get("ownerReferences"):
        yield from _owner_problems(owners)
    for place, one in enumerate(metadata.get("finalizers") or ()):
        if "/" not in one and one not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{place}]", one, why)


def _annotation_problems(annotations: dict[str, str]) -> Iterator[Problem]:
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        for error in key_errors(key.lower()):
            yield invalid("metadata.annotations", key, error)
    if size > MAX_ANNOTATIONS:
        yield too_long("metadata.annotations", MAX_ANNOTATIONS)


def _owner_problems(owners: list[dict[str, Any]]) -> Iterator[Problem]:
    path = "metadata.ownerReferences"
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                what = "version must not be empty" if key == "apiVersion" else "must not be empty"
                yield invalid(f"{path}.{key}", "", what)
    leaders = [owner for owner in owners if owner.get("controller")]
    if len(leaders) > 1:
        names = " and ".join(str(one.get("name")) for one in leaders[:2])
        yield invalid(
            path, names, f"Only one reference can have Controller set to true. Found true in {names}"
        )
