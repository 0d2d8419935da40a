"""A session: one cycle as a transaction over the live cluster.

Actions ask its `rules`, find nodes with `place`, and move tasks inside statements. Its journal has every move; when the
session closes, uncommitted moves are undone. Results of attempts (`attempts`) and reports about jobs (`reports`) are
not in the journal and survive the undo.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.api import names
from stromboli.engine.catalog import Catalog
from stromboli.engine.job_needs import JobNeeds
from stromboli.engine.job_reports import Attempts, JobReports
from stromboli.engine.order import JobsByQueue
from stromboli.engine.placement.node_placement import Place, Placement, own_nodes_first
from stromboli.engine.placement.verdict import Verdict, verdict_text
from stromboli.engine.plugin_failures import Failure, FailureGuard, ReportGuard
from stromboli.engine.statement import Statement
from stromboli.engine.topology.gang_topology import GangTopology
from stromboli.engine.transaction import Journal
from stromboli.engine.unmet_requirements import Requirements
from stromboli.engine.waiting.capacity_waits import CapacityWaits, Waits
from stromboli.engine.waiting.fixed_point import UnrepeatableReads
from stromboli.model.cluster import Cluster, Dirty
from stromboli.model.remedy import Remedy, Why
from stromboli.model.reservations import Reservation
from stromboli.model.task import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stromboli.engine.catalog import Action
    from stromboli.engine.placement.evaluation import Evaluation
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.rules import Rules
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain
    from stromboli.policy.policy import Policy


class Session:
    """What actions and plugins see of a cycle."""

    action = ""
    """The name of the action that runs."""

    def __init__(
        self, cluster: Cluster, policy: Policy, rules: Rules, placement: Placement, now: float, id: str
    ):
        self.cluster = cluster
        """All nodes, queues, jobs and tasks in their current state; read it, change it by statements."""
        self.policy = policy
        self.actions: Sequence[Action] = ()
        """The actions of the policy, in the order in which they run."""
        self.catalog = Catalog()
        """All actions and plugins that a policy may name."""
        self.rules = rules
        """The extension points as functions that ask every plugin of the policy: `session.rules.job_ready(job)`."""
        self.placement = placement
        """Filters and scores by shape of task."""
        self.id = id
        self.features: frozenset[str] = frozenset()
        """The enabled feature gates, of those that are disabled by default."""
        self.total: Amounts = cluster.total
        """The allocatable resources of all nodes; constant during the cycle."""
        self.changed: Dirty = cluster.dirty
        """What changed since the last session opened."""
        self.reads = UnrepeatableReads(now)
        """Reads whose result may differ in the next session even if nothing changes."""
        self.confined: tuple[type[BaseException], ...] = (Exception,)
        """The exceptions of plugins that are confined to jobs or to the cycle, unlike an interrupt by the user."""
        self.should_stop: Callable[[], bool] = lambda: False
        """Whether the cycle may stop early, as in a rehearsal that has shown enough."""
        self.journal = Journal(self)
        self.attempts = Attempts()
        """Results of attempts to place jobs and tasks."""
        self.reports = JobReports(self.journal.decisions)
        """What is reported about jobs."""
        self.topology = GangTopology(self)
        """The domains that gangs may use."""
        self.requirements = Requirements(self)
        """Requirements of objects that the policy or the cluster cannot meet."""
        self.needs = JobNeeds(cluster, rules, _reserves_minimum(policy))
        """What jobs need to start, and which jobs no nodes could hold."""
        self.waits: Waits = CapacityWaits()
        """Jobs that are not tried because they need more capacity than there is."""
        self.failures: list[Failure] = []
        """Failures of plugins."""
        self._services: Mapping[str, Any] = {}

    @cached_property
    def sharable(self) -> Amounts:
        """What queues share: `total`, and what tasks hold beyond the size of their nodes; constant once it was read."""
        return self.cluster.sharable

    # -- time and external services

    @property
    def now(self) -> float:
        """The time of the cycle, in seconds since 1970; constant during the cycle.

        Once it was read, the next cycle tries all jobs again. To ask whether a moment has come, use `has_come`.
        """
        return self.reads.now()

    def has_come(self, moment: float) -> bool:
        """Whether a moment has come; if not, jobs need not be tried again before it on account of this answer."""
        return self.reads.has_come(moment)

    def look_again(self) -> None:
        """Let the next cycle try all jobs again: a plugin returned a result that must not be cached."""
        self.reads.any = True

    @property
    def services(self) -> Mapping[str, Any]:
        """Services for calls of plugins to the outside, by name, set by the process; empty in a rehearsal.

        Once any of them was looked for, the next cycle tries all jobs again.
        """
        if self._services:
            self.look_again()
        return self._services

    @services.setter
    def services(self, services: Mapping[str, Any]) -> None:
        self._services = services

    # -- jobs and queues

    def arguments(self, action: str) -> Any:
        """The arguments of an action, as configured: its `Arguments` dataclass, filled in from the policy."""
        return self.policy.configurations[action]

    def jobs(self) -> Iterator[Job]:
        """Every job that cycles consider, including running ones; `cluster.backlog` has those with tasks to place."""
        return (job for job in self.cluster.jobs.values() if job.visible)

    def jobs_by_queue(self, jobs: Iterable[Job]) -> JobsByQueue:
        """These jobs by queue, to be taken in the order of the policy's plugins."""
        return JobsByQueue(self, jobs)

    def reorder(self, jobs: Iterable[Job]) -> None:
        """Sort these jobs again: their order may have changed although none of their tasks moved."""
        self.cluster.feed.note_order(jobs)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """Current sort key of a queue: `queue_order` of all plugins, then creation time and name."""
        return (*self.rules.queue_order(queue), queue.created, queue.name)

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """Current sort key of a job: `job_order` of all plugins, then creation time and name."""
        return (*self.rules.job_order(job), job.created, job.id)

    def task_key(self, task: Task) -> tuple[Any, ...]:
        """Current sort key of a task within its job: `task_order` of all plugins, then replica number and age."""
        return (*self.rules.task_order(task), task.order)

    def sub_job_key(self, sub_job: SubJob) -> tuple[Any, ...]:
        """Current sort key of a sub-group within its job: `sub_job_order` of all plugins, then match label and id."""
        return (*self.rules.sub_job_order(sub_job), sub_job.match_index, sub_job.id)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """Whether a sub-group may start with its allocated tasks; without policies, whether the job may."""
        if not sub_job.job.policies:
            return self.rules.job_ready(sub_job.job)
        return self.rules.sub_job_ready(sub_job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        """Whether a sub-group could start once its pipelined tasks have their resources."""
        if not sub_job.job.policies:
            return self.rules.job_pipelined(sub_job.job)
        return self.rules.sub_job_pipelined(sub_job)

    def queue_of(self, task: Task) -> Queue | None:
        """The queue of a task's job, if it has both."""
        return task.job.queue if task.job is not None else None

    # -- nodes for tasks

    def place(
        self,
        task: Task,
        within: Bools | None = None,
        resource_fit: bool = True,
        domain: Domain | None = None,
    ) -> Place | Verdict:
        """The best node for a task by all filters and scores (among those within), or why there is none.

        It moves nothing. `resource_fit=False` skips the check for enough cpu, memory and other resources. Without a
        `domain` a task of a gang with a network topology is kept to where its gang is.
        """
        refused = self.refused(task)
        if refused:
            return refused
        if domain is None:
            within = self.topology.nodes(task, within)
        if domain is None or domain is self.cluster.hyper_nodes.top:
            return self.placement.find(self.cluster, task, within, resource_fit)
        place = self.placement.find(self.cluster, task, within, resource_fit, domain.rows)
        return place if isinstance(place, Place) else replace(place, hyper_node=domain.name)

    def only(self, node: Node) -> Bools:
        """The set of this one node, for `place`."""
        mask = np.zeros(len(self.cluster.columns), dtype=bool)
        mask[node.row] = True
        return mask

    def refused(self, task: Task) -> Verdict | None:
        """Why no node may take a task: a plugin refuses it or failed for it, or its group is evicted as a whole."""
        job = task.job
        if job in self.reports.failed:
            return Verdict(why=self.reports.failed[job].why)
        if job is not None and job.disrupted_as_group and self.journal.is_losing_tasks(job):
            return verdict_text("its group is being evicted as a whole")
        refused = self.placement.refused(task, len(self.cluster.columns))
        return refused or self.requirements.refused(task)

    def evaluation(self, task: Task) -> Evaluation:
        """The results of filters and scores on all nodes for a task, and for tasks that they do not distinguish."""
        return self.placement.evaluate(self.cluster, task)

    def reachable(self, task: Task, confined: bool = True) -> Bools:
        """Nodes that could take a task now or after evictions.

        With `confined=False`, also nodes outside of the domain to which the topology of its gang keeps it.
        """
        if self.refused(task):
            return np.zeros(len(self.cluster.columns), dtype=bool)
        reachable = self.evaluation(task).reachable(task)
        inside = self.topology.nodes(task) if confined else None
        return reachable if inside is None else reachable & inside

    def ranked(self, task: Task, candidates: Bools) -> Iterator[Node]:
        """Nodes by score, the best first, whether a task fits there or not."""
        nodes = self.cluster.columns.nodes
        evaluation = self.evaluation(task)
        for group in own_nodes_first(self.cluster, candidates):
            if group is not None:
                yield from (nodes[row] for row in evaluation.ranked(task, group))

    def admits(self, task: Task, node: Node) -> bool:
        """Whether a task passes every filter on a node once its releasing tasks have left."""
        return self.evaluation(task).admits(task, node.row, self.cluster.reservations.own_reservation(task))

    def future_idle(self, node: Node, task: Task | None = None) -> Amounts:
        """What a node will have free once its pipelined tasks have started and its releasing tasks have left.

        With a task: for that task, which may use what is reserved for it.
        """
        columns, row = self.cluster.columns, node.row
        free = columns.idle[:, row] + columns.releasing[:, row] - columns.pipelined[:, row]
        own = self.cluster.reservations.own_reservation(task) if task is not None else None
        if own is not None and own.row == row:
            free += own.amount
        return dict(enumerate(free.tolist()))

    # -- moves

    def statement(self) -> Statement:
        """Start a group of moves, to be committed or undone together: `with session.statement() as trial:`."""
        return Statement(self.journal)

    @contextmanager
    def rehearsal(self) -> Iterator[Statement]:
        """A statement that is always undone and not reported."""
        with self.attempts.set_aside(), self.statement() as trial:
            yield trial

    def restore_if_lost(self, entries: dict[str, Any], key: str, before: Any | None) -> None:
        """Call it before an entry of `cluster.memory` changes; if this cycle is lost, it is set to `before` again.

        An entry that was `None` before is removed.
        """

        def back() -> None:
            entries.pop(key, None)
            if before is not None:
                entries[key] = before

        self.journal.record(back, committed=True)

    def reserve(self, task: Task, seconds: float) -> None:
        """Reserve the resources of a pipelined task beyond this cycle, for this many seconds."""
        if task.node is not None and seconds > 0:
            now = self.now
            reservation = Reservation(task.uid, task.request, task.node, now, now + seconds)
            self.journal.deferred.reserve(task, reservation)

    # -- reports, phases and conditions

    def explain(self, task: Task, verdict: Verdict) -> None:
        """Record why a task was not placed, for its user; its role counts as failed in its sub-group."""
        self.attempts.explain(task, verdict)

    @property
    def objections(self) -> dict[Job, str]:
        """Why a job as a whole was left out, in a sentence for its user; actions add to it."""
        return self.reports.objections

    def leave_out(
        self,
        job: Job,
        message: str | Why,
        remedy: str | Remedy = "",
        summary: str = "",
        *,
        way_out: str = "",
    ) -> None:
        """Record why a job is not placed in this cycle, for its user.

        If numbers in the message change from cycle to cycle, the `summary` is the message without them. `way_out` is
        the older name of `remedy`. A `Why`, such as an `Invalid`, has all of this and a code.
        """
        why = message if isinstance(message, Why) else Why(message, remedy or way_out, summary=summary)
        self.reports.leave_out(job, why)

    def refuse(
        self,
        job: Job,
        plugin: str,
        message: str | Why,
        remedy: str | Remedy = "",
        summary: str = "",
        *,
        way_out: str = "",
    ) -> None:
        """Record why a plugin does not admit a job to its queue, for its user, with an event.

        If numbers in the message change from cycle to cycle, the `summary` is the message without them. `way_out` is
        the older name of `remedy`. A `Why` has all of this and a code.
        """
        why = message if isinstance(message, Why) else Why(message, remedy or way_out, summary=summary)
        self.reports.refuse(job, plugin, why)

    def record_event(
        self, job: Job, topic: str, type: str, reason: str, message: str, summary: str = ""
    ) -> None:
        """Record an event about a job, `Normal` or `Warning`, unless the last one on this topic was the same.

        If numbers in the message change from cycle to cycle, only the `summary` is compared.
        """
        self.reports.record_event(job, topic, type, reason, message, summary)

    def set_phase(self, job: Job, phase: str) -> None:
        """Set the phase of a job, independent of statements; `Inqueue` admits a pending job."""
        if phase == names.GROUP_INQUEUE and job.waits_for_queue:
            self.journal.admitted.append(job)
        self.journal.record(partial(self.cluster.set_phase, job, job.phase), committed=True)
        self.cluster.set_phase(job, phase)

    def set_condition(self, job: Job, type: str, reason: str, message: str = "") -> None:
        """Set a condition of a job to true; it is written if it differs from the job's present one.

        `Unschedulable` without a message gets the explanation why the job waits.
        """
        self.reports.conditions.setdefault(job, {})[type] = Condition("True", reason, message)

    # -- failures of plugins

    def guard(self, job: Job) -> FailureGuard:
        """`with session.guard(job):` if a plugin raises in it, this job is left out, with a report for its user."""
        return FailureGuard(self, (job,))

    def guard_queue(self, queue: Queue) -> FailureGuard:
        """As `guard`, for all jobs of a queue."""
        return FailureGuard(self, queue.jobs)

    def reporting(self) -> ReportGuard:
        """A context for code that only makes texts: its errors lose neither the cycle nor a job."""
        return ReportGuard(self)


def _reserves_minimum(policy: Policy) -> bool:
    """Whether the minimum of admitted jobs is reserved: an argument of the action enqueue, if the policy has it."""
    return bool(getattr(policy.configurations.get("enqueue"), "reserves_minimum", False))
