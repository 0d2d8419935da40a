"""Reads objects: decoded and checked. What replicas have in common, their spec, is decoded and checked once.

The key of a spec is its bytes without the name of the node, which alone tells the specs of replicas apart. That these
bytes are that name, whatever else the object holds, is proved by decoding the spec once with another name there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from stromboli.api.decoding import DECODE_ERRORS, Raw, decode_as, explain, without_nulls
from stromboli.api.errors import BadObject
from stromboli.api.object_checks import (
    SpecAmounts,
    check_metadata,
    check_object,
    check_pod_spec,
    check_pod_status,
)
from stromboli.api.pods import FINISHED
from stromboli.api.resources.quantity import INT64_MAX
from stromboli.api.resources.resource_lists import check_amounts
from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object, ObjectMeta, ResourceList
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod, PodSpec, PodStatus

MAX_SPECS = 1_000
"""Specs that are kept at a time."""
MAX_SPEC_BYTES = 16 * 1024
"""The size of a spec that is kept."""
MAX_NODE_NAMES = 50_000
"""Names of nodes that are kept at a time."""
MAX_LEFT_OUT = 16
"""Fields of a refused pod that are left out one by one before all but the most important ones are."""

Kind = TypeVar("Kind", bound=Object)

_NODE_NAME = re.compile(rb'"nodeName"\s*:\s*"([A-Za-z0-9.-]{1,253})"')
_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]+)\]")
_PLAIN_NAME = re.compile(rb"[A-Za-z0-9.-]{1,253}")


class _PodParts(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodStatus = msgspec.field(default_factory=PodStatus)


_read_parts = msgspec.json.Decoder(_PodParts).decode
_read_spec = msgspec.json.Decoder(PodSpec).decode
_copied: Callable[[PodSpec], PodSpec] = PodSpec.__copy__  # type: ignore[attr-defined]


class _KnownSpec(msgspec.Struct, gc=False):
    """A spec that passed the checks, and its bytes before and after the name of its node."""

    head: bytes
    tail: bytes
    spec: PodSpec
    amounts: SpecAmounts
    proved: bool | None = None
    """Whether the bytes between are the node's name; None until it is asked."""

    def is_proved(self) -> bool:
        if self.proved is None:
            name = "1" if self.spec.node_name == "0" else "0"
            self.proved = _read_spec(self.head + name.encode() + self.tail).node_name == name
        return self.proved


class ObjectReader:
    """Reads objects of all kinds. Pods that it returns may share parts of their specs, but not the spec itself."""

    def __init__(self) -> None:
        self._specs: dict[tuple[bytes, bytes], _KnownSpec] = {}
        self._last: _KnownSpec | None = None
        """Lists come sorted by name, so that replicas follow one another."""
        self._node_names: dict[bytes, str] = {}

    def read(self, kind: type[Kind], raw: Raw) -> Kind:
        """The object; BadObject if it is malformed or cannot be used."""
        if kind is Pod:
            return self._read_pod(raw)  # type: ignore[return-value]
        obj = decode_as(kind, raw)
        try:
            check_object(obj, memoryview(raw).nbytes)
        except BadObject as error:
            raise error.of(describe(obj)) from None
        return obj

    def _read_pod(self, raw: Raw) -> Pod:
        try:
            parts = _read_parts(raw)
            spec = bytes(parts.spec)
            known, node = self._find(spec)
            pod = Pod(
                parts.metadata, _read_spec(spec) if known is None else _copied(known.spec), parts.status
            )
        except DECODE_ERRORS:
            known, spec, pod = None, b"", decode_as(Pod, raw)
        try:
            check_metadata(pod, memoryview(raw).nbytes)
            if known is None:
                amounts = check_pod_spec(pod.spec)
                self._learn(spec, pod.spec, amounts)
            else:
                pod.spec.node_name, amounts = node, known.amounts
            check_pod_status(pod.status, amounts)
        except BadObject as error:
            raise error.of(describe(pod)) from None
        return pod

    def _find(self, spec: bytes) -> tuple[_KnownSpec | None, str]:
        """A known spec that is the same but for the node, and the name of the node."""
        known = self._last
        if known is None or not (spec.startswith(known.head) and spec.endswith(known.tail)):
            known = self._specs.get(_split(spec))
            if known is None:
                return None, ""
            self._last = known
        if not known.tail:
            return known if known.head == spec else None, ""
        name = spec[len(known.head) : -len(known.tail)]
        node = self._node_names.get(name) or self._node_name(name)
        return known if node and (known.proved or known.is_proved()) else None, node

    def _node_name(self, name: bytes) -> str:
        """The name of a node; empty if these bytes are more than a plain name."""
        if not _PLAIN_NAME.fullmatch(name):
            return ""
        if len(self._node_names) >= MAX_NODE_NAMES:
            self._node_names.clear()
        node = self._node_names[name] = name.decode()
        return node

    def _learn(self, spec: bytes, decoded: PodSpec, amounts: SpecAmounts) -> None:
        if not 0 < len(spec) <= MAX_SPEC_BYTES:
            return
        if len(self._specs) >= MAX_SPECS:
            self._specs.clear()
        key = _split(spec)
        self._specs[key] = _KnownSpec(*key, _copied(decoded), amounts)


