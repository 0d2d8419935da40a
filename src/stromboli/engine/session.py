"""A session: one cycle as a transaction over the live cluster.

Actions ask its `rules`, find nodes with `place`, and move tasks inside statements. Every move is in the journal; when
the session closes, whatever was not committed is taken back. Explanations (verdicts, the last tentative placement of a
task) lie outside the journal and survive the undo.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.engine.decisions import Event, GateRemoval
from stromboli.engine.job_needs import JobNeeds
from stromboli.engine.order import JobsByQueue
from stromboli.engine.placement.node_functions import Refusal
from stromboli.engine.placement.node_placement import Place, Placement
from stromboli.engine.placement.shard_nodes import own_nodes_first
from stromboli.engine.placement.verdict import Verdict, verdict_text
from stromboli.engine.plugin_failures import Failure, FailureGuard, ReportGuard, over
from stromboli.engine.topology.confinement import Confinement
from stromboli.engine.topology.label_gradients import label_gradients, label_scores
from stromboli.engine.topology.label_topology import label_key
from stromboli.engine.topology.topology_limits import highest_tier
from stromboli.engine.transaction import Transaction, Undo
from stromboli.engine.unmet_requirements import Unmet, unmet_by_job, unmet_by_task
from stromboli.engine.waiting.room_waits import RoomWaits
from stromboli.engine.waiting.unrepeatable_reads import UnrepeatableReads
from stromboli.model.cluster import Cluster, Dirty, Refused
from stromboli.model.job import SubJob
from stromboli.model.remedy import Remedy, remedy_of
from stromboli.model.reservations import Reservation
from stromboli.model.status import Status
from stromboli.model.task import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.plugin import HeldBack
    from stromboli.engine.rules import Rules
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job
    from stromboli.model.ledgers import Grant
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain
    from stromboli.policy.policy import Policy


_TOLD = ("written", "conditions", "condition", "reported")
"""Fields of the model that say what was told; no rule reads them."""


class Advice(NamedTuple):
    """What is wrong with a job that was left out, without numbers that move, and what would help."""

    summary: str
    remedy: Remedy


class EnqueueRefusal(NamedTuple):
    """Why a plugin does not let a job into its queue; the summary is without numbers that move."""

    message: str
    summary: str
    remedy: str


class Session(Transaction):
    """What actions and plugins see of a cycle."""

    action = ""
    """The name of the action that runs."""

    def __init__(
        self, cluster: Cluster, policy: Policy, rules: Rules, placement: Placement, now: float, id: str
    ):
        super().__init__(cluster)
        self.policy = policy
        self.rules = rules
        """The extension points as functions that ask every plugin of the policy: `session.rules.job_ready(job)`."""
        self.reads = UnrepeatableReads(now)
        """What was read in this session that may be otherwise in the next though nothing happens."""
        self.id = id
        self._services: Mapping[str, Any] = {}
        self.features: frozenset[str] = frozenset()
        """Feature gates that are on, of those that are off by default."""
        self.total: Amounts = cluster.total
        """What is allocatable on all nodes together; stays as it is while the cycle runs."""
        self.sharable: Amounts = cluster.sharable
        """What queues share: `total`, and what tasks hold beyond the size of their nodes; stays as it is as well."""
        self.objections: dict[Job, str] = {}
        """Why a job as a whole was left out, in a sentence that its user reads; actions add to it."""
        self.advice: dict[Job, Advice] = {}
        """Of jobs that were left out by `leave_out`."""
        self.left_out: dict[Job, Failure] = {}
        """Jobs that are not placed at all in this session because a plugin failed over them before."""
        self.failures: list[Failure] = []
        self.conditions: dict[Job, dict[str, Condition]] = {}
        """Conditions that plugins set on jobs in this session, by type."""
        self.phases: dict[Job, str] = {}
        """Phases that jobs have once the cycle has come to its end."""
        self.let_in: list[Job] = []
        """Jobs that were let into their queues in this session."""
        self.changed: Dirty = cluster.dirty
        """What changed since the session before this one opened."""
        self.refusals: dict[Job, dict[str, EnqueueRefusal]] = {}
        """Why jobs were not let into their queues, by plugin."""
        self.held_back: dict[Job, HeldBack] = {}
        """Jobs that were not tried for the sake of others, and why."""
        self.news: dict[Job, None] = {}
        """Jobs of which plugins have something new to tell, though they did not change."""
        self.ungated: list[Task] = []
        """Tasks that were let out of their queue's gate in this session."""
        self.needs = JobNeeds(
            cluster,
            rules.tasks_needed,
            _reserves_minimum(policy),
            rules.ignores_node_labels,
            self.network_topology,
        )
        """What jobs need to start, and which of them no nodes could hold."""
        self.waits = RoomWaits()
        """Jobs that nobody tries because they wait for more room than there is."""
        self.is_over: Callable[[], bool] = lambda: False
        """Whether nobody cares for what else is decided, as in a rehearsal that has seen enough."""
        self._placement = placement
        self._unmet: dict[Job, Unmet | None] = {}
        self._confinement = Confinement(self)
        self._trial_domains: dict[Job | SubJob, Domain | None] = {}
        self._reported: dict[tuple[Job, str], tuple[str, str] | None] = {}
        self._writes: list[tuple[Job | SubJob | Task | Queue, str, Any]] = []
        self._reservations: dict[Task, Reservation] = {}

    # -- time, and the world outside

    @property
    def now(self) -> float:
        """The time of the cycle, in seconds since 1970; it stands still while the cycle runs.

        Once it was read, the next cycle tries everybody again. To ask whether a moment has come, use `has_come`.
        """
        return self.reads.now()

    def has_come(self, moment: float) -> bool:
        """Whether a moment has come; if not, and nothing happens, nobody is tried again before it."""
        return self.reads.has_come(moment)

    def look_again(self) -> None:
        """Let the next cycle try everybody again, whatever happens: somebody gave an answer that does not last."""
        self.reads.any = True

    @property
    def services(self) -> Mapping[str, Any]:
        """How plugins call out, by name, handed in by the process that runs the scheduler; empty in a rehearsal.

        Once any of them was looked for, the next cycle tries everybody again.
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
        """Every job that takes part in cycles, running ones too; `cluster.backlog` has just those with work to do."""
        return (job for job in self.cluster.jobs.values() if job.visible)

    def jobs_by_queue(self, jobs: Iterable[Job]) -> JobsByQueue:
        """These jobs in their queues, to be taken in the order that the policy's plugins give them."""
        return JobsByQueue(self, jobs)

    def reorder(self, jobs: Iterable[Job]) -> None:
        """Say that the places of these jobs in their queues may have changed, though no task of theirs moved."""
        self.cluster.touched.extend(jobs)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """Sort key of queues at this moment: `queue_order` of all plugins, then creation time and name."""
        return (*self.rules.queue_order(queue), queue.created, queue.name)

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """Sort key of jobs at this moment: `job_order` of all plugins, then creation time and name."""
        return (*self.rules.job_order(job), job.created, job.id)

    def task_key(self, task: Task) -> tuple[Any, ...]:
        """Sort key of a job's tasks at this moment: `task_order` of all plugins, then replica number and age."""
        return (*self.rules.task_order(task), task.order)

    def sub_job_key(self, sub_job: SubJob) -> tuple[Any, ...]:
        """Sort key of a job's sub-groups at this moment: `sub_job_order` of all plugins, then match label and id."""
        return (*self.rules.sub_job_order(sub_job), sub_job.match_index, sub_job.id)

    def compare_victim_queues(self, left: Queue, right: Queue, mine: Queue) -> int:
        """Below zero if the left queue loses to mine before the right one does."""
        order = self.rules.victim_queue_order(left, right, mine)
        if order:
            return order
        left_key, right_key = self.queue_key(left), self.queue_key(right)
        return (left_key < right_key) - (left_key > right_key)

    def network_topology(self, unit: Job | SubJob) -> int | None:
        """The highest tier that a job or a sub-group may span; none if it asks for no topology."""
        return highest_tier(self.cluster.hyper_nodes, unit)

    def allocated_domain(self, unit: Job | SubJob) -> Domain | None:
        """The lowest domain that has all tasks of a job or a sub-group which hold room; none if nothing does.

        While `allocate` searches it counts the tasks that the trial has placed, so it changes from task to task.
        """
        if unit in self._trial_domains:
            return self._trial_domains[unit]
        return self.cluster.hyper_nodes.domain(unit.allocated_hyper_node)

    def follow(self, sub_job: SubJob, node: Node) -> None:
        """Count a node in what `allocated_domain` says, until `stop_following`."""
        tree, before = self.cluster.hyper_nodes, self.allocated_domain(sub_job)
        leaf = tree.leaf_of(node.row)
        self._trial_domains[sub_job] = before if leaf is None else tree.lowest_common(leaf, before)

    def stop_following(self, sub_job: SubJob) -> None:
        """A trial has come to its end: `allocated_domain` is again what it was before."""
        self._trial_domains.pop(sub_job, None)

    def widen(self, unit: Job | SubJob, domain: Domain) -> None:
        """Count a domain in which tasks were placed in the allocated HyperNode; undone as the moves are."""
        if label_key(unit):
            return  # no HyperNode, and it follows from where the tasks are
        common = self.cluster.hyper_nodes.lowest_common(self.allocated_domain(unit), domain)
        if common is not None and common.name != unit.allocated_hyper_node:
            self.update(unit, "allocated_hyper_node", common.name)
        if isinstance(unit, SubJob) and unit.nominated_hyper_node:
            self.update(unit, "nominated_hyper_node", "")

    def gradients(self, unit: Job | SubJob, root: Domain, purpose: str) -> list[list[Domain]]:
        """Groups of domains to try for a job or a sub-group, best first; without a plugin just the root."""
        if label_key(unit):
            return label_gradients(self, unit, root, purpose)
        answer = self.rules.hyper_node_gradients(unit, root, purpose)
        return [[root]] if answer is None else answer

    def domain_scores(self, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
        """How good domains are that have room for a sub-group, by name; a domain that is missing scores nothing."""
        if label_key(sub_job):
            return label_scores(self, sub_job, domains)
        return self.rules.hyper_node_scores(sub_job, domains)

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """Whether a sub-group may start with what it has; that of a job without policies may if the job may."""
        if not sub_job.job.policies:
            return self.rules.job_ready(sub_job.job)
        return self.rules.sub_job_ready(sub_job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        """Whether a sub-group could start once promised room is free."""
        if not sub_job.job.policies:
            return self.rules.job_pipelined(sub_job.job)
        return self.rules.sub_job_pipelined(sub_job)

    # -- placing

    def place(
        self,
        task: Task,
        within: Bools | None = None,
        resource_fit: bool = True,
        domain: Domain | None = None,
    ) -> Place | Verdict:
        """The best node for a task by all filters and scores (among those within), or why there is none.

        It moves nothing. `resource_fit=False` leaves out whether there is enough cpu, memory and so on. Without a
        `domain` a task of a gang with a network topology is kept to where its gang is.
        """
        refused = self.refused(task)
        if refused:
            return refused
        if domain is None:
            within = self._confined(task, within)
        if domain is None or domain is self.cluster.hyper_nodes.top:
            return self._placement.find(self.cluster, task, within, resource_fit)
        place = self._placement.find(self.cluster, task, within, resource_fit, domain.rows)
        return place if isinstance(place, Place) else replace(place, hyper_node=domain.name)

    def place_quietly(self, task: Task, within: Bools | None = None) -> Place | None:
        """As `place`, for those who do not ask why there is none."""
        if self.refused(task):
            return None
        return self._placement.find_quietly(self.cluster, task, self._confined(task, within))

    def is_confined(self, task: Task) -> bool:
        """Whether a hard topology keeps a task to the domain of its gang."""
        return self._confinement.applies_to(task)

    def _confined(self, task: Task, within: Bools | None) -> Bools | None:
        """Of these nodes, those that a task may use without leaving the domain of its gang."""
        confined = self._confinement.nodes(task)
        if confined is None:
            return within
        return confined if within is None else within & confined

    def refused(self, task: Task) -> Verdict | None:
        """Why no node may take a task: a plugin refuses it or failed over it, or its group is evicted as a whole."""
        job = task.job
        if job in self.left_out:
            return verdict_text(self.left_out[job].message)
        if job is not None and job.disrupted_as_group and self.is_losing_tasks(job):
            return verdict_text("its group is being evicted as a whole")
        return self._placement.refused(task, len(self.cluster.columns)) or self._refused_by_requirement(task)

    def unmet(self, job: Job) -> Unmet | None:
        """The requirement of a job's PodGroup or queue that cannot be met in this session, if there is one."""
        if job not in self._unmet:
            self._unmet[job] = unmet_by_job(self, job)
        return self._unmet[job]

    def _refused_by_requirement(self, task: Task) -> Verdict | None:
        unmet = self.unmet(task.job) if task.job else None
        if unmet is None and task.demands:
            unmet = unmet_by_task(self, task)
        if unmet is None:
            return None
        return Verdict(text=unmet.message, requirement=unmet.requirement, remedy=unmet.remedy)

    def shape_key(self, task: Task) -> Hashable:
        """All that node functions read of a task."""
        return self._placement.key(task)

    def reachable(self, task: Task, confined: bool = True) -> Bools:
        """Nodes on which nothing but what an eviction may cure keeps a task out.

        With `confined=False`, nodes too to which the topology of its gang does not let it.
        """
        if self.refused(task):
            return np.zeros(len(self.cluster.columns), dtype=bool)
        reachable = self.reachable_by_kind(task)
        inside = self._confinement.nodes(task) if confined else None
        return reachable if inside is None else reachable & inside

    def reachable_by_kind(self, task: Task) -> Bools:
        """The same of all tasks that filters take for one: whatever keeps this task alone out does not count."""
        return self._placement.evaluate(self.cluster, task).reachable(task)

    def usable(self, task: Task) -> Bools:
        """Nodes that a task may use as far as their labels, taints and sizes say, full or not."""
        return self._placement.evaluate(self.cluster, task).allowed

    def goes_by_numbers(self, task: Task) -> bool:
        """Whether every filter for a task looks at a node's own object and numbers alone, not at other pods or time."""
        return self._placement.evaluate(self.cluster, task).goes_by_numbers

    def ranked(self, task: Task, candidates: Bools) -> Iterator[Node]:
        """Nodes by score, the best first, whether a task fits there or not."""
        nodes = self.cluster.columns.nodes
        evaluation = self._placement.evaluate(self.cluster, task)
        for group in own_nodes_first(self.cluster, candidates):
            if group is not None:
                yield from (nodes[row] for row in evaluation.ranked(task, group))

    def admits(self, task: Task, node: Node) -> bool:
        """Whether a task fits on a node once what is leaving has left, by every filter."""
        evaluation = self._placement.evaluate(self.cluster, task)
        return evaluation.admits(task, node.row, self.cluster.reservations.own_room(task))

    def is_filtered(self, task: Task, node: Node) -> bool:
        """Whether filters that look at more than the numbers of a node keep a task from it, even once others left."""
        return self._placement.evaluate(self.cluster, task).is_filtered(node.row)

    def future_idle(self, node: Node, task: Task | None = None) -> Amounts:
        """What a node will have free once all that is promised and all that is leaving has come to pass.

        With a task: for that task, which may use what is reserved for it.
        """
        columns, row = self.cluster.columns, node.row
        free = columns.idle[:, row] + columns.releasing[:, row] - columns.pipelined[:, row]
        own = self.cluster.reservations.own_room(task) if task is not None else None
        if own is not None and own.row == row:
            free += own.amount
        return dict(enumerate(free.tolist()))

    def queue_of(self, task: Task) -> Queue | None:
        """The queue of a task's job, if it has both."""
        return task.job.queue if task.job is not None else None

    def only(self, node: Node) -> Bools:
        """A set of nodes that holds just this one, for `place`."""
        mask = np.zeros(len(self.cluster.columns), dtype=bool)
        mask[node.row] = True
        return mask

    # -- once placed

    def _grants(self, task: Task, status: Status, node: Node) -> tuple[Grant, ...] | Refused:
        grants: list[Grant] = []
        for answer in self.rules.grants(task, node, status is Status.ALLOCATED):
            if isinstance(answer, Refusal):
                return Refused(answer.reason, answer.remedy)
            grants.append(answer)
        return tuple(grants)

    def reserve(self, task: Task, seconds: float) -> None:
        """Keep the room that was promised to a task (pipelined) for it beyond this cycle, for so many seconds."""
        if task.node is not None and seconds > 0:
            now = self.now
            self._reservations[task] = Reservation(task.uid, task.request, task.node, now, now + seconds)

    def bind(self, task: Task) -> None:
        """Decide that an allocated task runs where it was placed; never one with a requirement that is not met."""
        refused = self._refused_by_requirement(task)
        if refused is None and not self._confinement.holds(task):
            refused = verdict_text(names.ACROSS_TIER)
        if refused:  # an action did not ask; the task keeps its room until the session closes
            self.explain(task, refused)
        else:
            super().bind(task)

    def bind_allocated(self, job: Job) -> None:
        """Bind every task of a job that holds room, whichever action allocated it."""
        for task in sorted(job.by_status[Status.ALLOCATED], key=self.task_key):
            self.bind(task)

    def lift_gate(self, task: Task) -> None:
        """Let a task out of the gate that held it until its queue had room; it is placed once that is done."""
        if task in self.ungated:
            return
        self.ungated.append(task)
        self.decisions.append(GateRemoval(task.namespace, task.name, task.uid))

    # -- events, phases and conditions

    def record_event(
        self, job: Job, topic: str, type: str, reason: str, message: str, summary: str = ""
    ) -> None:
        """Record an event about a job, `Normal` or `Warning`, unless the last one on this topic was the same.

        Of a message with numbers that move, the `summary` is what must differ.
        """
        if self._is_new(job, topic, reason, summary or message):
            self.decisions.append(Event(*job.id, type, reason, message, topic=topic, job=job.id))

    def record_owner_event(self, job: Job, type: str, reason: str, message: str) -> None:
        """An event about the object that a PodGroup was made for, such as a Job, unless the last was the same."""
        owner = job.owner
        if owner is not None and self._is_new(job, "owner", reason, message):
            subject = (owner.kind, job.namespace, owner.name)
            identity = (owner.api_version, owner.uid)
            event = Event(*subject, type, reason, message, *identity, topic="owner", job=job.id)
            self.decisions.append(event)

    def forget_events(self, job: Job, reason: str) -> None:
        """Let events with this reason be new again, as they are true no longer and may never have been written."""
        for topic, (last, _) in job.reported.items():
            if last == reason:
                self._reported.setdefault((job, topic), None)

    def _is_new(self, job: Job, topic: str, reason: str, summary: str) -> bool:
        if self._reported.get((job, topic), job.reported.get(topic)) == (reason, summary):
            return False
        self._reported[job, topic] = (reason, summary)
        return True

    def refuse(
        self,
        job: Job,
        plugin: str,
        message: str,
        remedy: str = "",
        summary: str = "",
        *,
        way_out: str = "",
    ) -> None:
        """A plugin does not admit a job to its queue: an event says why, and so does all that explains the job.

        If numbers in the message move, the `summary` is the message without them. `way_out` is the older name of
        `remedy`.
        """
        refusal = EnqueueRefusal(message, summary or message, remedy or way_out)
        self.refusals.setdefault(job, {})[plugin] = refusal
        self.record_event(job, f"gate:{plugin}", "Normal", names.EVENT_UNSCHEDULABLE, message, summary)

    def retract_refusals(self, job: Job, start: int) -> None:
        """Forget that plugins refused a job which is admitted after all, with their events since decision `start`."""
        for plugin in self.refusals.pop(job, {}):
            self._reported.pop((job, f"gate:{plugin}"), None)
        self.decisions[start:] = [
            decision
            for decision in self.decisions[start:]
            if not (
                isinstance(decision, Event) and decision.job == job.id and decision.topic.startswith("gate:")
            )
        ]

    def leave_out(
        self, job: Job, message: str, remedy: str | Remedy = "", summary: str = "", *, way_out: str = ""
    ) -> None:
        """A job is not placed in this cycle: all that explains the job says why.

        If numbers in the message move, the `summary` is the message without them. `way_out` is the older name of
        `remedy`.
        """
        self.objections[job] = message
        self.advice[job] = Advice(summary or message, remedy_of(remedy or way_out))

    def write(self, target: Job | SubJob | Task | Queue, field: str, value: Any) -> None:
        """Set a field of the model once the cycle has come to its end."""
        self._writes.append((target, field, value))

    def update(self, target: Job | SubJob | Task, field: str, value: Any) -> None:
        """Set a field of the model now; taken back with the statement that it is part of."""
        self.record(partial(setattr, target, field, getattr(target, field)))
        setattr(target, field, value)

    def set_phase(self, job: Job, phase: str) -> None:
        """Give a job another phase, for good; `Inqueue` lets a waiting one in."""
        if phase == names.GROUP_INQUEUE and job.waits_for_queue:
            self.let_in.append(job)
        self.record(partial(self.cluster.set_phase, job, job.phase), committed=True)
        self.cluster.set_phase(job, phase)

    def set_condition(self, job: Job, type: str, reason: str, message: str = "") -> None:
        """Set a condition of a job to true; it is written when it differs from what stands there.

        `Unschedulable` without a message gets the explanation why the job waits.
        """
        self.conditions.setdefault(job, {})[type] = Condition("True", reason, message)

    # -- when a plugin raises

    def guard(self, job: Job) -> FailureGuard:
        """`with session.guard(job):` whatever a plugin raises in it leaves this job out, and its user reads why."""
        return FailureGuard(self, (job,))

    def guard_queue(self, queue: Queue) -> FailureGuard:
        """As `guard`, for all jobs of a queue."""
        return FailureGuard(self, queue.jobs)

    def reporting(self) -> ReportGuard:
        """Around words about a job: whatever raises there costs neither the cycle nor the job."""
        return ReportGuard(self)

    def exclude(self, jobs: Iterable[Job], failure: Failure) -> None:
        """These jobs get no room in this cycle because a plugin failed over them."""
        charged = tuple(jobs)
        self.failures.append(over(charged, failure))
        for job in charged:
            self._charge(job, failure)

    def leave_out_failed(self, job: Job, failure: Failure) -> None:
        """Give a job no room, whatever an action tries, because a plugin failed over it in an earlier cycle."""
        self.left_out[job] = failure
        self._charge(job, failure)

    def _charge(self, job: Job, failure: Failure) -> None:
        """Let the user of a job read what failed over it."""
        self.leave_out(job, failure.message, failure.remedy, failure.summary)
        for task in job.by_status[Status.PENDING]:
            self.verdicts.setdefault(job, {})[task] = verdict_text(failure.message)
            self.tentative.pop(task, None)

    # -- the end

    @property
    def changed_cluster(self) -> bool:
        """Whether what was decided changes anything that rules, filters or actions read; before `finish`."""
        committed = any(entry.committed for entry in self.journal if isinstance(entry, Undo))
        moved = bool(self._settled) or committed
        wrote = any(field not in _TOLD for _, field, _ in self._writes)
        return moved or wrote or bool(self._reservations or self.phases)

    def recall(self, earlier: Session) -> None:
        """Take over what an earlier session found out, in whose place this one stands without having run."""
        self.verdicts, self.tentative = earlier.verdicts, earlier.tentative
        self.without_domain, self.had_room = earlier.without_domain, earlier.had_room
        self.objections, self.advice, self.refusals = earlier.objections, earlier.advice, earlier.refusals
        self.uncommitted, self.held_back = earlier.uncommitted, earlier.held_back

    def finish(self) -> None:
        """Undo what was kept but not committed, and write what was decided into the model."""
        self.take_back()
        self._write_down()
        for (job, topic), event in self._reported.items():
            if event is None:
                job.reported.pop(topic, None)
            else:
                job.reported[topic] = event

    def _write_down(self) -> None:
        for target, field, value in self._writes:
            setattr(target, field, value)
        for job, phase in self.phases.items():
            self.cluster.set_phase(job, phase)
        for task, reservation in self._reservations.items():
            if task.status is Status.PENDING:
                self.cluster.reservations.reserve(reservation)

    @contextmanager
    def finished_for_now(self) -> Iterator[None]:
        """The model as after `finish` while this lasts; after that it is as before the session."""
        committed = self.take_back()
        written = [(target, field, getattr(target, field)) for target, field, _ in self._writes]
        phases = [(job, job.phase) for job in self.phases]
        reservations = self.cluster.reservations
        reserved = [(task.uid, reservations.of(task.uid)) for task in self._reservations]
        self._write_down()
        try:
            yield
        finally:
            for owner, before in reserved:
                reservations.release(owner)
                if before is not None:
                    reservations.reserve(before)
            for job, phase in phases:
                self.cluster.set_phase(job, phase)
            for target, field, value in reversed(written):
                setattr(target, field, value)
            self.journal = committed[::-1]
            self.abort()


def _reserves_minimum(policy: Policy) -> bool:
    """Whether the gate reserves what admitted jobs lack: the action enqueue says so, if the catalog has it."""
    return bool(getattr(policy.configurations.get("enqueue"), "reserves_minimum", False))
