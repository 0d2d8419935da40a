"""The journal of a session: every move can be undone, and the decisions follow from what is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from stromboli.api import names
from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.attribution import raise_attributed
from stromboli.engine.decisions import Bind, Decision, Event, Evict, GateRemoval
from stromboli.engine.job_reports import TentativePlacement, Uncommitted
from stromboli.engine.placement.node_functions import Refusal
from stromboli.engine.placement.verdict import Verdict, verdict_of, verdict_text
from stromboli.engine.plugin_failures import CycleLost, failure_of
from stromboli.model.cluster import Change, ListenerFailed, Refused
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job, SubJob
    from stromboli.model.ledgers import Grant
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.reservations import Reservation
    from stromboli.model.task import Task


class EvictionReason(NamedTuple):
    """Why a pod was evicted: the action, the beneficiary and its domain, and the plugins that chose the pod."""

    action: str
    """The name of the action, as in the policy."""
    beneficiary: str = ""
    """The key of the job that it was evicted for, `namespace/name`."""
    chosen_by: str = ""
    """The plugins that chose it, as in `Choice.by`."""
    domain: str = ""
    """The domain that was cleared, such as `HyperNode s1`; empty if the job may use capacity anywhere."""
    destination: str = ""
    """The node on which it is to start again, if it is moved; empty if it is not."""

    @property
    def sentence(self) -> str:
        """`gangpreempt for default/urgent in HyperNode s1, chosen by tier 1 (priority, conformance)`."""
        beneficiary = f" for {self.beneficiary}" if self.beneficiary else ""
        where = f" in {self.domain}" if self.domain else ""
        moves = f", to start again on {self.destination}" if self.destination else ""
        chosen_by = f", chosen by {self.chosen_by}" if self.chosen_by else ""
        return f"{self.action}{beneficiary}{where}{moves}{chosen_by}"


@dataclass(slots=True, eq=False)
class Undo:
    """How to undo a change that is not a move."""

    back: Callable[[], None]
    committed: bool


class Journal:
    """All moves of a session in order, and the decisions that follow from those that are committed."""

    def __init__(self, session: Session):
        self._session = session
        self._cluster = session.cluster
        self.entries: list[Change | Undo] = []
        self.decisions: list[Decision] = []
        """Binds, evictions and events, in the order in which they were decided."""
        self.admitted: list[Job] = []
        """Jobs that were admitted to their queues."""
        self.deferred = DeferredChanges(session.cluster)
        """What changes in the model when the session closes."""
        self.open_statements = 0
        self.refused_moves = 0
        """How many moves were refused by plugins."""
        self.rollbacks: list[int] = []
        """The length of the journal after each rollback."""
        self.ungated: list[Task] = []
        """Tasks whose scheduling gate is removed because their queues have capacity for them."""
        self._settled: set[Task] = set()
        self._nominated: set[Task] = set()
        self._evictions: dict[Task, EvictionReason] = {}

    def __len__(self) -> int:
        return len(self.entries)

    # -- moving

    def give(self, task: Task, status: Status, node: Node) -> Refused | None:
        """Move a task to a node, with the grants that plugins choose for it there; a plugin may refuse."""
        grants = self._grants(task, status, node) if self._cluster.ledgers_of(task.shape) else ()
        if isinstance(grants, Refused):
            self.refused_moves += 1
            return grants
        return self.move(task, status, node, grants)

    def _grants(self, task: Task, status: Status, node: Node) -> tuple[Grant, ...] | Refused:
        grants: list[Grant] = []
        for answer in self._session.rules.grants(task, node, status is Status.ALLOCATED):
            if isinstance(answer, Refusal):
                return Refused(answer.reason, answer.remedy, answer.code)
            grants.append(answer)
        return tuple(grants)

    def move(
        self, task: Task, status: Status, node: Node | None, grants: tuple[Grant, ...] = ()
    ) -> Refused | None:
        """Move a task and add the move to the journal; a listener may refuse."""
        try:
            change = self._cluster.move(task, status, node, grants)
        except ListenerFailed as error:
            self._lose_cycle(error)
        if isinstance(change, Refused):
            self.refused_moves += 1
            return change
        self.entries.append(change)
        return None

    def update(self, target: Job | SubJob | Task, field: str, value: Any) -> None:
        """Set a field of the model now; undone with the statement that it is part of."""
        self.record(partial(setattr, target, field, getattr(target, field)))
        setattr(target, field, value)

    def record(self, back: Callable[[], None], committed: bool = False) -> None:
        """Add a change that is not a move, with the function that undoes it; only `abort` undoes a committed one."""
        self.entries.append(Undo(back, committed))

    # -- undoing

    def roll_back(self, start: int) -> None:
        """Undo everything since a position, the last first, and record where tasks were."""
        self.rollbacks.append(start)
        attempts = self._session.attempts
        allocated: set[Task] = set()
        while len(self.entries) > start:
            entry = self.entries.pop()
            if isinstance(entry, Undo):
                entry.back()
                continue
            task = entry.task
            if task.status in (Status.ALLOCATED, Status.PIPELINED) and task.node is not None:
                attempts.tentative[task] = TentativePlacement(task.status, task.node, task in self._nominated)
                if task.status is Status.ALLOCATED:
                    allocated.add(task)
            if entry.status is Status.PIPELINED:
                self._nominated.discard(task)
            elif entry.status is Status.RELEASING:
                self._evictions.pop(task, None)
            self._undo(entry)
        if allocated:
            attempts.allocated_at_once.update(Counter(task.job for task in allocated if task.job is not None))

    def _undo(self, change: Change) -> None:
        try:
            self._cluster.undo(change)
        except ListenerFailed as error:
            self._lose_cycle(error)

    def _lose_cycle(self, failed: ListenerFailed) -> NoReturn:
        try:
            raise_attributed(failed.cause, getattr(failed.listener, "name", ""), "on_move")
        except self._session.confined as error:
            raise CycleLost(failure_of(error)) from failed

    def take_back(self) -> list[Change | Undo]:
        """Undo uncommitted entries; return the committed ones, the last first.

        If a listener fails, the journal holds the entries that are left to abort.
        """
        committed: list[Change | Undo] = []
        try:
            while self.entries:
                entry = self.entries.pop()
                if entry.committed if isinstance(entry, Undo) else entry.task in self._settled:
                    committed.append(entry)
                elif isinstance(entry, Undo):
                    entry.back()
                else:
                    self._undo(entry)
        except BaseException:
            self.entries.extend(reversed(committed))
            raise
        return committed

    def abort(self) -> None:
        """Undo the whole session, committed changes included, and drop its decisions."""
        for entry in reversed(self.entries):
            if isinstance(entry, Undo):
                entry.back()
            else:
                self._cluster.undo(entry)
        self.entries.clear()
        self.decisions.clear()

    # -- deciding

    def settle(self, start: int) -> None:
        """Commit everything since a position: bind allocated tasks, evict releasing ones."""
        for entry in self.entries[start:]:
            if isinstance(entry, Undo):
                entry.committed = True
            elif entry.task.status is Status.ALLOCATED:
                self.bind(entry.task)
            elif entry.task.status is Status.PIPELINED:
                self._session.attempts.tentative.pop(entry.task, None)
            elif entry.task.status is Status.RELEASING and entry.task not in self._settled:
                self._evict(entry.task)

    def bind(self, task: Task) -> None:
        """Decide to bind an allocated task to its node, unless one of its requirements is not met.

        A task that may not be bound keeps its node until the session closes; its allocation is undone then.
        """
        refused = self._refused_bind(task)
        if refused is not None:
            self._session.attempts.explain(task, refused)
            return
        node, job = task.node, task.job
        if node is None or job is None:
            raise RuntimeError(f"{task!r} cannot be bound")
        moved = self.move(task, Status.BINDING, node)
        if moved is not None:
            self._session.attempts.explain(task, verdict_of(moved))
            return
        self._settled.add(task)
        self._session.attempts.tentative.pop(task, None)
        self.decisions.append(Bind(task.namespace, task.name, task.uid, node.name, job.key, task.grants))

    def _refused_bind(self, task: Task) -> Verdict | None:
        """Why a task must not be bound, whatever an action decided."""
        refused = self._session.requirements.refused(task)
        if refused is None and not self._session.topology.holds(task):
            return verdict_text(names.ACROSS_TIER)
        return refused

    def bind_allocated(self, job: Job) -> None:
        """Bind every allocated task of a job, whichever action allocated it."""
        for task in sorted(job.by_status[Status.ALLOCATED], key=self._session.task_key):
            self.bind(task)

    def lift_gate(self, task: Task) -> None:
        """Remove the scheduling gate of a task whose queue has capacity now; a later cycle places the task."""
        if task not in self.ungated:
            self.ungated.append(task)
            self.decisions.append(GateRemoval(task.namespace, task.name, task.uid))

    def _evict(self, task: Task) -> None:
        self._settled.add(task)
        reason = self.eviction_of(task)
        named = self._cluster.dims.named({dim: int(amount) for dim, amount in task.request.items()})
        job = task.job.key if task.job else ""
        node = task.node.name if task.node else ""
        self.decisions.append(
            Evict(
                task.namespace,
                task.name,
                task.uid,
                node,
                job,
                reason.action,
                reason.action,
                reason.beneficiary,
                reason.chosen_by,
                resource_list(named),
                reason.domain,
                reason.destination,
            )
        )
        text = names.POD_EVICTED.format(reason=reason.sentence)
        self.decisions.append(Event("Pod", task.namespace, task.name, "Warning", names.EVENT_EVICT, text))
        if task.job is not None:
            message = f"{task.name}: {reason.sentence}"
            id = task.job.id
            event = Event(id.kind, id.namespace, id.name, "Normal", names.EVENT_EVICT, message)
            self.decisions.append(event)

    def nominate(self, task: Task) -> None:
        """Record that pods were evicted for this task."""
        self._nominated.add(task)

    def is_nominated(self, task: Task) -> bool:
        """Whether pods were evicted for this task."""
        return task in self._nominated

    def record_eviction(self, task: Task, reason: EvictionReason) -> None:
        """Record why a task is evicted."""
        self._evictions[task] = reason

    def eviction_of(self, task: Task) -> EvictionReason:
        """Why a task was evicted in this session."""
        return self._evictions.get(task, EvictionReason(""))

    def is_losing_tasks(self, job: Job) -> bool:
        """Whether tasks of a job were evicted in this session."""
        return any(task in self._evictions for task in job.by_status[Status.RELEASING])

    # -- closing

    @property
    def affects_decisions(self) -> bool:
        """Whether a later cycle may decide otherwise because of what was committed; to be asked before `finish`."""
        if self._settled or self.deferred.affect_decisions:
            return True
        return any(entry.committed for entry in self.entries if isinstance(entry, Undo))

    def finish(self) -> None:
        """Undo what was kept but not committed, and write what was decided into the model."""
        self.take_back()
        self.deferred.apply()

    @contextmanager
    def finished_for_now(self) -> Iterator[None]:
        """Within this context the model is as after `finish`; after it, it is as before the session."""
        committed = self.take_back()
        try:
            with self.deferred.applied_for_now():
                yield
        finally:
            self.entries = committed[::-1]
            self.abort()

    def remember_uncommitted(self) -> None:
        """Record what tasks hold now and lose by `take_back`."""
        if not self.entries:
            return
        touched = {entry.task for entry in self.entries if isinstance(entry, Change)}
        tasks = [task for task in touched if task.status in (Status.ALLOCATED, Status.PIPELINED)]
        promised = Counter(task.job for task in tasks if task.job)
        self._session.attempts.uncommitted = Uncommitted(
            dict(sorted((t.key, t.node.name) for t in tasks if t.status is Status.PIPELINED and t.node)),
            self._cluster.columns.idle.copy(),
            promised,
            {job.queue: dict(job.queue.held) for job in promised if job.queue},
        )


# -- changes that take effect when the session closes


_REPORT_ONLY_FIELDS = ("written", "conditions", "condition", "reported")
"""Fields of the model that hold what was reported; no rule reads these."""


class DeferredChanges:
    """Fields, phases and reservations to set."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._fields: list[tuple[Job | SubJob | Task | Queue, str, Any]] = []
        self._reservations: dict[Task, Reservation] = {}
        self.phases: dict[Job, str] = {}
        """The phases that jobs will have."""

    def write(self, target: Job | SubJob | Task | Queue, field: str, value: Any) -> None:
        """Set a field of the model when the session closes."""
        self._fields.append((target, field, value))

    def reserve(self, task: Task, reservation: Reservation) -> None:
        """Reserve capacity for a task when the session closes, if it is pending then."""
        self._reservations[task] = reservation

    @property
    def affect_decisions(self) -> bool:
        """Whether the changes concern inputs of rules, filters or actions."""
        wrote = any(field not in _REPORT_ONLY_FIELDS for _, field, _ in self._fields)
        return wrote or bool(self._reservations or self.phases)

    def apply(self) -> None:
        """Make all changes."""
        for target, field, value in self._fields:
            setattr(target, field, value)
        for job, phase in self.phases.items():
            self._cluster.set_phase(job, phase)
        for task, reservation in self._reservations.items():
            if task.status is Status.PENDING:
                self._cluster.reservations.reserve(reservation)

    @contextmanager
    def applied_for_now(self) -> Iterator[None]:
        """Within this context all changes are made; after it they are undone."""
        fields = [(target, field, getattr(target, field)) for target, field, _ in self._fields]
        phases = [(job, job.phase) for job in self.phases]
        reservations = self._cluster.reservations
        reserved = [(task.uid, reservations.of(task.uid)) for task in self._reservations]
        self.apply()
        try:
            yield
        finally:
            for owner, before in reserved:
                reservations.release(owner)
                if before is not None:
                    reservations.reserve(before)
            for job, phase in phases:
                self._cluster.set_phase(job, phase)
            for target, field, value in reversed(fields):
                setattr(target, field, value)