def _split(spec: bytes) -> tuple[bytes, bytes]:
    """What is before and after the name of the node; all is before it if there is none."""
    name = _NODE_NAME.search(spec)
    return (spec, b"") if name is None else (spec[: name.start(1)], spec[name.end(1) :])


def usable_part(kind: type[Object], raw: Raw) -> Object | None:
    """What can be used of a refused object: `readable_part` of a pod, `countable_part` of a node."""
    if kind is Pod:
        return readable_part(raw)
    if kind is Node:
        with suppress(BadObject):
            return countable_part(decode_as(Node, raw))
    return None


def countable_part(node: Node) -> Node | None:
    """A refused node without the amounts that cannot be used; None if something else of it is wrong.

    Its taints, its labels and whether it is schedulable count as ever, and it offers less, never more.
    """
    status = node.status
    amounts = (_countable(status.allocatable), _countable(status.capacity))
    node = replace(node, status=replace(status, allocatable=amounts[0], capacity=amounts[1]))
    with suppress(BadObject):
        check_object(node)
        return node
    return None


def _countable(amounts: ResourceList) -> ResourceList:
    countable = {}
    for name, quantity in amounts.items():
        with suppress(BadObject):
            check_amounts({name: quantity}, "")
            countable[name] = quantity
    return countable


def readable_part(raw: Raw) -> Pod | None:
    """A refused pod without the fields that cannot be used, so that it still counts on its node.

    None if the pod has no node and neither has ended nor is being deleted: it must not be scheduled by a part of what
    it requests.
    """
    try:
        content = without_nulls(msgspec.json.decode(raw))
    except DECODE_ERRORS:
        return None
    if not _holds_or_ends(content):
        return None
    important = {part: _fields(content, part, fields) for part, fields in _MOST_IMPORTANT.items()}
    spec = _part(content, "spec")  # shared: what is left out of it stays left out
    for part in (content, {**important, "spec": spec}, important):
        pod = _without_mistakes(part)
        if pod is not None:
            return pod if _holds_or_ends(part) else None
    return None


def _without_mistakes(content: Any) -> Pod | None:
    """Leave out the fields that cannot be used; None if there are too many of them."""
    for _ in range(MAX_LEFT_OUT):
        try:
            pod = msgspec.convert(content, Pod)
            check_object(pod)
        except DECODE_ERRORS as error:
            _leave_out(content, explain(error, content)[0])
        except BadObject as error:
            if error.field == "spec.containers":
                _leave_out_large_amounts(content)
            else:
                _leave_out(content, error.field)
        else:
            return pod
    return None


def _holds_or_ends(content: Any) -> bool:
    return bool(
        _part(content, "spec", "nodeName")
        or _part(content, "metadata", "deletionTimestamp")
        or _part(content, "status", "phase") in FINISHED
    )


def _part(content: Any, *path: str) -> Any:
    for key in path:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _fields(content: Any, part: str, fields: tuple[str, ...]) -> dict[str, Any]:
    return {field: value for field in fields if (value := _part(content, part, field)) is not None}


_MOST_IMPORTANT = {
    "metadata": ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"),
    "spec": ("schedulerName", "nodeName"),
    "status": ("phase",),
}


def _leave_out(content: Any, field: str) -> None:
    """Remove the field that an error names, or the innermost part around it that exists."""
    parent: Any = content
    value: Any = content
    key: Any = field
    while step := _STEP.match(field):
        name: Any = step[1] if step[2] is None else int(step[2])
        if isinstance(value, dict) and field.removeprefix(".") in value:
            name, field = field.removeprefix("."), ""  # names of resources contain dots
        try:
            parent, key, value = value, name, value[name]
        except (LookupError, TypeError):
            break
        field = field[step.end() :]
    if isinstance(parent, dict):
        parent.pop(key, None)
    elif isinstance(parent, list):
        del parent[key]


def _leave_out_large_amounts(content: Any) -> None:
    """Remove the amounts of which the sum over all containers may not fit 64 bits."""
    lists = [_part(content, "spec", kind) for kind in ("containers", "initContainers")]
    largest = INT64_MAX // (sum(len(each) for each in lists if isinstance(each, list)) + 1)
    for amounts in _amounts_of_pod(content):
        for name, quantity in list(amounts.items()):
            try:
                too_large = check_amounts({name: quantity}, "") > largest
            except (BadObject, TypeError):  # in a field that is not read, such as limits in the status
                continue
            if too_large:
                del amounts[name]


def _amounts_of_pod(content: Any) -> Iterator[dict[str, Any]]:
    holders = [_part(content, part) for part in ("spec", "status")]
    for path in _CONTAINERS:
        containers = _part(content, *path)
        holders += containers if isinstance(containers, list) else []
    for holder in holders:
        for path in _AMOUNTS:
            amounts = _part(holder, *path)
            if isinstance(amounts, dict):
                yield amounts


_CONTAINERS: tuple[tuple[str, ...], ...] = (
    ("spec", "containers"),
    ("spec", "initContainers"),
    ("status", "containerStatuses"),
    ("status", "initContainerStatuses"),
)
_AMOUNTS: tuple[tuple[str, ...], ...] = (
    ("resources", "requests"),
    ("resources", "limits"),
    ("allocatedResources",),
    ("overhead",),
)
