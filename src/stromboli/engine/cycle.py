"""A cycle is a function: `Engine.cycle(cluster, now)` returns decisions, which its caller carries out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from stromboli.engine.attribution import raise_attributed
from stromboli.engine.catalog import Catalog
from stromboli.engine.decisions import Bind, Decision, Evict
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.explanation.wait_gates import Diagnoses
from stromboli.engine.failing_plugins import Culprit, DisabledSince, FailingPlugins, QuarantinedJobs
from stromboli.engine.outcome import QueueTotals, report_outcome, settle_outcome
from stromboli.engine.placement.node_placement import Placement
from stromboli.engine.plugin import Plugin
from stromboli.engine.plugin_failures import CycleLost, Failure, failure_of
from stromboli.engine.rules import Rules
from stromboli.engine.session import Session
from stromboli.engine.topology.allocated_domains import AllocatedDomains
from stromboli.engine.topology.left_out_hyper_nodes import hyper_node_events
from stromboli.engine.waiting.capacity_waits import CapacityWaits, Waits
from stromboli.engine.waiting.fixed_point import FixedPoint
from stromboli.engine.waiting.ordered_waits import waits_under
from stromboli.model.cluster import Cluster
from stromboli.model.feed import Dirty
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.policy.policy import PluginEntry, Policy

log = logging.getLogger(__name__)
Seen = TypeVar("Seen")


class ActionEnd(NamedTuple):
    """How much a cycle had decided when an action had run."""

    action: str
    decisions: int
    admitted: int
    """Jobs that had been admitted to their queues."""


@dataclass(slots=True)
class Outcome:
    """What a cycle decided, how long each part took, and why jobs wait."""

    decisions: list[Decision]
    session: Session
    diagnoses: Diagnoses
    seconds: dict[str, float] = field(default_factory=dict)
    """Time per part: open, each action, close."""
    action_ends: list[ActionEnd] = field(default_factory=list)
    """Which action decided what: that which comes after what the one before had decided."""
    plugins: dict[tuple[str, str], float] = field(default_factory=dict)
    """Time per plugin, when the session opened and when it closed."""
    filtering: list[float] = field(default_factory=list)
    """Seconds that each search for a node took to bring filters and scores of all nodes up to date."""
    scoring: list[float] = field(default_factory=list)
    """Seconds that each of them took to choose."""
    lost: Failure | None = None
    """Why the whole cycle came to nothing."""
    unsettled: bool = False
    """Whether it was lost before it opened, as the model could not be brought up to date."""
    repeated: bool = False
    """Whether it did not run, as it could only come to what the one before came to."""
    set_aside: tuple[Culprit, ...] = ()
    """The orders and scores that take no part in the next cycle because they failed for all jobs."""

    @property
    def pipelined(self) -> Mapping[str, str]:
        """Pods held for a node that is still being freed when the actions have run."""
        return self.session.attempts.uncommitted.pipelined

    def moved_jobs(self) -> set[Job]:
        """The jobs of the pods that were bound or evicted."""
        tasks = self.session.cluster.tasks
        moved = (tasks[each.uid].job for each in self.decisions if isinstance(each, Bind | Evict))
        return {job for job in moved if job is not None}

    def explain(self, job: Job, reader: str = "") -> Diagnosis | None:
        """Why a job waits; none if it does not. To be asked before the cluster changes again.

        For a `reader` of one namespace, jobs elsewhere that hold what is short are not named.
        """
        return self.diagnoses.measured(job, self.lost, reader)

    def explain_task(self, task: Task, reader: str = "") -> str:
        """Why one pod waits, in a sentence; empty if it does not."""
        return self.diagnoses.text_of_task(task, self.lost, reader)


@dataclass(frozen=True, slots=True)
class RehearsedParts:
    """How much of a cycle is rehearsed."""

    enough: Callable[[Outcome], bool] = lambda outcome: False
    """Whether what else would be decided does not matter; asked between actions, and between turns of jobs."""
    closes: Callable[[Outcome], bool] = lambda outcome: True
    """Whether the end of the cycle matters: if not, there are decisions to look at, but neither reasons nor phases."""
    waits: Waits | None = None
    """The jobs for which another engine of the same policy found no capacity, before later changes; none if unknown."""


ALL_PARTS = RehearsedParts()


class Engine:
    """A policy at work: its plugins live as long as it does. What takes how long is measured if a `timer` is given."""

    def __init__(
        self,
        policy: Policy,
        catalog: Catalog,
        timer: Callable[[], float] = lambda: 0.0,
        services: Mapping[str, Any] | None = None,
        features: Iterable[str] = (),
        interruptible: bool = True,
        skips: bool = True,
        reports: bool = True,
    ):
        """Not `interruptible`: a KeyboardInterrupt is a plugin's failure, not a user's wish.

        Without `skips`, every cycle runs and tries all pending jobs, even if the result must be the same. Without
        `reports`, decisions contain no conditions, events or counts.
        """
        self._reports = reports
        self._skips = skips
        self._fixed_point = FixedPoint()
        self._waits: Waits = CapacityWaits()
        self._recalled: Waits | None = None
        """With which the next cycle begins."""
        self._last: Outcome | None = None
        """Of the last cycle that ran."""
        self.policy = policy
        self._services = dict(services or {})
        self._features = frozenset(features)
        self._catalog = catalog
        self._timer = timer
        self.actions = [catalog.actions[name] for name in policy.actions]
        """The actions of the policy, in the order in which they run."""
        self._confined = (Exception,) if interruptible else (Exception, KeyboardInterrupt)
        self._failing = FailingPlugins()
        self._quarantined = QuarantinedJobs()
        self._logged: set[Failure] = set()
        """The failures of the last cycle, which need not be logged again."""
        self._number = 0
        self._allocated_domains = AllocatedDomains()
        self._queue_totals = QueueTotals()
        self._build_plugins()
        for action in dict.fromkeys(self.actions):
            if action.initialise is not None:
                try:
                    action.initialise()
                except BaseException as error:
                    raise_attributed(error, action.name, "initialise")

    def close(self) -> None:
        """Uninitialise the actions of a policy that is no longer in force."""
        for action in dict.fromkeys(self.actions):
            if action.uninitialise is not None:
                try:
                    action.uninitialise()
                except (Exception, SystemExit):  # the new policy must not wait for the old one
                    log.exception("action %s failed to uninitialise", action.name)

    @property
    def set_aside(self) -> Mapping[Culprit, DisabledSince]:
        """The orders and scores that take no part in cycles because they failed for all jobs."""
        return self._failing.set_aside

    def _build_plugins(self) -> None:
        """Build all plugins anew; the next session passes them the whole state."""
        self._tiers = [[self._build(entry) for entry in tier] for tier in self.policy.tiers]
        self._fresh = True
        self._resolve()

    def _build(self, entry: PluginEntry) -> Plugin:
        try:
            return self._catalog.plugins[entry.name].build(entry.arguments, dict(entry.switches))
        except BaseException as error:
            raise_attributed(error, entry.name, "build")

    def _resolve(self) -> None:
        self.rules = Rules(self._tiers, self._failing.set_aside)
        self._placement = Placement(self.rules, self._timer)
        kind = waits_under(self.rules)
        if type(self._waits) is not kind:
            self._waits = kind()
        self._listeners = [
            plugin for plugin in self.rules.plugins if type(plugin).on_move is not Plugin.on_move
        ]

    def recall(self, cluster: Cluster, waits: Waits | None) -> None:
        """Before the first cycle: take over for which jobs another engine of this policy found no capacity."""
        cluster.forget_changes()
        self._recalled = waits

    def cycle(self, cluster: Cluster, now: float) -> Outcome:
        """Open, run the actions, close. A lost cycle decides nothing and changes nothing."""
        waits, self._recalled = self._recalled, None
        outcome: Outcome | None = None
        try:
            if not self._takes_over(cluster, now, waits):
                self._advance(cluster, now)
                if self._last is not None and self._skips and self._fixed_point.holds(cluster, now):
                    return self._repeat(cluster, now, self._last)
                self._waits.open(cluster)
            session = self._session(cluster, now)
            outcome = Outcome([], session, Diagnoses(session))
            with self._timed(outcome, "open"):
                self._open(session, outcome)
            for action in self.actions:
                session.action = action.name
                with self._timed(outcome, action.name):
                    action(session)
                end = ActionEnd(action.name, len(session.journal.decisions), len(session.journal.admitted))
                outcome.action_ends.append(end)
            with self._timed(outcome, "close"):
                self._finish(session, outcome)
        except BaseException as error:
            if outcome is None:
                outcome = self._unopened(cluster, now)
            self._fixed_point.reset()
            self._abort(outcome.session)
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, self._confined):
                raise
            self._lose(outcome, error)
        finally:
            cluster.listeners = []
            cluster.touched.clear()  # what is in it from now on happened after this cycle
        outcome.filtering, outcome.scoring = self._placement.filtering, self._placement.scoring
        self._charge_failures(outcome)
        self._last = outcome
        return outcome

    def rehearse(
        self,
        cluster: Cluster,
        now: float,
        look: Callable[[Outcome], Seen],
        parts: RehearsedParts = ALL_PARTS,
    ) -> Seen:
        """Run a cycle, let `look` see its outcome and the cluster after it, and take everything back.

        Nothing else may be asked of an engine that has rehearsed: its plugins remember what did not happen. Only
        `look` may let it rehearse the cycle that would follow.
        """
        memory, unsettled = deepcopy(cluster.memory), dict(cluster.unsettled)
        outcome: Outcome | None = None
        try:
            with self._losing():
                if not self._takes_over(cluster, now, parts.waits):
                    self._advance(cluster, now)
                    self._waits.open(cluster)
                session = self._session(cluster, now)
            outcome = Outcome(session.journal.decisions, session, Diagnoses(session))
            session.should_stop = partial(parts.enough, outcome)
            self._decide(session, outcome)
            closes = parts.closes(outcome)
            if closes:
                self._close_quietly(session)
            with session.journal.finished_for_now():
                cluster.listeners = []
                if closes and self._skips:
                    self._waits.close(session)
                    self._waits.unpark(outcome.moved_jobs())  # after the undo they differ from what was noted
                return look(outcome)
        except CycleLost as error:
            if outcome is None:
                outcome = self._unopened(cluster, now)
            outcome.session.journal.abort()
            outcome.lost = error.failure
            return look(outcome)
        finally:
            cluster.listeners = []
            cluster.memory, cluster.unsettled = memory, unsettled
            cluster.mark_all_dirty()

    def _takes_over(self, cluster: Cluster, now: float, waits: Waits | None) -> bool:
        """Take over which jobs need not be tried from another engine; whether there was anything to take over."""
        if waits is None or self._waits.in_order:
            return False
        cluster.settle()
        self._waits = waits.copy()
        self._waits.open(cluster)
        self._advance(cluster, now)
        return True

    def _decide(self, session: Session, outcome: Outcome) -> None:
        """Open and act, until that is enough; whatever is raised is a cycle lost."""
        with self._losing():
            self._open(session, outcome)
            for action in self.actions:
                if not session.should_stop():
                    session.action = action.name
                    action(session)

    def _close_quietly(self, session: Session) -> None:
        with self._losing():
            session.journal.remember_uncommitted()
            for plugin in self.rules.plugins:
                plugin.closing(session)
            settle_outcome(session)

    @contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except CycleLost:
            raise
        except self._confined as error:
            raise CycleLost(failure_of(error)) from error

    def _lose(self, outcome: Outcome, error: BaseException) -> None:
        """Note why a cycle is lost; the jobs that were worked on are left out for a while."""
        lost = error if isinstance(error, CycleLost) else CycleLost(failure_of(error))
        outcome.lost = lost.failure
        log.error("the cycle is lost: %s", lost.failure.message, exc_info=error)
        self._quarantined.add(lost.jobs, lost.failure, outcome.session.now)

    def _advance(self, cluster: Cluster, now: float) -> None:
        """Bring up to date what follows from objects and from the time."""
        cluster.settle()
        cluster.reservations.advance(now)
        if self._fresh:
            cluster.feed.note_everything()
        self._number += 1

    def _repeat(self, cluster: Cluster, now: float, last: Outcome) -> Outcome:
        """The outcome of a cycle that need not run: it would come to what the last one came to."""
        session = self._new_session(cluster, now)
        session.changed = Dirty(everything=False)
        session.attempts = last.session.attempts
        session.reports.recall(last.session.reports)
        return Outcome([], session, last.diagnoses, repeated=True)

    def _session(self, cluster: Cluster, now: float) -> Session:
        session = self._new_session(cluster, now)
        cluster.feed.start_session()
        return session

    def _new_session(self, cluster: Cluster, now: float) -> Session:
        session = Session(cluster, self.policy, self.rules, self._placement, now, f"{now:.0f}-{self._number}")
        session.actions, session.catalog = self.actions, self._catalog
        session.services = self._services
        session.features = self._features
        session.confined = self._confined
        session.waits = self._waits
        return session

    def _unopened(self, cluster: Cluster, now: float) -> Outcome:
        """The outcome of a cycle that failed before its session; the next one tries all jobs."""
        self._waits = type(self._waits)()
        session = self._new_session(cluster, now)
        return Outcome([], session, Diagnoses(session), unsettled=True)

    def _open(self, session: Session, outcome: Outcome) -> None:
        self._placement.opening()
        self._allocated_domains.update(session)
        for plugin in self.rules.plugins:
            plugin.session = session
            begin = self._timer()
            try:
                plugin.opening(session, session.changed)
            except BaseException as error:
                raise_attributed(error, plugin.name, "opening")
            outcome.plugins[plugin.name, "OnSessionOpen"] = self._timer() - begin
        self._fresh = False
        session.cluster.listeners = list(self._listeners)
        self._quarantined.leave_out(session)

    def _finish(self, session: Session, outcome: Outcome) -> None:
        session.journal.remember_uncommitted()
        for plugin in self.rules.plugins:
            begin = self._timer()
            try:
                plugin.closing(session)
            except BaseException as error:
                raise_attributed(error, plugin.name, "closing")
            outcome.plugins[plugin.name, "OnSessionClose"] = self._timer() - begin
        if self._reports:
            report_outcome(session, outcome.diagnoses, self._queue_totals)
        else:
            settle_outcome(session)
        changed = session.journal.affects_decisions
        session.journal.finish()
        session.reports.note_reported()
        session.cluster.pod_counts.sweep()
        outcome.decisions = session.journal.decisions
        with session.reporting():
            outcome.decisions.extend(hyper_node_events(session.cluster.hyper_nodes))
        if not self._placement.is_repeatable:
            session.look_again()
        if self._skips:
            self._waits.close(session)
        self._fixed_point.note(session, changed)

    def _abort(self, session: Session) -> None:
        """Undo the cycle and build plugins anew, since what they remember of it is not true."""
        session.cluster.listeners = []
        session.journal.abort()
        session.cluster.feed.note_everything()
        self._build_plugins()

    @contextmanager
    def _timed(self, outcome: Outcome, part: str) -> Iterator[None]:
        begin = self._timer()
        try:
            yield
        finally:
            outcome.seconds[part] = outcome.seconds.get(part, 0.0) + self._timer() - begin

    def _charge_failures(self, outcome: Outcome) -> None:
        """Log what failed, and set aside the orders and scores that fail for all jobs."""
        session = outcome.session
        failures = dict.fromkeys(session.failures)
        for failure in failures:
            if failure not in self._logged:
                log.error("%s", failure.log_message, exc_info=failure.cause)
        self._logged = set(failures)
        if outcome.lost is None:  # else plugins are new, and cannot be asked
            events = self._failing.update(session, self.rules.plugins)
            if events:
                outcome.decisions.extend(events)
                self._resolve()
        outcome.set_aside = tuple(self._failing.set_aside)
        if outcome.set_aside:
            self._fixed_point.reset()  # it is asked again after a while
