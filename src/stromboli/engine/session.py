"""A session: one cycle as a transaction over the live cluster.

Actions ask its `rules`, find nodes with `place`, and move tasks inside statements. Every move is in the journal; when
the session closes, whatever was not committed is taken back. Explanations (verdicts, the last trial of a task) lie
outside the journal and survive the undo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.api.resources import resource_list
from stromboli.engine.blame import CycleLost, Failure, failure_of
from stromboli.engine.decisions import Bind, Decision, Event, Evict
from stromboli.engine.order import Backlog
from stromboli.engine.placement import Place, Placement
from stromboli.engine.statement import Statement
from stromboli.engine.verdict import Verdict, saying
from stromboli.model.cluster import Change, Cluster, Dirty, ListenerFailed, Refused
from stromboli.model.status import Status
from stromboli.model.task import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stromboli.engine.nodefunctions import Bools
    from stromboli.engine.policy import Policy
    from stromboli.engine.rules import Rules
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job, SubJob
    from stromboli.model.nodes import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


class Trial(NamedTuple):
    """Where a task stood when its last statement was taken back."""

    status: Status
    node: Node
    nominated: bool


class EvictionNote(NamedTuple):
    """Why somebody was evicted: by which action, for whom, and who chose the victim."""

    action: str
    beneficiary: str = ""
    chosen_by: str = ""

    @property
    def sentence(self) -> str:
        """`preempt for default/urgent, chosen by tier 1 (priority, conformance)`."""
        whom = f" for {self.beneficiary}" if self.beneficiary else ""
        return f"{self.action}{whom}" + (f", chosen by {self.chosen_by}" if self.chosen_by else "")


class Undo:
    """A change outside the moves, with the way back."""

    __slots__ = ("back", "committed")

    def __init__(self, back: Callable[[], None], committed: bool):
        self.back = back
        self.committed = committed


class Attempt:
    """Work on some jobs that a plugin's mistake ends, and nothing else."""

    __slots__ = ("_jobs", "_session")

    def __init__(self, session: Session, jobs: Iterable[Job]):
        self._session = session
        self._jobs = jobs

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, CycleLost):
            return False
        self._session.leave_out(self._jobs, failure_of(error))
        return True


