"""What we wrote about a job and its shelves do not show yet, so that nothing is done twice meanwhile.

An echo dies when the shelf shows what it says, or after a while, in case that never happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import Command, JobPod

LONGEST = 60.0
"""Seconds after which the shelf is right."""


class Echoes:
    """Of one job."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._made: dict[str, tuple[JobPod, float]] = {}
        self._deleted: dict[str, float] = {}
        """By uid."""
        self._group: tuple[PodGroup, float] | None = None
        self._obeyed: set[str] = set()
        """Commands that were deleted and may still be on the shelf, by uid."""

    def made_pod(self, pod: JobPod) -> None:
        self._made[pod.name] = (pod, self._clock() + LONGEST)

    def made_group(self, group: PodGroup) -> None:
        self._group = (group, self._clock() + LONGEST)

    def deleted(self, uid: str) -> None:
        self._deleted[uid] = self._clock() + LONGEST

    def obeyed(self, uid: str) -> None:
        self._obeyed.add(uid)

    def knows(self, pod: JobPod) -> bool:
        """Whether what the shelf heard of a pod is what we were told when we made it."""
        echo = self._made.get(pod.name)
        if echo is None or echo[0].metadata.resource_version != pod.metadata.resource_version:
            return False
        del self._made[pod.name]
        return True

    def pod_gone(self, pod: JobPod) -> bool:
        """The shelf heard that a pod is gone, which is always news."""
        echo = self._made.get(pod.name)
        if echo is not None and echo[0].metadata.uid == pod.metadata.uid:
            del self._made[pod.name]
        self._deleted.pop(pod.metadata.uid, None)
        return False

    def pods(self, shelved: Iterable[JobPod]) -> dict[str, JobPod]:
        """The pods as they must be by now."""
        now = self._clock()
        found = {pod.name: pod for pod in shelved}
        self._made = {name: echo for name, echo in self._made.items() if name not in found and echo[1] > now}
        found |= {name: echo[0] for name, echo in self._made.items()}
        self._deleted = {uid: until for uid, until in self._deleted.items() if until > now}
        if self._deleted:
            found = {name: self._leaving(pod, now) for name, pod in found.items()}
        return found

    def _leaving(self, pod: JobPod, now: float) -> JobPod:
        if pod.metadata.uid not in self._deleted or pod.metadata.deletion_timestamp is not None:
            return pod
        at = datetime.fromtimestamp(now, UTC)
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=at)
        return msgspec.structs.replace(pod, metadata=metadata)

    def group(self, shelved: PodGroup | None) -> PodGroup | None:
        """The group as it must be by now."""
        now = self._clock()
        if shelved is not None and self._deleted.get(shelved.metadata.uid, now) > now:
            shelved = None
        if self._group is not None and (shelved is not None or self._group[1] <= now):
            self._group = None
        if shelved is None and self._group is not None:
            echo = self._group[0]
            return None if self._deleted.get(echo.metadata.uid, now) > now else echo
        return shelved

    def commands(self, shelved: list[Command]) -> list[Command]:
        """The commands that are still to be carried out, or to be deleted."""
        self._obeyed &= {one.metadata.uid for one in shelved}
        return [one for one in shelved if one.metadata.uid not in self._obeyed]

    @property
    def until(self) -> float | None:
        """When the first of them dies by itself."""
        times = [echo[1] for echo in self._made.values()] + list(self._deleted.values())
        times += [self._group[1]] if self._group is not None else []
        return min(times, default=None)
