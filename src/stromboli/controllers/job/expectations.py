"""Writes of ours that the stores do not show yet, so that no pod, group or command is handled twice meanwhile.

An expectation ends when the store shows the write, or after a timeout in case that never happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import Command, JobPod

TIMEOUT = 60.0
"""Seconds after which an expectation is dropped."""


class Expectations:
    """The expectations of one job."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._created: dict[str, tuple[JobPod, float]] = {}
        """By name, with the time at which the expectation ends; so are the others."""
        self._deleted: dict[str, float] = {}
        """By uid."""
        self._group: tuple[PodGroup, float] | None = None
        self._executed: set[str] = set()
        """Commands that were deleted and may still be in the store, by uid."""

    def pod_created(self, pod: JobPod) -> None:
        self._created[pod.name] = (pod, self._clock() + TIMEOUT)

    def group_created(self, group: PodGroup) -> None:
        self._group = (group, self._clock() + TIMEOUT)

    def deleted(self, uid: str) -> None:
        self._deleted[uid] = self._clock() + TIMEOUT

    def command_executed(self, uid: str) -> None:
        self._executed.add(uid)

    def pod_observed(self, pod: JobPod) -> bool:
        """The store has a new state of a pod; whether that is just the one that we created."""
        expected = self._created.get(pod.name)
        if expected is None or expected[0].metadata.resource_version != pod.metadata.resource_version:
            return False
        del self._created[pod.name]
        return True

    def pod_gone(self, pod: JobPod) -> None:
        """The store has lost a pod."""
        expected = self._created.get(pod.name)
        if expected is not None and expected[0].metadata.uid == pod.metadata.uid:
            del self._created[pod.name]
        self._deleted.pop(pod.metadata.uid, None)

    def pods(self, stored: Iterable[JobPod]) -> dict[str, JobPod]:
        """The stored pods with our writes applied."""
        now = self._clock()
        pods = {pod.name: pod for pod in stored}
        self._created = {
            name: (pod, until)
            for name, (pod, until) in self._created.items()
            if name not in pods and until > now
        }
        pods |= {name: pod for name, (pod, _) in self._created.items()}
        self._deleted = {uid: until for uid, until in self._deleted.items() if until > now}
        if self._deleted:
            pods = {name: self._marked_deleted(pod, now) for name, pod in pods.items()}
        return pods

    def _marked_deleted(self, pod: JobPod, now: float) -> JobPod:
        if pod.metadata.uid not in self._deleted or pod.metadata.deletion_timestamp is not None:
            return pod
        at = datetime.fromtimestamp(now, UTC)
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=at)
        return msgspec.structs.replace(pod, metadata=metadata)

    def group(self, stored: PodGroup | None) -> PodGroup | None:
        """The stored group with our writes applied."""
        now = self._clock()
        if stored is not None and self._deleted.get(stored.metadata.uid, now) > now:
            stored = None
        if self._group is not None and (stored is not None or self._group[1] <= now):
            self._group = None
        if stored is None and self._group is not None:
            created = self._group[0]
            return None if self._deleted.get(created.metadata.uid, now) > now else created
        return stored

    def commands(self, stored: list[Command]) -> list[Command]:
        """The stored commands that are not executed and deleted yet."""
        self._executed &= {command.metadata.uid for command in stored}
        return [command for command in stored if command.metadata.uid not in self._executed]

    @property
    def until(self) -> float | None:
        """When the first expectation times out."""
        times = [until for _, until in self._created.values()] + list(self._deleted.values())
        times += [self._group[1]] if self._group is not None else []
        return min(times, default=None)
