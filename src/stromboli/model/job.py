"""A job: one PodGroup, its tasks by status, its sub-jobs, and the arithmetic of gangs (spec 01 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import go_scalars, names
from stromboli.model.amounts import Amounts, excess, is_empty, shift
from stromboli.model.status import ALLOCATED_CLASS, READY_CLASS, VALID_CLASS, Status

if TYPE_CHECKING:
    from stromboli.api.types.meta import OwnerReference
    from stromboli.api.types.scheduling import PodGroup, SubGroupPolicy
    from stromboli.model.intake.native_groups import Native
    from stromboli.model.queue import Queue
    from stromboli.model.requirements.placement_requirement import Demand
    from stromboli.model.task import Condition, Task


VOLCANO_GROUP = "PodGroup"
"""The kind of Volcano's PodGroups in ids of jobs."""


class JobId(NamedTuple):
    """Native pod groups and Volcano's may share a name, so the kind is part of the id."""

    kind: str
    """`PodGroup` of Volcano, or the kind of a group of Kubernetes itself."""
    namespace: str
    """The namespace of the group."""
    name: str
    """The name of the group."""


@dataclass(slots=True, eq=False, repr=False)
class TaskCounts:
    """Counts of tasks by status with the predicates over them; what a job and a sub-job have in common."""

    minimum: int = field(default=0, kw_only=True)
    """How many tasks must start together: minMember, or the size of a sub-group."""
    counts: list[int] = field(default_factory=lambda: [0] * len(Status), kw_only=True)
    """How many tasks are in each status, by `Status`; follows every move."""
    ready_count: int = field(default=0, kw_only=True)
    """How many tasks are allocated (Allocated, Binding, Bound, Running) or have succeeded; follows every move."""
    pending_best_effort: int = field(default=0, kw_only=True)
    """How many Pending tasks request nothing, so that `backfill` places them; follows every move."""

    def count(self, status: Status, best_effort: bool, sign: int) -> None:
        """One task more (or less) of a status."""
        self.counts[status] += sign
        if READY_CLASS[status]:
            self.ready_count += sign
        elif best_effort and status is Status.PENDING:
            self.pending_best_effort += sign

    @property
    def waiting_count(self) -> int:
        """How many tasks are pipelined: promised resources that are still in use."""
        return self.counts[Status.PIPELINED]

    @property
    def valid_count(self) -> int:
        """How many tasks run, have succeeded or may still be placed: all but failed, unknown and releasing ones."""
        return sum(_counts_of_valid(self.counts))

    @property
    def allocated_count(self) -> int:
        """How many tasks are allocated: `ready_count` without those that have succeeded."""
        return self.ready_count - self.counts[Status.SUCCEEDED]

    @property
    def enough_ready(self) -> bool:
        """Whether the allocated tasks, and those that request nothing, reach the minimum."""
        return self.ready_count + self.pending_best_effort >= self.minimum

    @property
    def enough_pipelined(self) -> bool:
        """As `enough_ready`, with pipelined tasks included."""
        return self.counts[Status.PIPELINED] + self.ready_count + self.pending_best_effort >= self.minimum


@dataclass(slots=True, eq=False, repr=False)
class SubJob(TaskCounts):
    """Tasks that a sub-group policy groups; a job without policies has one sub-job with all tasks."""

    job: Job
    """The job that it is a part of."""
    id: str
    """Its name within the job: the policy's name and the values of its match labels."""
    policy: SubGroupPolicy | None
    """The entry of `spec.subGroupPolicy` that made it; none for the one sub-job of a job without policies."""
    match_index: int
    tasks: dict[Task, None] = field(default_factory=dict)
    """Its tasks, whatever their status."""
    allocated_hyper_node: str = ""
    """The lowest HyperNode that contains all its allocated tasks; empty if none does or it is not known."""
    nominated_hyper_node: str = ""
    """The HyperNode in which pods were evicted for it; empty if none were."""

    @property
    def priority(self) -> int:
        """The highest priority among its tasks, never below zero."""
        return max([0, *(task.priority for task in self.tasks)])

    def __repr__(self) -> str:
        return f"SubJob({self.id})"


