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
from stromboli.embedded.objects.service_addresses import SERVICES, allocate_stored, needs_allocation
from stromboli.embedded.time_slices import TimeSlices

TEMPLATED = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicationcontrollers",
    "jobs.batch",
    "cronjobs.batch",
)
"""Kinds with templates of what their controllers make."""


async def bring_up_to_date(objects: Objects) -> None:
    """Complete what is stored."""
    slices = TimeSlices()
    for resource in (*TEMPLATED, SERVICES):
        kind = objects.registry.by_id(resource)
        assert kind is not None, resource
        for record in list(objects.store.list(resource)):
            with objects.store.reading(record):
                objects.system_update(record, partial(_complete, objects, kind))
            if slices.due:
                await slices.pause()


def _complete(objects: Objects, kind: Kind, content: Content) -> None:
    _set_defaults(kind, content)
    if kind.id == SERVICES and needs_allocation(content):
        with suppress(StatusError):  # the range is full
            allocate_stored(objects.service_addresses, kind, content)


def _set_defaults(kind: Kind, content: Content) -> None:
    """Of an object that this release would take; one that it would refuse stays as it is."""
    copy = object_schemas.copy(content)
    if not object_schemas.normalize(kind, copy).problems:
        content.clear()
        content.update(copy)
