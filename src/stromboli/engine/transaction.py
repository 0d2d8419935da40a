"""A transaction over the live cluster: every move is in a journal, and what is not committed can be taken back.

What is remembered of moves that were undone (where tasks had stood, why others were not placed) lies outside the
journal and survives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from stromboli.api import names
from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.attribution import raise_attributed
from stromboli.engine.decisions import Bind, Decision, Event, Evict
from stromboli.engine.placement.verdict import Verdict, verdict_of
from stromboli.engine.plugin_failures import CycleLost, failure_of
from stromboli.engine.statement import Statement
from stromboli.model.cluster import Change, Cluster, ListenerFailed, Refused
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job, SubJob
    from stromboli.model.ledgers import Grant
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


class TentativePlacement(NamedTuple):
    """Where a task stood when its last statement was taken back."""

    status: Status
    node: Node
    nominated: bool


class EvictionReason(NamedTuple):
    """Why a pod was evicted: the action, the job it was evicted for and where, and the plugins that chose it."""

    action: str
    """The name of the action, as in the policy."""
    beneficiary: str = ""
    """The key of the job that it was evicted for, `namespace/name`."""
    chosen_by: str = ""
    """The plugins that chose it: what `Choice.by` says."""
    domain: str = ""
    """Where room was made, such as `HyperNode s1`; empty if the job may have it anywhere."""
    destination: str = ""
    """The node on which it is to start again, if it is moved; empty if it has to go."""

    @property
    def sentence(self) -> str:
        """`gangpreempt for default/urgent in HyperNode s1, chosen by tier 1 (priority, conformance)`."""
        beneficiary = f" for {self.beneficiary}" if self.beneficiary else ""
        where = f" in {self.domain}" if self.domain else ""
        moves = f", to start again on {self.destination}" if self.destination else ""
        chosen_by = f", chosen by {self.chosen_by}" if self.chosen_by else ""
        return f"{self.action}{beneficiary}{where}{moves}{chosen_by}"


class Uncommitted(NamedTuple):
    """What tasks had when the actions had run, without being bound: it was taken back when the session closed."""

    pipelined: Mapping[str, str] = {}
    """Pods held for a node that was still being freed."""
    idle: Ints | None = None
    """What was free on each node, less what gangs that wait had been given."""
    promised: Mapping[Job, int] = {}
    """How many tasks of a job had been given or promised room."""
    held: Mapping[Queue, Amounts] = {}
    """What the queues of those jobs held."""


@dataclass(slots=True, eq=False)
class Undo:
    """A change outside the moves, with the way back."""

    back: Callable[[], None]
    committed: bool


class Transaction:
    """Moves on the way to becoming decisions."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        """All nodes, queues, jobs and tasks as they are at this moment of the cycle; read it, move by statements."""
        self.confined: tuple[type[BaseException], ...] = (Exception,)
        """What plugins raise that is confined to some jobs or to the cycle; an interrupt is not if it is the user's."""
        self.journal: list[Change | Undo] = []
        self.open_statements = 0
        self.refused_moves = 0
        """How many moves plugins refused."""
        self.rollbacks: list[int] = []
        """How far the journal was taken back, each time it was."""
        self.decisions: list[Decision] = []
        self.verdicts: dict[Job, dict[Task, Verdict]] = {}
        self.tentative: dict[Task, TentativePlacement] = {}
        self.without_domain: dict[Job, Job | SubJob] = {}
        """Jobs that found no domain with room when they were last tried: the job, or the sub-group that did not."""
        self.had_room: dict[Job, int] = {}
        """How many tasks of a job had room at once, when a statement that gave it any was last taken back."""
        self.uncommitted = Uncommitted()
        self._failed_roles: dict[SubJob, set[str]] = {}
        self._settled: set[Task] = set()
        self._nominated: set[Task] = set()
        self._evictions: dict[Task, EvictionReason] = {}

    # -- moving

    def statement(self) -> Statement:
        """Begin moves that belong together: `with session.statement() as trial:`; they end as the statement does."""
        return Statement(self)

    @contextmanager
    def rehearsal(self) -> Iterator[Statement]:
        """A statement that is taken back, whatever comes of it; nobody is told what tasks met in it."""
        kept = self.tentative, self.had_room, self.without_domain, self.verdicts, self._failed_roles
        self.tentative, self.had_room, self.without_domain = {}, {}, {}
        self.verdicts, self._failed_roles = {}, {}
        try:
            with self.statement() as trial:
                yield trial
        finally:
            self.tentative, self.had_room, self.without_domain, self.verdicts, self._failed_roles = kept

    def give(self, task: Task, status: Status, node: Node) -> Refused | None:
        """Move a task onto a node, with what it is given there besides amounts; a plugin may refuse."""
        grants = self._grants(task, status, node) if self.cluster.ledgers_of(task.shape) else ()
        if isinstance(grants, Refused):
            self.refused_moves += 1
            return grants
        return self.move(task, status, node, grants)

    def _grants(self, task: Task, status: Status, node: Node) -> tuple[Grant, ...] | Refused:
        return ()

    def move(
        self, task: Task, status: Status, node: Node | None, grants: tuple[Grant, ...] = ()
    ) -> Refused | None:
        """Move a task and enter it in the journal; a listener may refuse."""
        try:
            change = self.cluster.move(task, status, node, grants)
        except ListenerFailed as error:
            self._lose_cycle(error)
        if isinstance(change, Refused):
            self.refused_moves += 1
            return change
        self.journal.append(change)
        return None

    def record(self, back: Callable[[], None], committed: bool = False) -> None:
        """Note a change that is not a move, with the way back; committed ones go back only with a lost cycle."""
        self.journal.append(Undo(back, committed))

    def restore_if_lost(self, entries: dict[str, Any], key: str, before: Any | None) -> None:
        """Call it before an entry of `cluster.memory` changes: it is as before (None: gone) if this cycle is lost."""

        def back() -> None:
            entries.pop(key, None)
            if before is not None:
                entries[key] = before

        self.record(back, committed=True)

    def roll_back(self, start: int) -> None:
        """Take back everything since a position, last in, first out, and remember where tasks had stood."""
        self.rollbacks.append(start)
        had_room: set[Task] = set()
        while len(self.journal) > start:
            entry = self.journal.pop()
            if isinstance(entry, Undo):
                entry.back()
                continue
            task = entry.task
            if task.status in (Status.ALLOCATED, Status.PIPELINED) and task.node is not None:
                self.tentative[task] = TentativePlacement(task.status, task.node, task in self._nominated)
                if task.status is Status.ALLOCATED:
                    had_room.add(task)
            if entry.status is Status.PIPELINED:
                self._nominated.discard(task)
            elif entry.status is Status.RELEASING:
                self._evictions.pop(task, None)
            self._undo(entry)
        if had_room:
            self.had_room.update(Counter(task.job for task in had_room if task.job is not None))

    def _undo(self, change: Change) -> None:
        try:
            self.cluster.undo(change)
        except ListenerFailed as error:
            self._lose_cycle(error)

    def _lose_cycle(self, failed: ListenerFailed) -> NoReturn:
        try:
            raise_attributed(failed.cause, getattr(failed.listener, "name", ""), "on_move")
        except self.confined as error:
            raise CycleLost(failure_of(error)) from failed

    def take_back(self) -> list[Change | Undo]:
        """Undo what was not committed; gives what was, the last first.

        Should a listener fail on the way, the journal holds what is left to abort.
        """
        committed: list[Change | Undo] = []
        try:
            while self.journal:
                entry = self.journal.pop()
                if entry.committed if isinstance(entry, Undo) else entry.task in self._settled:
                    committed.append(entry)
                elif isinstance(entry, Undo):
                    entry.back()
                else:
                    self._undo(entry)
        except BaseException:
            self.journal.extend(reversed(committed))
            raise
        return committed

    def abort(self) -> None:
        """Undo the whole cycle: nothing left, so nothing happened."""
        for entry in reversed(self.journal):
            if isinstance(entry, Undo):
                entry.back()
            else:
                self.cluster.undo(entry)
        self.journal.clear()
        self.decisions.clear()

    # -- deciding

    def settle(self, start: int) -> None:
        """Let everything since a position leave: bind what is allocated, evict what is releasing."""
        for entry in self.journal[start:]:
            if isinstance(entry, Undo):
                entry.committed = True
            elif entry.task.status is Status.ALLOCATED:
                self.bind(entry.task)
            elif entry.task.status is Status.PIPELINED:
                self.tentative.pop(entry.task, None)
            elif entry.task.status is Status.RELEASING and entry.task not in self._settled:
                self._evict(entry.task)

    def bind(self, task: Task) -> None:
        """Decide that an allocated task runs where it was placed."""
        node, job = task.node, task.job
        if node is None or job is None:
            raise RuntimeError(f"{task!r} cannot be bound")
        refused = self.move(task, Status.BINDING, node)
        if refused is not None:  # it keeps its room until the session closes, and is then taken back
            self.explain(task, verdict_of(refused))
            return
        self._settled.add(task)
        self.tentative.pop(task, None)
        self.decisions.append(Bind(task.namespace, task.name, task.uid, node.name, job.key, task.grants))

    def _evict(self, task: Task) -> None:
        self._settled.add(task)
        reason = self.eviction_of(task)
        named = self.cluster.dims.named({dim: int(amount) for dim, amount in task.request.items()})
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
        """Remember that pods were evicted for this task."""
        self._nominated.add(task)

    def is_nominated(self, task: Task) -> bool:
        return task in self._nominated

    def eviction_of(self, task: Task) -> EvictionReason:
        """Why a task was evicted in this session."""
        return self._evictions.get(task, EvictionReason(""))

    def is_losing_tasks(self, job: Job) -> bool:
        """Whether tasks of a job were evicted in this session."""
        return any(task in self._evictions for task in job.by_status[Status.RELEASING])

    def record_eviction(self, task: Task, reason: EvictionReason) -> None:
        self._evictions[task] = reason

    # -- remembering

    def explain(self, task: Task, verdict: Verdict) -> None:
        """Remember why a task was not placed, for its user; its role counts as failed in its sub-group."""
        if task.job is not None:
            self.verdicts.setdefault(task.job, {})[task] = verdict
        if task.sub_job is not None:
            self._failed_roles.setdefault(task.sub_job, set()).add(task.role)

    def clear_failed_roles(self, sub_job: SubJob) -> None:
        """A sub-job is tried afresh: what its tasks met in an earlier turn no longer counts against their roles."""
        self._failed_roles.pop(sub_job, None)

    def forget_verdicts(self, job: Job) -> None:
        """A job is tried afresh elsewhere: what its tasks met before says nothing about it."""
        self.verdicts.pop(job, None)
        for sub_job in job.sub_jobs.values():
            self.clear_failed_roles(sub_job)

    def failed_roles(self, sub_job: SubJob) -> set[str]:
        """Roles of which some task found no node in this session."""
        return self._failed_roles.get(sub_job, set())

    def remember_uncommitted(self) -> None:
        """Keep what tasks have at this moment that they lose with `take_back`."""
        if not self.journal:
            return
        touched = {entry.task for entry in self.journal if isinstance(entry, Change)}
        tasks = [task for task in touched if task.status in (Status.ALLOCATED, Status.PIPELINED)]
        promised = Counter(task.job for task in tasks if task.job)
        self.uncommitted = Uncommitted(
            dict(sorted((t.key, t.node.name) for t in tasks if t.status is Status.PIPELINED and t.node)),
            self.cluster.columns.idle.copy(),
            promised,
            {job.queue: dict(job.queue.held) for job in promised if job.queue},
        )
