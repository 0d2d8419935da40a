"""Kubernetes' own PodGroups as jobs: the fields that Volcano's PodGroups lack, and those that pods decide.

If a native group has no queue or no priority of its own, its pods decide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stromboli.api import names
from stromboli.api.types.native_group import NativePodGroup, condition_type
from stromboli.api.types.pod import PodResourceClaim
from stromboli.api.types.scheduling import PodGroup, PodGroupSpec, PodGroupStatus
from stromboli.model.amounts import add_to

if TYPE_CHECKING:
    from stromboli.model.task import Task

KIND = NativePodGroup.__name__
"""The kind in the ids of such jobs."""


class Native:
    """Part of every job of this kind, whether its group object exists or not."""

    __slots__ = (
        "_priorities",
        "_queues",
        "api_version",
        "disrupted_as_group",
        "generation",
        "independent",
        "preempts",
        "priority",
        "resource_claims",
        "topology_key",
    )

    def __init__(self) -> None:
        self._queues: dict[str, int] = {}
        """The number of its pods that name each queue."""
        self._priorities: dict[int, int] = {}
        self.reset()

    def reset(self) -> None:
        """Reset to the values of a job without group object."""
        self.api_version = ""
        self.generation = 0
        self.disrupted_as_group = False
        """Whether its pods may only be evicted all together."""
        self.independent = False
        """Whether its pods are scheduled one by one, without a gang."""
        self.preempts = True
        self.priority: int | None = None
        self.resource_claims: tuple[PodResourceClaim, ...] = ()
        """The ResourceClaims that belong to the group as a whole."""
        self.topology_key = ""
        """The label whose value the nodes of all its pods must share; empty if there is none."""

    def without_pods(self) -> Native:
        """The same group without counted pods."""
        copied = Native()
        for name in self.__slots__:
            if name not in ("_priorities", "_queues"):
                setattr(copied, name, getattr(self, name))
        return copied

    def update(self, group: NativePodGroup) -> None:
        self.api_version = group.api_version
        self.generation = group.metadata.generation
        self.disrupted_as_group = group.disrupted_as_group
        self.independent = group.independent
        self.preempts = group.spec.preemption_policy != names.PREEMPT_NEVER
        self.priority = group.spec.priority
        self.resource_claims = group.spec.resource_claims
        self.topology_key = group.topology_key

    def count(self, task: Task, sign: int) -> None:
        """Count a pod that was added (or removed)."""
        add_to(self._priorities, task.pod_priority, sign)
        queue = task.annotations.get(names.QUEUE_NAME) or task.label_set.labels.get(names.QUEUE_NAME)
        if queue:
            add_to(self._queues, queue, sign)

    @property
    def queue(self) -> str:
        """The queue that its pods name; if they disagree, the first by name."""
        return min(self._queues, default="")

    @property
    def pod_priority(self) -> int:
        """The highest priority of its pods."""
        return max(self._priorities, default=0)


def as_volcano(group: NativePodGroup) -> PodGroup:
    """The group as Volcano's PodGroup; fields that it does not have are in `Native`."""
    meta = group.metadata
    spec = PodGroupSpec(
        min_member=group.minimum,
        queue=meta.annotations.get(names.QUEUE_NAME) or meta.labels.get(names.QUEUE_NAME, ""),
        priority_class_name=group.spec.priority_class_name,
    )
    wanted, known = condition_type(group.api_version), names.CONDITION_GROUP_SCHEDULED
    conditions = tuple(
        replace(condition, type=known) for condition in group.status.conditions if condition.type == wanted
    )
    return PodGroup(meta, spec, PodGroupStatus(conditions=conditions))
