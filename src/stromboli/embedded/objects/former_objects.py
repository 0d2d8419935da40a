"""Objects that an earlier release stored: they get what this one sets when it stores them.

A real API server sets defaults whenever it reads an object. Here it is done once, when a release first opens a folder.
A workload that lacked a default would differ from the ReplicaSet that is made of it, and get another one for ever.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.objects.service_addresses import allocate_stored, needs_allocation
from stromboli.embedded.time_slices import TimeSlices


async def bring_up_to_date(objects: Objects) -> None:
    """Complete what is stored."""
    slices = TimeSlices()
    for kind in [kind for kind in objects.registry if kind.strategy.completes_stored]:
        for record in list(objects.store.list(kind.id)):
            with objects.store.reading(record):
                objects.system_update(record, partial(_complete, objects, kind))
            if slices.due:
                await slices.pause()


def _complete(objects: Objects, kind: Kind, content: Content) -> None:
    _set_defaults(kind, content)
    if kind.strategy.allocates_addresses and needs_allocation(content):
        with suppress(StatusError):  # the range is full
            allocate_stored(objects.service_addresses, kind, content)


def _set_defaults(kind: Kind, content: Content) -> None:
    """Of an object that this release would take; one that it would refuse stays as it is."""
    copy = object_schemas.copy(content)
    if not object_schemas.normalize(kind, copy).problems:
        content.clear()
        content.update(copy)
