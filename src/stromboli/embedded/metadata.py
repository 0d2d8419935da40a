"""What every object says about itself: names and marks that the server sets, and what may not stand there."""

from __future__ import annotations

import random
import re
import time
import uuid
from typing import Any

from stromboli.embedded.errors import Cause, cause, required
from stromboli.embedded.kinds import Kind

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SEGMENT = re.compile(r"[^/%]+")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LARGEST_ANNOTATIONS = 256 * 1024
_NAMED_LIKE_LABELS = {"namespaces", "services"}
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name', or '123-abc')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character, and be no longer than 63 characters"
)


def now() -> str:
    """To the second, as objects have it."""
    return stamp(time.time())


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def name_from(base: str) -> str:
    """A name that probably nobody has yet."""
    return base[:_LONGEST_BASE] + "".join(random.choices(_LETTERS, k=5))


def born(kind: Kind, namespace: str, meta: dict[str, Any]) -> None:
    """Set what the server decides about a new object, whatever was asked for."""
    for mark in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        meta.pop(mark, None)
    if kind.namespaced:
        meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = now()
    meta.pop("generation", None)


def kept(meta: dict[str, Any], old: dict[str, Any]) -> None:
    """Put back what an update may not change."""
    for mark in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
        "name",
        "generateName",
    ):
        if mark in old:
            meta[mark] = old[mark]
        else:
            meta.pop(mark, None)
    meta.pop("selfLink", None)


def problems(kind: Kind, meta: dict[str, Any]) -> list[Cause]:
    """What is wrong with an object's metadata."""
    found = _name_problems(kind, meta.get("name"))
    for key, value in _mapping(meta, "labels", found).items():
        found += _key_problems("metadata.labels", key)
        if not isinstance(value, str) or len(value) > 63 or (value and not _QUALIFIED.fullmatch(value)):
            found.append(cause("metadata.labels", f'Invalid value: "{str(value)[:100]}": {_VALUE_RULE}'))
    size = 0
    for key, value in _mapping(meta, "annotations", found).items():
        found += _key_problems("metadata.annotations", key.lower())
        size += len(key) + len(value) if isinstance(value, str) else 0
        if not isinstance(value, str):
            found.append(cause("metadata.annotations", f"Invalid value: {key}: must be a string"))
    if size > _LARGEST_ANNOTATIONS:
        message = f"Too long: may not be more than {_LARGEST_ANNOTATIONS} bytes"
        found.append(cause("metadata.annotations", message, "FieldValueTooLong"))
    found += _owner_problems(meta.get("ownerReferences") or ())
    for one in meta.get("finalizers") or ():
        if not isinstance(one, str) or _key_problems("", one):
            found.append(cause("metadata.finalizers", f'Invalid value: "{str(one)[:100]}": {_KEY_RULE}'))
    return found


def _name_problems(kind: Kind, name: Any) -> list[Cause]:
    if not isinstance(name, str) or not name:
        return [required("metadata.name", "name or generateName is required")]
    if kind.group == "rbac.authorization.k8s.io":
        if name in (".", "..") or not _SEGMENT.fullmatch(name):
            return [cause("metadata.name", f"Invalid value: \"{name[:300]}\": may not contain '/' or '%'")]
    elif kind.id in _NAMED_LIKE_LABELS:
        if not LABEL.fullmatch(name):
            return [cause("metadata.name", f'Invalid value: "{name[:300]}": {_LABEL_RULE}')]
    elif len(name) > 253 or not SUBDOMAIN.fullmatch(name):
        return [cause("metadata.name", f'Invalid value: "{name[:300]}": {_SUBDOMAIN_RULE}')]
    return []


def _mapping(meta: dict[str, Any], name: str, found: list[Cause]) -> dict[str, Any]:
    value = meta.get(name) or {}
    if isinstance(value, dict):
        return value
    found.append(cause(f"metadata.{name}", "Invalid value: must be a map of strings"))
    return {}


def _key_problems(field: str, key: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    good = len(name) <= 63 and bool(_QUALIFIED.fullmatch(name))
    if slash:
        good = good and len(prefix) <= 253 and bool(SUBDOMAIN.fullmatch(prefix))
    return [] if good else [cause(field, f'Invalid value: "{key[:300]}": {_KEY_RULE}')]


def _owner_problems(owners: Any) -> list[Cause]:
    found: list[Cause] = []
    if not isinstance(owners, list | tuple):
        return [cause("metadata.ownerReferences", "Invalid value: must be a list")]
    for index, one in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(one, dict) or not isinstance(one.get(field), str) or not one[field]:
                found.append(required(f"metadata.ownerReferences[{index}].{field}", "must not be empty"))
    if sum(bool(isinstance(one, dict) and one.get("controller")) for one in owners) > 1:
        message = "Invalid value: Only one reference can have Controller set to true"
        found.append(cause("metadata.ownerReferences", message))
    return found
