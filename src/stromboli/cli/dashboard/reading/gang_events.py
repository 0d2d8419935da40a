"""What happened to a gang, by its Events: the latest, within bounds, and said where some may be missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from stromboli.cli.cluster.cluster_kinds import EVENTS, Manifest, name_of
from stromboli.cli.cluster.object_events import Happening, happening, merged
from stromboli.cli.job.job_description import SOME_POD

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.dashboard.reading.gang_reading import PodSummary

MOST_EVENTS_READ = 1000
"""Of each list."""
MOST_EVENTS_KEPT = 200
"""Of a gang, the latest."""
MOST_PODS_ASKED = 20
"""Pods with trouble whose events are listed one by one, where the namespace has too many."""
LISTS_AT_ONCE = 8


class GangEvents(NamedTuple):
    """What happened, in the order of time."""

    happenings: list[Happening]
    are_all: bool = True
    """Whether no list was cut."""


async def read_events(
    session: ClusterSession, namespace: str, owners: Iterable[Manifest], pods: Sequence[PodSummary]
) -> GangEvents:
    """What happened to a job and its PodGroup, and what was wrong with its pods."""
    told: list[Happening] = []
    are_all = True
    for owner in owners:
        listed = await _list(session, namespace, f"involvedObject.uid={owner['metadata'].get('uid')}")
        are_all &= len(listed) < MOST_EVENTS_READ
        told += map(happening, listed)
    if pods:
        warnings, are_all_warnings = await _warnings(session, namespace, pods)
        are_all &= are_all_warnings
        told += [
            happening(event)._replace(object=SOME_POD) for event in warnings
        ]  # the same of many pods is told once
    return GangEvents(merged(told)[-MOST_EVENTS_KEPT:], are_all)


async def _warnings(
    session: ClusterSession, namespace: str, pods: Sequence[PodSummary]
) -> tuple[list[Manifest], bool]:
    """Those of the pods, and whether they are all: lists come in the order of names, not of time."""
    listed = await _list(session, namespace, "involvedObject.kind=Pod,type=Warning")
    uids = {pod.uid for pod in pods}
    own = [event for event in listed if (event.get("involvedObject") or {}).get("uid") in uids]
    if len(listed) < MOST_EVENTS_READ:
        return own, True
    by_name = {name_of(event): event for event in [*own, *await _of_troubled(session, namespace, pods)]}
    return list(by_name.values()), False


async def _of_troubled(session: ClusterSession, namespace: str, pods: Sequence[PodSummary]) -> list[Manifest]:
    turns = asyncio.Semaphore(LISTS_AT_ONCE)

    async def read(pod: PodSummary) -> list[Manifest]:
        async with turns:
            return await _list(session, namespace, f"involvedObject.uid={pod.uid},type=Warning")

    troubled = [pod for pod in pods if pod.trouble][:MOST_PODS_ASKED]
    return [event for listed in await asyncio.gather(*map(read, troubled)) for event in listed]


async def _list(session: ClusterSession, namespace: str, fields: str) -> list[Manifest]:
    return (await session.list(EVENTS, namespace, fields=fields, most=MOST_EVENTS_READ)).items
