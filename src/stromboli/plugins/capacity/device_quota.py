"""Limits on devices by class: the keys `deviceclass/<class>` and `<capacity>.deviceclass/<class>` (spec 03 9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from stromboli.model.amounts import plus
from stromboli.model.devices.claim_use import COUNT_PREFIX, DeviceAmounts, DeviceUsage, class_of
from stromboli.model.devices.task_claims import extended_amounts, task_claims

if TYPE_CHECKING:
    from stromboli.model.amounts import Amounts
    from stromboli.model.cluster import Change, Cluster
    from stromboli.model.job import Job
    from stromboli.model.queue import Queue
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.plugins.capacity.queue_tree import QueueShare

_NO_USAGE = DeviceUsage()


class DeviceQuota:
    """Limits of queues by device class, and what counts against them in this session."""

    def __init__(self, cluster: Cluster, with_capacities: bool):
        self._cluster = cluster
        self._with_capacities = with_capacities
        self._limits: dict[Queue, Mapping[str, int]] = {}
        self._at_opening: dict[QueueShare, dict[str, int]] = {}
        """What the queues below each queue held when the session opened."""
        self._since: dict[QueueShare, DeviceUsage] = {}
        """The claims of tasks that were placed below each queue since."""
        self._inqueue: dict[Queue, dict[str, int]] = {}
        """The minimum requests of jobs admitted in this session."""
        self._extended: dict[Shape, DeviceAmounts] = {}
        """The device requests of pods by extended resources."""

    def sum_up(self, shares: Iterable[QueueShare]) -> None:
        """Open a session: sum up what the queues below each queue hold."""
        # quirk: spec 03 9 (f), only of queues that limit devices themselves, and of the classes limited above
        self._limits.clear()
        self._at_opening, self._since, self._inqueue = {}, {}, {}
        for share in shares:
            if share.ancestors and self._is_tracked(share.queue):
                for ancestor in share.ancestors:
                    total = self._at_opening.setdefault(ancestor, {})
                    for name, amount in self._held(share.queue).amounts.items():
                        if class_of(name) in self._classes(ancestor.queue):
                            total[name] = total.get(name, 0) + amount

    def concerns(self, task: Task) -> bool:
        """Whether a task requests devices, by claims or by extended resources."""
        return bool(task.claims or self._by_extended_resources(task))

    def follow(self, change: Change, ancestors: Iterable[QueueShare], gained: int) -> None:
        """Count a task that was placed below these queues, or no longer."""
        grants = change.grants if gained > 0 else change.old_grants
        claims = self._cluster.devices.counted_claims(change.task, grants)
        if not claims:
            return
        for ancestor in ancestors:
            usage = self._since.setdefault(ancestor, DeviceUsage())
            if gained > 0:
                usage.add(claims)
            else:
                usage.remove(claims)

    # -- limits

    def fits(self, share: QueueShare, task: Task) -> bool:
        """Whether the claims of a task fit within the limits of a queue; those already in use there cost nothing."""
        if not self._limit(share.queue):
            return True
        usage = self._since.get(share, _NO_USAGE) if share.children else self._held(share.queue)
        asked = usage.added_by(task_claims(self._cluster.devices, task))
        _add(asked, self._by_extended_resources(task))
        return next(self._lacking(share, asked, {}), None) is None

    def lacking(self, share: QueueShare, job: Job) -> list[str]:
        """The keys that are short in a queue for the minimum request of a job, beside other admitted jobs."""
        inqueue = self._inqueue.get(share.queue, {})
        return list(self._lacking(share, self.minimum(job), inqueue)) if self._limit(share.queue) else []

    def enter(self, shares: Iterable[QueueShare], job: Job) -> None:
        """Count the minimum request of an admitted job in these queues, until the session closes."""
        # quirk: spec 03 9 (d), jobs admitted in earlier sessions do not count
        minimum = self.minimum(job)
        for share in shares:
            _add(self._inqueue.setdefault(share.queue, {}), minimum)

    def _lacking(
        self, share: QueueShare, asked: Mapping[str, int], inqueue: Mapping[str, int]
    ) -> Iterator[str]:
        limit, classes, held = self._limit(share.queue), self._classes(share.queue), self.held(share)
        for name, amount in asked.items():
            counted = name.startswith(COUNT_PREFIX)
            if class_of(name) not in classes or not (counted or self._with_capacities):
                continue
            most = limit.get(name, 0)
            if counted and not most:
                continue  # quirk: spec 03 9 (a), a count of zero limits nothing
            if held.get(name, 0) + inqueue.get(name, 0) + amount > most:
                yield name

    def held(self, share: QueueShare) -> Mapping[str, int]:
        """What counts against the limit of a queue at this moment."""
        if not share.children:
            return self._held(share.queue).amounts
        held = dict(self._at_opening.get(share, {}))
        _add(held, self._since.get(share, _NO_USAGE).amounts)
        return {name: max(amount, 0) for name, amount in held.items()}

    def _held(self, queue: Queue) -> DeviceUsage:
        return self._cluster.devices.held.get(queue, _NO_USAGE)

    # -- for explanations

    def without_zeros(self, capability: Amounts) -> Amounts:
        """A capability without counts of devices that limit nothing."""
        names = self._cluster.dims.names
        return {dim: most for dim, most in capability.items() if most or not class_of(names[dim])}

    def with_devices(self, share: QueueShare) -> Amounts:
        """What a queue holds, with what counts against its limits on devices."""
        index = self._cluster.dims.index
        held = self.held(share)
        return plus(share.held, {index[name]: amount for name, amount in held.items() if name in index})

    # -- what queues name

    def _limit(self, queue: Queue) -> Mapping[str, int]:
        """The limits of a queue's capability, by key."""
        known = self._limits.get(queue)
        if known is None:
            known = self._limits[queue] = self._device_keys(queue.capability)
        return known

    def _classes(self, queue: Queue) -> set[str]:
        return {class_of(name) for name in self._limit(queue)}

    def _is_tracked(self, queue: Queue) -> bool:
        return any(
            self._device_keys(amounts) for amounts in (queue.capability, queue.deserved, queue.guarantee)
        )

    def _device_keys(self, amounts: Amounts) -> dict[str, int]:
        names = self._cluster.dims.names
        return {names[dim]: int(amount) for dim, amount in amounts.items() if class_of(names[dim])}

    # -- the minimum request of a job

    def minimum(self, job: Job) -> Mapping[str, int]:
        """The requests of the tasks of a job that have to start together."""
        tasks = [task for task in job.tasks.values() if self.concerns(task)]
        if not job.role_minimums:
            first = sorted(tasks, key=lambda task: (task.namespace, task.name, task.uid))[: job.minimum]
            return self._asked(first)
        total: dict[str, int] = {}
        for role, minimum in job.role_minimums.items():
            sample = next((task for task in tasks if task.role == role), None)
            _add(total, self._asked([sample] if sample else []), minimum)
        return total

    def _asked(self, tasks: Iterable[Task]) -> dict[str, int]:
        """The requests of the claims of tasks; a shared claim counts for each task."""
        total: dict[str, int] = {}
        for task in tasks:
            for use in task_claims(self._cluster.devices, task):
                _add(total, use.content.amounts if use.content else {})
            _add(total, self._by_extended_resources(task))
        return total

    def _by_extended_resources(self, task: Task) -> DeviceAmounts:
        known = self._extended.get(task.shape)
        if known is None:
            known = extended_amounts(task.shape.spec, self._cluster.devices.extended)
            self._extended[task.shape] = known
        return known


def _add(total: dict[str, int], amounts: DeviceAmounts, times: int = 1) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + times * amount
