"""The fields of a queue as users write them, such as `deserved=cpu=4,memory=8Gi`, and the patch that sets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stromboli.api.go_scalars import boolean
from stromboli.api.name_rules import dns_subdomain_errors
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import Manifest

Path = tuple[str, ...]
TRAVERSE = "traverse"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LARGEST_WEIGHT = 65535
PLAIN_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage", "storage")
PLAIN_PREFIXES = ("hugepages-", "attachable-volumes-")
"""What Kubernetes itself calls resources; all others have a domain."""


def _bad(field: str, text: str, problem: str) -> Usage:
    return Usage(shown(f"{field}={text[:60]}: {problem}"))


def _number(least: int, most: int) -> Callable[[str, str], Any]:
    def read(field: str, text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 11 and least <= int(text) <= most):
            raise _bad(field, text, f"must be a number from {least} to {most}")
        return int(text)

    return read


def _switch(field: str, text: str) -> bool:
    value = boolean(text)
    if value is None:
        raise _bad(field, text, "must be true or false")
    return value


def _name(field: str, text: str) -> str:
    if errors := dns_subdomain_errors(text):
        raise _bad(field, text, f"no name of a queue: {errors[0]}")
    return text


def _strategy(field: str, text: str) -> str:
    if text != TRAVERSE:
        why = "the scheduler does not implement it; " if text == "fifo" else ""
        raise _bad(field, text, f"{why}must be {TRAVERSE}")
    return text


def _text(field: str, text: str) -> str:
    return text


def _names(field: str, text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def quantity(field: str, text: str) -> str:
    """An amount of a resource; its syntax is checked, the rest is the API server's."""
    try:
        exact(text)
    except QuantityError as error:
        raise _bad(field, text, f"{error}; write 4, 500m or 8Gi") from None
    return text


def resources(field: str, text: str) -> dict[str, str]:
    """`cpu=4,memory=8Gi` as a resource list."""
    amounts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        if not equals or not name or not amount:
            raise _bad(field, text, "write resources as cpu=4,memory=8Gi,nvidia.com/gpu=8")
        if name in amounts:
            raise _bad(field, text, f"{name} is given twice")
        check_resource(field, name)
        amounts[name] = quantity(f"{field}.{name}", amount)
    return amounts


def check_resource(field: str, name: str) -> None:
    """Nodes have no resource of a plain name but Kubernetes' own, so that an amount of it would mean nothing."""
    if "/" in name or name in PLAIN_RESOURCES or name.startswith(PLAIN_PREFIXES):
        return
    meant = "nvidia.com/gpu" if name.lower() in ("gpu", "gpus") else f"example.com/{name}"
    raise Usage(
        shown(f"{field}.{name}: no resource of Kubernetes; write it with its domain, such as {meant}")
    )


class QueueField(NamedTuple):
    """A field: where it is in the spec, how a text is read, what it means."""

    path: Path
    read: Callable[[str, str], Any]
    metavar: str
    help: str