class Session:
    """What actions and plugins see of a cycle."""

    def __init__(
        self, cluster: Cluster, policy: Policy, rules: Rules, placement: Placement, now: float, id: str
    ):
        self.cluster = cluster
        self.policy = policy
        self.rules = rules
        self.now = now
        self.id = id
        self.services: Mapping[str, Any] = {}
        """Ways out for plugins that call somebody, handed in by whoever runs the scheduler; none in a rehearsal."""
        self.total = cluster.total
        self.journal: list[Change | Undo] = []
        self.open_statements = 0
        self.rollbacks: list[int] = []
        """How far the journal was taken back, each time it was."""
        self.decisions: list[Decision] = []
        self.verdicts: dict[Job, dict[Task, Verdict]] = {}
        self.objections: dict[Job, str] = {}
        """Why a job as a whole was left out."""
        self.trials: dict[Task, Trial] = {}
        self.had_room: dict[Job, int] = {}
        """How many tasks of a job had room at once, when a statement that gave it any was last taken back."""
        self.failures: list[Failure] = []
        self.conditions: dict[Job, dict[str, Condition]] = {}
        """Conditions that plugins set on jobs in this session, by type."""
        self.phases: dict[Job, str] = {}
        """Phases that jobs have once the cycle has come to its end."""
        self.changed: Dirty = cluster.dirty
        """What changed since the session before this one opened."""
        self._placement = placement
        self._failed_roles: dict[SubJob, set[str]] = {}
        self._settled: set[Task] = set()
        self.said: dict[Job, dict[str, str]] = {}
        """What there was to say about jobs in this cycle, by topic, new or not."""
        self._told: dict[tuple[Job, str], tuple[str, str]] = {}
        self._writes: list[tuple[Job | Task | Queue, str, Any]] = []
        self._nominated: set[Task] = set()
        self._holds: dict[Task, tuple[Node, float]] = {}
        self._evictions: dict[Task, EvictionNote] = {}

    # -- looking at the work

    def arguments(self, action: str) -> Any:
        """The arguments of an action, as configured."""
        return self.policy.configurations[action]

    def jobs(self) -> Iterator[Job]:
        """Every job that takes part in cycles."""
        return (job for job in self.cluster.jobs.values() if job.visible)

    def backlog(self, jobs: Iterable[Job]) -> Backlog:
        """These jobs in their queues, in the order of the policy."""
        return Backlog(self, jobs)

    def reorder(self, jobs: Iterable[Job]) -> None:
        """The places of these jobs in their queues may have changed, though they did not move."""
        self.cluster.touched.extend(jobs)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        return (*self.rules.queue_order(queue), queue.created, queue.name)

    def job_key(self, job: Job) -> tuple[Any, ...]:
        return (*self.rules.job_order(job), job.created, job.id)

    def task_key(self, task: Task) -> tuple[Any, ...]:
        return (*self.rules.task_order(task), task.order)

    def sub_job_key(self, sub_job: SubJob) -> tuple[Any, ...]:
        return (*self.rules.sub_job_order(sub_job), sub_job.match_index, sub_job.id)

    def first_to_lose(self, left: Queue, right: Queue, mine: Queue) -> int:
        """Below zero if the left queue loses to mine before the right one does."""
        said = self.rules.victim_queue_order(left, right, mine)
        if said:
            return said
        one, other = self.queue_key(left), self.queue_key(right)
        return (one < other) - (one > other)

    def domains(self, unit: Job | SubJob, purpose: str) -> list[Bools]:
        """Sets of nodes to try for a job, best first; the whole cluster until there are HyperNodes to tell apart."""
        return [np.ones(len(self.cluster.columns), dtype=bool)]

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """A sub-job of a job without policies is ready when the job is."""
        if not sub_job.job.policies:
            return self.rules.job_ready(sub_job.job)
        return self.rules.sub_job_ready(sub_job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        if not sub_job.job.policies:
            return self.rules.job_pipelined(sub_job.job)
        return self.rules.sub_job_pipelined(sub_job)

    # -- placing

    def place(self, task: Task, within: Bools | None = None, resource_fit: bool = True) -> Place | Verdict:
        """The best node for a task (among those within), or why there is none."""
        refused = self._placement.refused(task, len(self.cluster.columns))
        if refused:
            return refused
        if task.uid not in self.cluster.reservations:
            return self._placement.find(self.cluster, task, within, resource_fit)
        with self._without_own_reservation(task):
            return self._placement.find(self.cluster, task, within, resource_fit)

    @contextmanager
    def _without_own_reservation(self, task: Task) -> Iterator[None]:
        """A task may use the room that is held for it."""
        self.cluster.hold(task, -1)
        try:
            yield
        finally:
            self.cluster.hold(task, 1)

    def shape_key(self, task: Task) -> Hashable:
        """All that node functions read of a task."""
        return self._placement.key(task)

    def reachable(self, task: Task) -> Bools:
        """Nodes on which nothing but what an eviction may cure keeps a task out."""
        if self._placement.refused(task, len(self.cluster.columns)):
            return np.zeros(len(self.cluster.columns), dtype=bool)
        return self._placement.evaluate(self.cluster, task).reachable(task)

    def ranked(self, task: Task, candidates: Bools) -> Iterator[Node]:
        """Nodes by score, the best first, whether a task fits there or not."""
        nodes = self.cluster.columns.nodes
        rows = self._placement.evaluate(self.cluster, task).ranked(task, candidates)
        return (nodes[row] for row in rows)

    def admits(self, task: Task, node: Node) -> bool:
        """Whether a task fits on a node once what is leaving has left, by every filter."""
        with self._without_own_reservation(task):
            return self._placement.evaluate(self.cluster, task).admits(task, node.row)

    def future_idle(self, node: Node) -> Amounts:
        """What a node will have free once all that is promised and all that is leaving has come to pass."""
        columns, row = self.cluster.columns, node.row
        free = columns.idle[:, row] + columns.releasing[:, row] - columns.pipelined[:, row]
        return dict(enumerate(free.tolist()))

    def queue_of(self, task: Task) -> Queue | None:
        return task.job.queue if task.job is not None else None

    def only(self, node: Node) -> Bools:
        """A set of nodes that holds just one."""
        mask = np.zeros(len(self.cluster.columns), dtype=bool)
        mask[node.row] = True
        return mask

    def statement(self) -> Statement:
        return Statement(self)

    def move(self, task: Task, status: Status, node: Node | None) -> Refused | None:
        """Move a task and note it; a listener may refuse."""
        try:
            change = self.cluster.move(task, status, node)
        except ListenerFailed as error:
            raise CycleLost(failure_of(error.cause)) from error
        if isinstance(change, Refused):
            return change
        self.journal.append(change)
        return None

    def record(self, back: Callable[[], None], committed: bool = False) -> None:
        """Note a change that is not a move, with the way back; committed ones go back only with a lost cycle."""
        self.journal.append(Undo(back, committed))

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
                self.trials[task] = Trial(task.status, task.node, task in self._nominated)
                if task.status is Status.ALLOCATED:
                    had_room.add(task)
            self._nominated.discard(task)
            self._evictions.pop(task, None)
            self._undo(entry)
        if had_room:
            self.had_room.update(Counter(task.job for task in had_room if task.job is not None))

    def _undo(self, change: Change) -> None:
        try:
            self.cluster.undo(change)
        except ListenerFailed as error:
            raise CycleLost(failure_of(error.cause)) from error

    def settle(self, start: int) -> None:
        """Let everything since a position leave: bind what is allocated, evict what is releasing."""
        for entry in self.journal[start:]:
            if isinstance(entry, Undo):
                entry.committed = True
            elif entry.task.status is Status.ALLOCATED:
                self.bind(entry.task)
            elif entry.task.status is Status.RELEASING and entry.task not in self._settled:
                self._evict(entry.task)

    def bind(self, task: Task) -> None:
        """Decide that an allocated task runs where it was placed."""
        node, job = task.node, task.job
        if node is None or job is None:
            raise RuntimeError(f"{task!r} cannot be bound")
        refused = self.move(task, Status.BINDING, node)
        if refused is not None:  # it keeps its room until the session closes, and is then taken back
            self.explain(task, saying(refused.why))
            return
        self._settled.add(task)
        self.trials.pop(task, None)
        self.decisions.append(Bind(task.namespace, task.name, task.uid, node.name, job.key))

    def bind_allocated(self, job: Job) -> None:
        """Bind every task of a job that holds room, whoever gave it."""
        for task in sorted(job.by_status[Status.ALLOCATED], key=self.task_key):
            self.bind(task)

    def _evict(self, task: Task) -> None:
        self._settled.add(task)
        note = self.eviction_of(task)
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
                note.action,
                *note,
                frees=resource_list(named),
            )
        )
        text = names.POD_EVICTED.format(reason=note.sentence)
        self.decisions.append(Event("Pod", task.namespace, task.name, "Warning", names.EVENT_EVICT, text))
        if task.job is not None:
            said = f"{task.name}: {note.sentence}"
            self.decisions.append(
                Event("PodGroup", task.job.namespace, task.job.name, "Normal", names.EVENT_EVICT, said)
            )

    def nominate(self, task: Task) -> None:
        """Remember that somebody was evicted for this task."""
        self._nominated.add(task)

    def is_nominated(self, task: Task) -> bool:
        return task in self._nominated

    def hold_for(self, task: Task, seconds: float) -> None:
        """Hold the room that was cleared for a task beyond this cycle."""
        if task.node is not None and seconds > 0:
            self._holds[task] = (task.node, self.now + seconds)

    def eviction_of(self, task: Task) -> EvictionNote:
        """Why a task was evicted in this session."""
        return self._evictions.get(task, EvictionNote(""))

    def forget_eviction(self, task: Task) -> None:
        self._evictions.pop(task, None)

    def note_eviction(self, task: Task, note: EvictionNote) -> None:
        self._evictions[task] = note

    # -- explaining

    def explain(self, task: Task, verdict: Verdict) -> None:
        """Remember why a task was not placed; its role counts as failed in its sub-job."""
        if task.job is not None:
            self.verdicts.setdefault(task.job, {})[task] = verdict
        if task.group is not None:
            self._failed_roles.setdefault(task.group, set()).add(task.role)

    def forgive(self, sub_job: SubJob) -> None:
        """A sub-job is tried afresh: what its tasks met in an earlier turn no longer counts against their roles."""
        self._failed_roles.pop(sub_job, None)

    def failed_roles(self, sub_job: SubJob) -> set[str]:
        """Roles of which some task found no node in this session."""
        return self._failed_roles.get(sub_job, set())

    def tell(self, job: Job, topic: str, type: str, reason: str, message: str) -> None:
        """An event about a job, unless the last one on this topic said the same."""
        self.said.setdefault(job, {})[topic] = message
        if self._told.get((job, topic), job.reported.get(topic)) == (reason, message):
            return
        self._told[job, topic] = (reason, message)
        self.decisions.append(Event("PodGroup", job.namespace, job.name, type, reason, message))  # type: ignore[arg-type]

    def write(self, target: Job | Task | Queue, field: str, value: Any) -> None:
        """Let the model show what was decided, once the cycle has come to its end."""
        self._writes.append((target, field, value))

    def set_phase(self, job: Job, phase: str) -> None:
        """Give a job another phase, for good."""
        before = job.phase

        def back() -> None:
            self.cluster.set_phase(job, before)

        self.cluster.set_phase(job, phase)
        self.record(back, committed=True)

    def set_condition(self, job: Job, type: str, reason: str, message: str) -> None:
        """Set a condition of a job to true; it is written when it differs from what stands there."""
        self.conditions.setdefault(job, {})[type] = Condition("True", reason, message)

    # -- when a plugin raises

    def attempt(self, job: Job) -> Attempt:
        """Whatever a plugin raises over one job leaves that job out, with a verdict."""
        return Attempt(self, (job,))

    def attempt_queue(self, queue: Queue) -> Attempt:
        """Whatever a plugin raises over a queue leaves that queue's jobs out, with a verdict."""
        return Attempt(self, queue.jobs)

    def leave_out(self, jobs: Iterable[Job], failure: Failure) -> None:
        """These jobs get no room in this cycle because a plugin failed over them."""
        self.failures.append(failure)
        for job in jobs:
            self.objections[job] = failure.message
            for task in job.by_status[Status.PENDING]:
                self.verdicts.setdefault(job, {})[task] = saying(failure.message)
                self.trials.pop(task, None)

    # -- the end

    def finish(self) -> None:
        """Undo what was kept but not committed, and let the model show what was decided."""
        self._take_back()
        for target, field, value in self._writes:
            setattr(target, field, value)
        for (job, topic), said in self._told.items():
            job.reported[topic] = said
        for job, phase in self.phases.items():
            self.cluster.set_phase(job, phase)
        for task, (node, until) in self._holds.items():
            if task.status is Status.PENDING:
                self.cluster.reserve(task, node, until)

    def _take_back(self) -> None:
        """Undo what was not committed. Should a listener fail on the way, the journal holds what is left to abort."""
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
        except Exception:
            self.journal.extend(reversed(committed))
            raise

    def abort(self) -> None:
        """Undo the whole cycle: nothing left, so nothing happened."""
        for entry in reversed(self.journal):
            if isinstance(entry, Undo):
                entry.back()
            else:
                self.cluster.undo(entry)
        self.journal.clear()
        self.decisions.clear()

    @property
    def pipelined(self) -> dict[str, str]:
        """Tasks held for a node that is still being freed."""
        found = {
            task.key: task.node.name
            for task in self.unsettled()
            if task.status is Status.PIPELINED and task.node
        }
        return dict(sorted(found.items()))

    def unsettled(self) -> set[Task]:
        """Tasks that were given or promised room in this session and have not been bound."""
        touched = {entry.task for entry in self.journal if isinstance(entry, Change)}
        return {task for task in touched if task.status in (Status.ALLOCATED, Status.PIPELINED)}
