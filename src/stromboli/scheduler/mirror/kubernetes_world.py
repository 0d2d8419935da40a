"""A real cluster for the scheduling loop: it applies changes, hands over decisions and undoes those that failed.

It changes the model alone: `submit` hands decisions over to the writer. All of it runs in the cycle's thread.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence

from stromboli.api import names
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    PodCondition,
)
from stromboli.model.cluster import Cluster
from stromboli.model.intake.assumed_tasks import after_failed_bind, after_failed_eviction
from stromboli.model.intake.node_and_queue_intake import forget_if_gone
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Condition
from stromboli.scheduler.explain.decision_history import DecisionHistory
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.node_shards import NodeShards
from stromboli.scheduler.writes.write_orders import FAILED_BIND, WriteFailure

PATIENCE = 60.0
"""Seconds that a partial gang has to become complete."""


log = logging.getLogger(__name__)

MAX_PAUSE = 30.0
"""Maximum of seconds before a write that keeps failing is tried again."""
_RETRIED_IN: dict[type[Decision], frozenset[Status]] = {
    Bind: frozenset({Status.PENDING, Status.BINDING}),
    Evict: frozenset({Status.BOUND, Status.RUNNING, Status.UNKNOWN, Status.RELEASING}),
}
"""The statuses in which a failed decision may be taken again; in others the failures are forgotten."""


class KubernetesWorld:
    """A mirrored cluster in which decisions show at once, and are undone if they cannot be written."""

    def __init__(
        self,
        mirror: ClusterMirror,
        submit: Callable[[Sequence[Decision]], None],
        wall: Callable[[], float] = time.time,
        patience: float = PATIENCE,
        shards: NodeShards | None = None,
        clock: Callable[[], float] = time.monotonic,
        guard: TelemetryGuard | None = None,
        history: DecisionHistory | None = None,
    ):
        """`submit` hands decisions over to the writer. `clock` measures pauses, as `wall` may be set.

        A partial gang is evicted after `patience` seconds, or never if that is zero.
        """
        self._mirror = mirror
        self._submit = submit
        self._wall = wall
        self._clock = clock
        self._shards = shards
        self._guard = guard or TelemetryGuard()
        self._failures: dict[tuple[type[Decision], str], int] = {}
        """How often a decision on a task failed in a row, by uid."""
        self._pending: list[tuple[float, WriteFailure]] = []
        """Failures, and when to undo the decision; until then the task keeps its place."""
        self._partial_gangs = PartialGangs(patience) if patience > 0 else None
        self._history = history
        self._applied = -1
        """How many changes had been applied when the last cycle ended."""

    @property
    def cluster(self) -> Cluster:
        return self._mirror.cluster

    def now(self) -> float:
        return self._wall()

    def failed(self, *failures: WriteFailure) -> None:
        """Note binds or evictions that failed; those that are reported together are undone together."""
        due = self._clock() + max(map(self._pause, failures))
        self._pending += [(due, failure) for failure in failures]

    def _pause(self, failure: WriteFailure) -> float:
        """Return no pause the first time, then growing ones: a permanent refusal must not cause a busy loop."""
        decision = type(failure.decision), failure.decision.uid
        if failure.gone or failure.decision.uid not in self.cluster.tasks:
            self._failures.pop(decision, None)
            return 0.0
        times = self._failures[decision] = self._failures.get(decision, 0) + 1
        return 0.0 if times == 1 else min(2.0 ** (times - 2), MAX_PAUSE)

    # -- while another replica leads

    @property
    def loading(self) -> bool:
        """Whether only pods are still missing of the first lists."""
        return self._mirror.watches.loading

    def follow(self) -> None:
        """Apply changes, and decide nothing."""
        self._mirror.sync(noting=False)
        self.cluster.mark_all_dirty()

    def take_over(self) -> None:
        """We lead now, so we report which objects cannot be used."""
        self._mirror.report_again()

    # -- changes

    def absorb(self) -> None:
        """Apply changes between two cycles, so that the next has fewer to apply."""
        self._mirror.sync()

    def note_outcome(self, outcome: Outcome) -> None:
        """A cycle has ended; phases that it changed after its actions are news for the next."""
        self._applied = self._mirror.applied
        if outcome.unsettled:
            self._mirror.rebuild()
        if outcome.session.journal.deferred.phases:
            self._mirror.news.note_phases()
        if self._history is not None:
            with self._guard("history"):
                self._history.note_outcome(outcome)

    def is_unchanged(self) -> bool:
        """Whether the cluster is as the last cycle left it."""
        return self._applied == self._mirror.applied

    def take_patience(self, engine: Engine) -> float:
        """How long the changes since the last call may wait for a cycle; infinite if there are none."""
        retry = min((due for due, _ in self._pending), default=math.inf) - self._clock()
        gangs = any(plugin.counts_gangs for plugin in engine.rules.plugins)
        evicts = any(action.evicts_by for action in engine.actions)
        return min(self._mirror.news.take_patience(self.cluster, gangs, evicts), max(retry, 0.0))

    def sync(self) -> None:
        self._mirror.sync(noting=False)
        self._mirror.news.forget()
        decisions = [decision for failure in self._due_failures() for decision in self._undo(failure)]
        if self._partial_gangs is not None:
            decisions += self._partial_gangs.release(self.cluster, self._wall(), self._clock())
        if self._shards is not None:
            decisions += self._shards.refresh(self.cluster)
        if decisions:
            self.execute(decisions)
        self._failures = {key: times for key, times in self._failures.items() if self._may_fail_again(*key)}

    def _may_fail_again(self, decision: type[Decision], uid: str) -> bool:
        task = self.cluster.tasks.get(uid)
        return task is not None and task.status in _RETRIED_IN[decision]

    def _due_failures(self) -> list[WriteFailure]:
        now = self._clock()
        due = [failure for time, failure in self._pending if time <= now]
        self._pending = [(time, failure) for time, failure in self._pending if time > now]
        return due

    def _undo(self, failure: WriteFailure) -> list[Decision]:
        """Undo a decision in the model; return conditions and events with the reason."""
        decision = failure.decision
        task = self.cluster.tasks.get(decision.uid)
        if self._history is not None and task is not None and task.job is not None and not failure.gone:
            with self._guard("history"):
                self._history.note_failure(task.job, decision, failure.why, self._wall())
        if isinstance(decision, Evict):
            log.warning("evicting %s failed: %s", decision.key, failure.why)
            if task is not None:
                task.assumed = None
                if (status := after_failed_eviction(task)) is not None:
                    self.cluster.move(task, status, task.node)
            return []
        log.warning("binding %s to %s failed: %s", decision.key, decision.node, failure.why)
        if task is None or (status := after_failed_bind(task)) is None:
            return []
        task.assumed = None
        node = task.node
        self.cluster.move(task, status, None)
        forget_if_gone(self.cluster, node)
        if failure.gone or status is not Status.PENDING:
            return []
        text = _text(failure, decision)
        task.condition = Condition("False", names.SCHEDULER_ERROR, text)
        namespace, name = decision.namespace, decision.name
        return [
            PodCondition(namespace, name, decision.uid, names.SCHEDULER_ERROR, text),
            Event(
                "Pod", namespace, name, names.WARNING, names.EVENT_FAILED_SCHEDULING, text, topic=FAILED_BIND
            ),
        ]

    # -- decisions

    def execute(self, decisions: Sequence[Decision]) -> None:
        if self._history is not None:
            with self._guard("history"):
                self._history.note_decisions(self.cluster, decisions, self._wall())
        for decision in decisions:
            if isinstance(decision, Evict) and (task := self.cluster.tasks.get(decision.uid)) is not None:
                task.assumed = Status.RELEASING
                if task.status in (Status.RUNNING, Status.BOUND):
                    self.cluster.move(task, Status.RELEASING, task.node)
        if decisions:
            self._submit(decisions)


def _text(failure: WriteFailure, bind: Bind) -> str:
    if failure.unprepared:
        return names.PREBIND_FAILED.format(pod=failure.unprepared, error=failure.why)
    return names.BIND_FAILED.format(node=bind.node, error=failure.why)


# -- gangs of which only a part was bound: completed within a while, or evicted


RECENT = 600.0
"""Seconds after its last bind for which a gang never seen complete, as after a restart, counts as partial."""
REASON = "gang"
MESSAGE = "only {bound} of {minimum} could be bound within {patience:.0f}s, so all of them make room"

_HOLDING = (Status.BOUND, Status.RUNNING)
_SPENT = (Status.SUCCEEDED, Status.FAILED, Status.RELEASING)


class PartialGangs:
    """Remembers which gangs are partial, and since when."""

    def __init__(self, patience: float = PATIENCE):
        self._patience = patience
        self._since: dict[Job, float] = {}
        self._complete: set[str] = set()
        """Uids of PodGroups that were once bound completely: members that they lose later do not count."""

    def release(self, cluster: Cluster, wall: float, now: float) -> list[Decision]:
        """The evictions that are due. Only jobs that changed or are known to be partial are checked.

        Patience is measured in `now`, a monotonic clock; `wall` is compared with times that the API server wrote.
        """
        dirty = cluster.dirty
        for job in list(cluster.jobs.values()) if dirty.everything else list(dirty.jobs):
            self._check(job, wall, now)
        decisions: list[Decision] = []
        for job, since in list(self._since.items()):
            if cluster.jobs.get(job.id) is not job or not self._is_partial(job, wall):
                del self._since[job]
            elif now - since >= self._patience and not job.counts[Status.BINDING]:
                del self._since[job]
                decisions += self._evictions(job)
        if len(self._complete) > 2 * len(cluster.jobs) + 1000:
            self._complete &= {_uid(job) for job in cluster.jobs.values()}
        return decisions

    def _check(self, job: Job, wall: float, now: float) -> None:
        if job.group is not None and not job.counts[Status.BINDING] and job.ready_count >= job.minimum:
            self._complete.add(_uid(job))
            self._since.pop(job, None)
        elif job not in self._since and self._is_partial(job, wall):
            self._since[job] = now

    def _is_partial(self, job: Job, wall: float) -> bool:
        """Whether only a part of the minimum was ever bound, and the rest existed when that part was bound."""
        counts = job.counts
        holding = sum(counts[status] for status in _HOLDING)
        if (
            not holding
            or job.group is None
            or _uid(job) in self._complete
            or any(counts[status] for status in _SPENT)
        ):
            return False
        if job.ready_count >= job.minimum and not counts[Status.BINDING]:
            return False
        times = [task.scheduled_at for status in _HOLDING for task in job.by_status[status]]
        bound = [time for time in times if time is not None]
        if not bound or wall - max(bound) > RECENT + self._patience:
            return False
        since = min(bound)
        waiting = sum(task.created <= since for task in job.by_status[Status.PENDING])
        return holding + counts[Status.BINDING] + waiting >= job.minimum

    def _evictions(self, job: Job) -> Iterator[Decision]:
        tasks = [task for status in _HOLDING for task in job.by_status[status]]
        text = MESSAGE.format(bound=len(tasks), minimum=job.minimum, patience=self._patience)
        log.warning("%s: %s", job.key, text)
        yield Event(job.id.kind, job.namespace, job.name, "Warning", "Evict", text)
        for task in sorted(tasks, key=lambda task: task.order):
            node = task.node.name if task.node else ""
            yield Evict(task.namespace, task.name, task.uid, node, job.key, REASON, REASON, job.key)


def _uid(job: Job) -> str:
    return job.group.metadata.uid if job.group else ""