FIELDS: dict[str, QueueField] = {
    "weight": QueueField(
        ("weight",), _number(1, LARGEST_WEIGHT), "N", "Its part of what is shared by weight."
    ),
    "capability": QueueField(
        ("capability",), resources, "RESOURCES", "The most it may use: cpu=4,memory=8Gi."
    ),
    "deserved": QueueField(
        ("deserved",), resources, "RESOURCES", "What it may use without being taken from."
    ),
    "guarantee": QueueField(
        ("guarantee", "resource"), resources, "RESOURCES", "What is kept free for it, used or not."
    ),
    "parent": QueueField(("parent",), _name, "NAME", "The queue above it."),
    "priority": QueueField(
        ("priority",), _number(0, 2**31 - 1), "N", "Goes before shares when queues are ordered."
    ),
    "reclaimable": QueueField(
        ("reclaimable",), _switch, "true|false", "Whether others may take from it: true or false."
    ),
    "dequeueStrategy": QueueField(
        ("dequeueStrategy",),
        _strategy,
        TRAVERSE,
        "traverse: a job that cannot start does not hold up the jobs after it. fifo is not implemented.",
    ),
    "type": QueueField(("type",), _text, "TEXT", "A name for its kind, which some plugins read."),
    "affinity.required": QueueField(
        ("affinity", "nodeGroupAffinity", REQUIRED),
        _names,
        "NAMES",
        "Node groups that its jobs must use: a,b.",
    ),
    "affinity.preferred": QueueField(
        ("affinity", "nodeGroupAffinity", PREFERRED), _names, "NAMES", "Node groups that its jobs should use."
    ),
    "antiAffinity.required": QueueField(
        ("affinity", "nodeGroupAntiAffinity", REQUIRED),
        _names,
        "NAMES",
        "Node groups that its jobs must not use.",
    ),
    "antiAffinity.preferred": QueueField(
        ("affinity", "nodeGroupAntiAffinity", PREFERRED),
        _names,
        "NAMES",
        "Node groups that its jobs should avoid.",
    ),
}
RESOURCE_FIELDS = ("capability", "deserved", "guarantee")


class FieldChange(NamedTuple):
    """A new value of a field, None to remove it."""

    path: Path
    value: Any


def changes_of(
    assignments: Sequence[str], flags: Mapping[str, str | None] | None = None
) -> list[FieldChange]:
    """What `field=value` and flags set; `field=` removes a field, `deserved.cpu=4` sets one resource of a list."""
    given = [tuple(text.partition("=")) for text in assignments]
    for text, (_, equals, _) in zip(assignments, given, strict=True):
        if not equals:
            raise Usage(shown(f"{text[:60]}: write FIELD=VALUE; fields are {', '.join(FIELDS)}"))
    pairs = [(name, value) for name, _, value in given]
    pairs += [(name, value) for name, value in (flags or {}).items() if value is not None]
    changes = [_change(name, value) for name, value in pairs]
    paths = [change.path for change in changes]
    for name, _ in pairs:
        if paths.count(_field(name)[0]) > 1:
            raise Usage(shown(f"{name[:60]} is given twice"))
    return changes


def _change(name: str, text: str) -> FieldChange:
    path, read = _field(name)
    if read is quantity and text:
        check_resource(name.removesuffix(f".{path[-1]}"), path[-1])
    return FieldChange(path, read(name, text) if text else None)


def _field(name: str) -> tuple[Path, Callable[[str, str], Any]]:
    """Where a field is, and how it is read; also one resource of a list."""
    plain = name.removeprefix("spec.").replace("dequeue-strategy", "dequeueStrategy")
    if plain in FIELDS:
        return FIELDS[plain].path, FIELDS[plain].read
    list_name, dot, resource = plain.partition(".")
    if dot and resource and list_name in RESOURCE_FIELDS:
        return (*FIELDS[list_name].path, resource), quantity
    raise Usage(shown(f"{name[:60]}: no field of a queue; there are {', '.join(FIELDS)}"))


def spec_patch(current: Manifest, changes: Sequence[FieldChange]) -> Manifest:
    """A merge patch of the spec; a list of resources that is set is set as a whole."""
    patch: Manifest = {}
    for change in changes:
        value = change.value
        if isinstance(value, dict):
            old = _at(current, change.path)
            removed = dict.fromkeys(old if isinstance(old, dict) else (), None)
            value = {**removed, **value}
        _set(patch, change.path, value)
    return patch


def spec_with(changes: Sequence[FieldChange]) -> Manifest:
    """The spec of a new queue."""
    spec: Manifest = {}
    for change in changes:
        if change.value is not None:
            _set(spec, change.path, change.value)
    return spec


def _at(manifest: Manifest, path: Path) -> Any:
    value: Any = manifest
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _set(target: Manifest, path: Path, value: Any) -> None:
    *parents, last = path
    for key in parents:
        target = target.setdefault(key, {})
    if isinstance(value, dict) and isinstance(target.get(last), dict):
        target[last] = {**target[last], **value}
    else:
        target[last] = value
