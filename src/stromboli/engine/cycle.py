"""A cycle is a function: `Engine.cycle(cluster, now)` returns decisions, which its caller carries out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from stromboli.engine.catalog import Catalog
from stromboli.engine.decisions import Decision
from stromboli.engine.explanation.wait_explanation import WaitExplanation, explain_job, explain_task
from stromboli.engine.explanation.wait_gates import WaitCauses
from stromboli.engine.outcome import report_outcome
from stromboli.engine.placement.node_placement import Placement
from stromboli.engine.plugin import POINTS, Plugin
from stromboli.engine.plugin_failures import CycleLost, Failure, failure_of
from stromboli.engine.points import attribute_error, sort_keys
from stromboli.engine.rules import Rules
from stromboli.engine.session import Session
from stromboli.model.cluster import Cluster, Dirty
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.policy.policy import Policy

log = logging.getLogger(__name__)

MAX_FAILURES = 3
"""Cycles in a row that an order or a score may fail before it is disabled."""
_GENERAL_FORMS = {"score_nodes": "node_scores"}
_MAY_BE_DISABLED = {"score_nodes", "node_scores"} | {
    name for name, point in POINTS.items() if point.combine is sort_keys and name != "shape_key"
}


_VOLCANO_HOOKS = {"opening": "OnSessionOpen", "closing": "OnSessionClose"}


@dataclass(slots=True)
class Outcome:
    """What a cycle decided, how long each part took, and why jobs wait."""

    decisions: list[Decision]
    session: Session
    causes: WaitCauses
    seconds: dict[str, float] = field(default_factory=dict)
    """Time per part: open, each action, close."""
    plugins: dict[tuple[str, str], float] = field(default_factory=dict)
    """Time per plugin, when the session opened and when it closed."""
    filtering: list[float] = field(default_factory=list)
    """Seconds that each search for a node took to bring filters and scores of all nodes up to date."""
    scoring: list[float] = field(default_factory=list)
    """Seconds that each of them took to choose."""
    lost: Failure | None = None
    """Why the whole cycle came to nothing."""

    @property
    def pipelined(self) -> Mapping[str, str]:
        """Pods held for a node that is still being freed when the actions have run."""
        return self.session.uncommitted.pipelined

    def explain(self, job: Job) -> WaitExplanation | None:
        """Why a job waits; none if it does not. To be asked before the cluster changes again."""
        return explain_job(self.causes, job, self.lost)

    def explain_task(self, task: Task) -> str:
        """Why one pod waits, in a sentence; empty if it does not."""
        return explain_task(self.causes, task, self.lost)


class Engine:
    """A policy at work: its plugins live as long as it does. What takes how long is measured if a `timer` is given."""

    def __init__(
        self,
        policy: Policy,
        catalog: Catalog,
        timer: Callable[[], float] = lambda: 0.0,
        services: Mapping[str, Any] | None = None,
        features: Iterable[str] = (),
    ):
        self.policy = policy
        self._services = dict(services or {})
        self._features = frozenset(features)
        self._catalog = catalog
        self._timer = timer
        self._actions = [catalog.actions[name] for name in policy.actions]
        self._failing: dict[tuple[str, str], int] = {}
        self._disabled: set[tuple[str, str]] = set()
        self._number = 0
        self._build_plugins()
        for action in dict.fromkeys(self._actions):
            if action.initialise is not None:
                action.initialise()

    def close(self) -> None:
        """Uninitialise the actions of a policy that is no longer in force."""
        for action in dict.fromkeys(self._actions):
            if action.uninitialise is not None:
                try:
                    action.uninitialise()
                except Exception:  # it is on its way out: the new policy must not wait for it
                    log.exception("action %s failed to uninitialise", action.name)

    def _build_plugins(self) -> None:
        """Build all plugins anew; the next session passes them the whole state."""
        self._tiers: list[list[Plugin]] = [
            [self._catalog.plugins[entry.name].build(entry.arguments, dict(entry.switches)) for entry in tier]
            for tier in self.policy.tiers
        ]
        self._fresh = True
        self._resolve()

    def _resolve(self) -> None:
        self.rules = Rules(self._tiers, self._disabled)
        self._placement = Placement(self.rules, self._timer)
        self._listeners = [
            plugin for plugin in self.rules.plugins if type(plugin).on_move is not Plugin.on_move
        ]

    def cycle(self, cluster: Cluster, now: float) -> Outcome:
        """Open, run the actions, close. A lost cycle decides nothing and changes nothing."""
        session = self._session(cluster, now)
        outcome = Outcome([], session, WaitCauses(session))
        try:
            with self._timed(outcome, "open"):
                self._open(session, outcome)
            for action in self._actions:
                with self._timed(outcome, action.name):
                    action(session)
            with self._timed(outcome, "close"):
                self._finish(session, outcome)
        except Exception as error:
            outcome.lost = error.failure if isinstance(error, CycleLost) else failure_of(error)
            log.exception("the cycle is lost: %s", outcome.lost.message)
            self._abort(session)
        except BaseException:
            self._abort(session)
            raise
        finally:
            cluster.listeners = []
            outcome.filtering, outcome.scoring = self._placement.filtering, self._placement.scoring
        self._disable_failing(session, outcome)
        return outcome

    def _session(self, cluster: Cluster, now: float) -> Session:
        cluster.settle()
        cluster.reservations.advance(now)
        cluster.touched.clear()
        self._number += 1
        cluster.dirty.everything |= self._fresh
        session = Session(cluster, self.policy, self.rules, self._placement, now, f"{now:.0f}-{self._number}")
        session.services = self._services
        session.features = self._features
        cluster.dirty = Dirty(everything=False)
        return session

    def _open(self, session: Session, outcome: Outcome) -> None:
        self._placement.opening()
        for plugin in self.rules.plugins:
            plugin.session = session
            with self._attributed(plugin, "opening", outcome):
                plugin.opening(session, session.changed)
        self._fresh = False
        session.cluster.listeners = list(self._listeners)

    def _finish(self, session: Session, outcome: Outcome) -> None:
        session.remember_uncommitted()
        for plugin in self.rules.plugins:
            with self._attributed(plugin, "closing", outcome):
                plugin.closing(session)
        report_outcome(session, outcome.causes)
        session.finish()
        session.cluster.pod_counts.sweep()
        outcome.decisions = session.decisions

    def _abort(self, session: Session) -> None:
        """Undo the cycle and build plugins anew, since what they remember of it is not true."""
        session.cluster.listeners = []
        session.abort()
        session.cluster.dirty.everything = True
        self._build_plugins()

    @contextmanager
    def _attributed(self, plugin: Plugin, point: str, outcome: Outcome) -> Iterator[None]:
        begin = self._timer()
        try:
            yield
        except Exception as error:
            attribute_error(error, plugin.name, point)
            raise
        outcome.plugins[plugin.name, _VOLCANO_HOOKS[point]] = self._timer() - begin

    @contextmanager
    def _timed(self, outcome: Outcome, part: str) -> Iterator[None]:
        begin = self._timer()
        try:
            yield
        finally:
            outcome.seconds[part] = outcome.seconds.get(part, 0.0) + self._timer() - begin

    def _disable_failing(self, session: Session, outcome: Outcome) -> None:
        """Disable an order or a score that failed too often in a row."""
        for failure in dict.fromkeys(session.failures):
            log.error("%s", failure.message, exc_info=failure.cause)
        failures = [*session.failures, *([outcome.lost] if outcome.lost else [])]
        failed = {
            (failure.plugin, failure.point) for failure in failures if failure.point in _MAY_BE_DISABLED
        }
        self._failing = {culprit: self._failing.get(culprit, 0) + 1 for culprit in failed}
        disabled = {culprit for culprit, times in self._failing.items() if times >= MAX_FAILURES}
        if disabled:
            for plugin, point in sorted(disabled):
                log.error(
                    "plugin %r: %s failed in %d cycles in a row and is set aside until the policy is loaded again",
                    plugin,
                    point,
                    MAX_FAILURES,
                )
            self._disabled |= {(plugin, _GENERAL_FORMS.get(point, point)) for plugin, point in disabled}
            self._resolve()
