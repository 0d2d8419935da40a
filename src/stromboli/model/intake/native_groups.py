"""Native groups as jobs: what they say beyond what Volcano's do, and what their pods say for them.

A native group names no queue, and where workloads have no priorities of their own it has none either. Its pods do:
the group's word counts first, then theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stromboli.api import names
from stromboli.api.types.native_group import NativePodGroup, condition_type
from stromboli.api.types.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

if TYPE_CHECKING:
    from stromboli.model.task import Task

KIND = NativePodGroup.__name__
"""Of the ids of such jobs."""


class Native:
    """Kept with every job of this kind, whether its group is there or not."""

    __slots__ = (
        "_priorities",
        "_queues",
        "api_version",
        "generation",
        "goes_whole",
        "independent",
        "preempts",
        "priority",
    )

    def __init__(self) -> None:
        self._queues: dict[str, int] = {}
        """How many of its pods name a queue, by queue."""
        self._priorities: dict[int, int] = {}
        self.forget()

    def forget(self) -> None:
        """There is no group."""
        self.api_version = ""
        self.generation = 0
        self.goes_whole = False
        """Whether its pods are taken away all together or not at all."""
        self.independent = False
        """Whether its pods are no gang."""
        self.preempts = True
        self.priority: int | None = None

    def learn(self, group: NativePodGroup) -> None:
        """All that the group says of itself."""
        self.api_version = group.api_version
        self.generation = group.metadata.generation
        self.goes_whole = group.goes_whole
        self.independent = group.independent
        self.preempts = group.spec.preemption_policy != names.PREEMPT_NEVER
        self.priority = group.spec.priority

    def count(self, task: Task, sign: int) -> None:
        """A pod came (or went) with what it says."""
        _count(self._priorities, task.pod_priority, sign)
        queue = task.annotations.get(names.QUEUE_NAME) or task.label_set.labels.get(names.QUEUE_NAME)
        if queue:
            _count(self._queues, queue, sign)

    @property
    def queue(self) -> str:
        """The queue that its pods name; should they not agree, the first by name."""
        return min(self._queues, default="")

    @property
    def pod_priority(self) -> int:
        """The highest of its pods."""
        return max(self._priorities, default=0)


def as_volcano(group: NativePodGroup) -> PodGroup:
    """The same terms in the words of Volcano's: what is not said there is in `Native`."""
    meta = group.metadata
    spec = PodGroupSpec(
        min_member=group.minimum,
        queue=meta.annotations.get(names.QUEUE_NAME) or meta.labels.get(names.QUEUE_NAME, ""),
        priority_class_name=group.spec.priority_class_name,
    )
    wanted, known = condition_type(group.api_version), names.CONDITION_GROUP_SCHEDULED
    conditions = tuple(replace(one, type=known) for one in group.status.conditions if one.type == wanted)
    return PodGroup(meta, spec, PodGroupStatus(conditions=conditions))


def _count(counts: dict[Any, int], key: str | int, sign: int) -> None:
    left = counts.get(key, 0) + sign
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)