@dataclass(slots=True, eq=False, repr=False)
class Job(TaskCounts):
    """The tasks of one PodGroup; cycles ignore it without its PodGroup (`group`) or its queue."""

    id: JobId
    """Kind, namespace and name of its group; unique in the cluster."""
    native: Native | None = None
    """What a native group has beyond a PodGroup."""
    group: PodGroup | None = None
    """Its PodGroup as the API server has it; a group of Kubernetes itself is converted to one."""
    queue: Queue | None = None
    """The queue it is in; none while its group is unknown."""
    created: float = 0.0
    """When its group was created, in seconds since 1970."""
    priority: int = 0
    """The value of its group's priority class, or of the cluster's default one; higher comes first."""
    phase: str = ""
    """Phase of its PodGroup: Pending, Inqueue, Running, ...; changes by `session.set_phase` and when a cycle ends."""
    conditions: dict[str, Condition] = field(default_factory=dict)
    """Conditions of its PodGroup by type, as last read or written."""
    moved_at: float = 0.0
    """When tasks of it were last moved elsewhere, in seconds since 1970, by the condition `Moved` of its PodGroup."""
    written: tuple[str, int, int, int] | None = None
    """Phase and running, succeeded, failed counts as the PodGroup's status shows them."""
    reported: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The last event about this job by topic, so that an unchanged one is not repeated."""
    role_minimums: dict[str, int] = field(default_factory=dict)
    """How many tasks of each role must start together (`minTaskMember`)."""
    min_resources: Amounts | None = None
    """The `minResources` of its group; None if unset."""
    reservable: Amounts = field(default_factory=dict)
    """The part of its minimum resources that is reserved for it while it is pending (spec 04 12)."""
    waiting_time: float | None = None
    """Maximum waiting time in seconds, by the annotation `sla-waiting-time`; None without one."""
    time_limit: float | None = None
    """Seconds that its tasks run at most, by the annotation `stromboli.sh/time-limit`; none without one."""
    tasks: dict[str, Task] = field(default_factory=dict)
    """All its tasks by uid, finished ones included."""
    by_status: list[dict[Task, None]] = field(default_factory=lambda: [{} for _ in Status])
    """Its tasks in each status, by `Status`: `job.by_status[Status.PENDING]`; copy it before you move any."""
    role_counts: dict[str, list[int]] = field(default_factory=dict)
    """As `counts`, for the tasks of each role; follows every move."""
    sub_jobs: dict[str, SubJob] = field(default_factory=dict)
    """Its sub-groups by id; a job without sub-group policies has one, with all tasks."""
    total: Amounts = field(default_factory=dict)
    """What all its tasks request, whatever their status."""
    allocated: Amounts = field(default_factory=dict)
    """What allocated tasks request: Allocated, Binding, Bound, Running; follows every move."""
    pipelined: Amounts = field(default_factory=dict)
    """What pipelined tasks request, whose resources are still in use; follows every move."""
    pending: Amounts = field(default_factory=dict)
    """What its Pending tasks request; follows every move."""
    reserved: Amounts = field(default_factory=dict)
    """What its Pending tasks with a reservation beyond the cycle request."""
    group_demands: tuple[Demand, ...] = ()
    """What its PodGroup requires of the placement of its tasks and only a plugin can honour."""
    task_demands: dict[Demand, int] = field(default_factory=dict)
    """What its tasks require, with the number of tasks that do."""
    allocated_hyper_node: str = ""
    """The lowest HyperNode that contains the allocated HyperNodes of all its sub-groups; empty if none does."""

    # -- identity

    @property
    def namespace(self) -> str:
        """The namespace of its group and its pods."""
        return self.id.namespace

    @property
    def name(self) -> str:
        """The name of its group."""
        return self.id.name

    @property
    def key(self) -> str:
        """`namespace/name`, as messages to users name it."""
        return f"{self.id.namespace}/{self.id.name}"

    @property
    def visible(self) -> bool:
        """Whether cycles consider it: it has a PodGroup, and a queue that exists."""
        return self.group is not None and self.queue is not None and self.queue.object is not None

    @property
    def waits_for_queue(self) -> bool:
        """Not admitted by enqueue yet (PodGroup phase Pending or none)."""
        return self.phase in ("", "Pending")

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of its PodGroup."""
        return self.group.metadata.annotations if self.group else {}

    @property
    def owner(self) -> OwnerReference | None:
        """The controller of its PodGroup, such as the Job that the group was made for."""
        owners = self.group.metadata.owner_references if self.group else ()
        return next((owner for owner in owners if owner.controller), None)

    @property
    def gang_evictable(self) -> bool:
        """Whether gang evictions may evict it: unless its PodGroup forbids it (`volcano.sh/preemptable`)."""
        if self.group is None:
            return False
        meta = self.group.metadata
        preemptable = meta.annotations.get(names.PREEMPTABLE, meta.labels.get(names.PREEMPTABLE))
        return preemptable is None or go_scalars.boolean(preemptable) is True

    @property
    def complete(self) -> bool:
        """Whether its tasks that run or may still be placed reach all its minimums, so that it could start."""
        enough = len(self.tasks) >= self.minimum and self.valid_count >= self.minimum
        return enough and self.roles_valid and self.sub_groups_valid

    @property
    def disrupted_as_group(self) -> bool:
        """Whether it may only be evicted as a whole."""
        return self.native is not None and self.native.disrupted_as_group

    @property
    def preempts(self) -> bool:
        """Whether its PodGroup allows its tasks to preempt."""
        return self.native is None or self.native.preempts

    @property
    def starving(self) -> bool:
        """Whether it has fewer tasks than its minimum; without a gang, whether any task is pending."""
        if self.native is not None and self.native.independent:
            return self.counts[Status.PENDING] > 0
        return self.counts[Status.PIPELINED] + self.ready_count < self.minimum

    @property
    def has_started(self) -> bool:
        """Whether tasks of it hold capacity for good: not only within a trial of the current cycle."""
        return self.allocated_count > self.counts[Status.ALLOCATED]

    @property
    def below_minimum(self) -> bool:
        """Whether it was started and now has fewer tasks than its minimums require, as after the loss of a node."""
        return self.has_started and not (self.enough_ready and self.roles_ready and self.sub_groups_ready)

    @property
    def policies(self) -> tuple[SubGroupPolicy, ...]:
        """The sub-group policies of its PodGroup; empty for most jobs."""
        return self.group.spec.sub_group_policy if self.group else ()

    # -- roles

    @property
    def role_minimums_apply(self) -> bool:
        """Whether each role must reach its own minimum; not if these add up to more than minMember."""
        # quirk: spec 01 3.2
        return bool(self.role_minimums) and self.minimum >= sum(self.role_minimums.values())

    def _roles_have(self, statuses: tuple[Status, ...], with_best_effort: bool) -> bool:
        for role, minimum in self.role_minimums.items():
            counts = self.role_counts.get(role)
            have = sum(counts[status] for status in statuses) if counts else 0
            if with_best_effort and have < minimum:
                have += self.role_pending_best_effort(role)
            if have < minimum:
                return False
        return True

    def role_pending_best_effort(self, role: str) -> int:
        return sum(task.role == role and task.best_effort for task in self.by_status[Status.PENDING])

    @property
    def roles_valid(self) -> bool:
        """Whether each role has enough tasks that run or may be placed; true if role minimums do not apply."""
        return not self.role_minimums_apply or self._roles_have(VALID_STATUSES, with_best_effort=False)

    @property
    def roles_ready(self) -> bool:
        """Whether each role has enough allocated tasks; true if role minimums do not apply."""
        return not self.role_minimums_apply or self._roles_have(READY_STATUSES, with_best_effort=True)

    @property
    def roles_pipelined(self) -> bool:
        """As `roles_ready`, with pipelined tasks included."""
        return not self.role_minimums_apply or self._roles_have(
            (*READY_STATUSES, Status.PIPELINED), with_best_effort=True
        )

    # -- sub-groups

    def sub_jobs_of(self, policy: SubGroupPolicy) -> list[SubJob]:
        """The sub-jobs that a policy made; by name, as an update brings new policy objects."""
        return [sub for sub in self.sub_jobs.values() if sub.policy and sub.policy.name == policy.name]

    def _sub_groups_have(self, enough: str) -> bool:
        for policy in self.policies:
            if policy.min_sub_groups > 0:
                enough_count = sum(getattr(sub, enough) for sub in self.sub_jobs_of(policy))
                if enough_count < policy.min_sub_groups:
                    return False
        return True

    @property
    def sub_groups_valid(self) -> bool:
        """Whether each sub-group policy has as many sub-groups as it requires."""
        return all(len(self.sub_jobs_of(policy)) >= policy.min_sub_groups for policy in self.policies)

    @property
    def sub_groups_ready(self) -> bool:
        """Whether each sub-group policy has as many ready sub-groups as it requires."""
        return self._sub_groups_have("enough_ready")

    @property
    def sub_groups_pipelined(self) -> bool:
        """As `sub_groups_ready`, with pipelined tasks included."""
        return self._sub_groups_have("enough_pipelined")

    # -- derived amounts

    @property
    def held(self) -> Amounts:
        """Allocated and pipelined together: what it has or was promised."""
        if not self.pipelined:
            return self.allocated
        total = dict(self.allocated)
        shift(total, self.pipelined)
        return total

    @property
    def elastic(self) -> Amounts:
        """What it holds above its minimum resources."""
        return excess(self.allocated, self.min_resources or {})

    def shortfall(self) -> Amounts:
        """What it lacks of its minimum resources, to be reserved for it."""
        return excess(self.reservable, self.allocated)

    def gated_resources(self, own_gate: str) -> Amounts:
        """What its gated tasks request, except those with only the scheduler's own gate."""
        total: Amounts = {}
        for task in chain(*_unplaced_of(self.by_status)):  # a pod with gates has no node
            if task.gates and task.gates != (own_gate,):
                shift(total, task.request)
        return total

    def without_gated(self, amounts: Amounts, own_gate: str) -> Amounts:
        """The amounts less what gated tasks request, nothing below zero."""
        if not amounts:
            return amounts
        gated = self.gated_resources(own_gate)
        if is_empty(gated):
            return amounts
        return {dim: max(amount - gated.get(dim, 0), 0) for dim, amount in amounts.items()}

    def __repr__(self) -> str:
        return f"Job({self.key})"


READY_STATUSES = tuple(status for status in Status if READY_CLASS[status])
VALID_STATUSES = tuple(status for status in Status if VALID_CLASS[status])
_counts_of_valid = itemgetter(*VALID_STATUSES)
_unplaced_of = itemgetter(*(status for status in Status if not ALLOCATED_CLASS[status]))
