"""Jobs and PodGroups that still need their queue, whether they have pods or not."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import field

from stromboli.api import names
from stromboli.api.decoding import Raw, decode_as
from stromboli.api.errors import BadObject
from stromboli.api.predecessors import FINISHED
from stromboli.api.types.meta import Object, Record


class _State(Record):
    phase: str = ""


class _Status(Record):
    """The phase of a PodGroup, or the state of a Job."""

    phase: str = ""
    state: _State = field(default_factory=_State)


class _Spec(Record):
    queue: str = names.DEFAULT_QUEUE


class _QueueMember(Object):
    """The part of a Job or a PodGroup that its queue depends on."""

    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)


def unfinished_job(queue: str, kind: str, objects: Iterable[Raw]) -> str:
    """Return the first Job or PodGroup that needs a queue, as `Job default/train`; empty if there is none.

    A PodGroup is reported as the object that controls it. An object that cannot be read is left out.
    """
    for raw in objects:
        try:
            member = decode_as(_QueueMember, raw)
        except BadObject:
            continue
        if member.spec.queue == queue and not _is_finished(member):
            owners = (owner for owner in member.metadata.owner_references if owner.controller)
            owner = next(owners, None) if kind == "PodGroup" else None
            name = owner.name if owner is not None else member.name
            return f"{owner.kind if owner is not None else kind} {member.namespace}/{name}"
    return ""


def _is_finished(member: _QueueMember) -> bool:
    status = member.status
    finished = status.phase == names.GROUP_COMPLETED or status.state.phase in FINISHED
    return finished or member.metadata.deletion_timestamp is not None
