"""Validation of metadata: names, labels, annotations, owners and finalizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stromboli.api.name_rules import (
    dns_label_errors,
    dns_subdomain_errors,
    label_value_errors,
    qualified_name_errors,
)
from stromboli.api.schemas.schema_problems import Problem, invalid, required, too_long

MAX_ANNOTATIONS = 256 * 1024

_STANDARD_FINALIZERS = (
    "kubernetes",
    "orphan",
    "foregroundDeletion",
    "customresourcecleanup.apiextensions.k8s.io",
)
_LABEL_NAMES = frozenset({"Namespace", "Service"})
_PATH_NAMES = frozenset({"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})


def path_errors(text: str) -> tuple[str, ...]:
    """Why this is not a path segment name: names of roles may contain almost everything else."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{character}'" for character in "/%" if character in text)


def name_errors(kind: str) -> Callable[[str], tuple[str, ...]]:
    """The rule for the names of a kind."""
    if kind in _LABEL_NAMES:
        return dns_label_errors
    return path_errors if kind in _PATH_NAMES else dns_subdomain_errors


def label_problems(labels: dict[str, str], path: str) -> Iterator[Problem]:
    """Problems of labels and of selectors that name labels."""
    for key, value in labels.items():
        for error in qualified_name_errors(key):
            yield invalid(path, key, error)
        for error in label_value_errors(value):
            yield invalid(path, value, error)


def metadata_problems(metadata: dict[str, Any], kind: str, builtin: bool = True) -> Iterator[Problem]:
    """What is wrong with the metadata of an object whose types are right and whose name was generated, if need be."""
    errors_of = name_errors(kind)
    name = metadata.get("name")
    prefix = metadata.get("generateName")
    if prefix:
        for error in errors_of(prefix.rstrip("-.") or prefix):
            yield invalid("metadata.generateName", prefix, error)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        for error in errors_of(name):
            yield invalid("metadata.name", name, error)
    if labels := metadata.get("labels"):
        yield from label_problems(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        yield from annotation_problems(annotations, "metadata.annotations")
    if owners := metadata.get("ownerReferences"):
        yield from _owner_problems(owners)
    for index, finalizer in enumerate(metadata.get("finalizers") or () if builtin else ()):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", finalizer, detail)


def annotation_problems(annotations: dict[str, str], path: str) -> Iterator[Problem]:
    """Problems of annotations: their keys, and their size in total."""
    size = 0
    for key, value in annotations.items():
        size += len(key.encode(errors="replace")) + len(value.encode(errors="replace"))
        for error in qualified_name_errors(key.lower()):
            yield invalid(path, key, error)
    if size > MAX_ANNOTATIONS:
        yield too_long(path, MAX_ANNOTATIONS)


def _owner_problems(owners: list[dict[str, Any]]) -> Iterator[Problem]:
    path = "metadata.ownerReferences"
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                message = "version must not be empty" if key == "apiVersion" else "must not be empty"
                yield invalid(f"{path}.{key}", "", message)
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        names = " and ".join(str(owner.get("name")) for owner in controllers[:2])
        yield invalid(
            path, names, f"Only one reference can have Controller set to true. Found true in {names}"
        )
