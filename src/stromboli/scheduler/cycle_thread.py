"""The thread that owns the model: it follows the cluster while another replica leads, then runs cycle after cycle.

Between cycles it applies changes as they come, in small pieces, and so knows when there is news for a cycle.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import NamedTuple

from stromboli.daemon.log_format import about
from stromboli.daemon.memory_management import collect_rarely
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Event, Evict, GateRemoval, NativeGroupCondition, PodGroupStatus
from stromboli.engine.placement.evaluation import Evaluation
from stromboli.engine.placement.node_functions import NodeFilter, NodeScore, checked, finished, scored
from stromboli.engine.placement.usage_evaluation import UsageEvaluation
from stromboli.engine.plugin import Plugin
from stromboli.scheduler.explain.explanations import QUESTION_PATIENCE, Explanations
from stromboli.scheduler.explain.leader_log import LeaderLog
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduler.mirror.news import PAUSE, Gathering
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.scheduler.thread_seam import ThreadSeam
from stromboli.scheduling_loop import Scheduler

log = logging.getLogger(__name__)

STUCK_AFTER = 300.0
"""Seconds without the end of a cycle after which the process should be replaced, whatever the cause."""
SIGN_OF_LIFE = 60.0
"""Seconds after which the thread reports that it is alive, however long it waits."""
FOLLOW_PERIOD = 1.0
"""Seconds between two syncs while another replica leads, or the period if that is shorter."""
LOAD_PERIOD = 0.02
"""Seconds between two syncs while pods are first listed: they enter the model page by page."""


class CycleThread:
    """Started and observed on the event loop."""

    def __init__(
        self,
        world: KubernetesWorld,
        scheduler: Scheduler,
        metrics: SchedulerMetrics,
        seam: ThreadSeam,
        on_change: bool = True,
        explanations: Explanations | None = None,
        record: LeaderLog | None = None,
    ):
        """Without `on_change` cycles go by the scheduler's period alone."""
        self.crashed = False
        self.decided = asyncio.Event()
        """Set when the decisions of the first cycle were handed over."""
        self.ended = asyncio.Event()
        self._world = world
        self._scheduler = scheduler
        self._metrics = metrics
        self._seam = seam
        self._explanations = explanations
        self._record = record
        self._watchdog = Watchdog(metrics)
        self._gathering = Gathering(scheduler.period, on_change)
        self._last_cycle = time.monotonic()

    @property
    def problem(self) -> str:
        """Why the process should be replaced: a plugin hangs, or no cycle comes to its end; empty if all is well."""
        silence = time.monotonic() - self._last_cycle
        stuck = f"no cycle has ended for {silence:.0f} seconds" if silence > STUCK_AFTER else ""
        return self._watchdog.problem or stuck

    def start(self) -> None:
        collect_rarely()
        thread = threading.Thread(target=self._run, name="cycles", daemon=True)
        thread.start()
        self._watchdog.watch(thread)

    def _end(self, crashed: bool) -> None:
        self.crashed = crashed
        self.ended.set()

    # -- in the thread

    def _run(self) -> None:
        crashed = False
        try:
            while not self._seam.wait_to_lead(self._follow_period()):
                self._world.follow()
                self._note_cycle()
            if self._seam.leads:
                self._world.take_over()
                self._cycle()
                self._seam.to_event_loop(self.decided.set)
                gc.freeze()  # these objects live long; a collection would delay the first binds
            while self._wait_for_cycle():
                self._cycle()
        except BaseException:
            crashed = True
            log.exception("the cycle thread crashed")
        finally:
            self._seam.to_event_loop(self._end, crashed)

    def _follow_period(self) -> float:
        return LOAD_PERIOD if self._world.loading else min(self._scheduler.period, FOLLOW_PERIOD)

    def _note_cycle(self) -> None:
        self._last_cycle = time.monotonic()

    def _wait_for_cycle(self) -> bool:
        """Apply changes as they come until it is time for a cycle; whether one is wanted."""
        while (left := self._gathering.due - time.monotonic()) > 0:
            if self._seam.wait_for_changes(min(left, SIGN_OF_LIFE)):
                if self._seam.wait_to_stop(min(left, PAUSE)):  # changes until then are applied together
                    return False
                self._absorb()
            self._note_cycle()
        return not self._seam.wait_to_stop(0)

    def _absorb(self) -> None:
        self._seam.clear()
        since = self._seam.changes.since
        self._world.absorb()
        self._note_changes(since)
        if self._explanations is not None and self._explanations.is_postponed:
            now = time.monotonic()
            self._gathering.note(now, now, QUESTION_PATIENCE)

    def _note_changes(self, since: float) -> None:
        patience = self._world.take_patience(self._scheduler.engine)
        self._gathering.note(since, time.monotonic(), patience)

    def _cycle(self) -> None:
        begin = time.thread_time()
        self._seam.clear()
        outcome = self._scheduler.cycle()
        self._world.note_outcome(outcome)
        self._metrics.cycle(outcome)
        with self._metrics.guard("decision log"):
            log_decisions(outcome)
        if self._record is not None:
            self._record.note(self._scheduler, outcome, self._metrics.guard)
        if self._explanations is not None:
            with self._metrics.guard("explanations"):
                self._explanations.cycle_ended(outcome)
        self._note_cycle()
        self._gathering.cycle_ended(self._last_cycle, time.thread_time() - begin)
        self._note_changes(self._last_cycle)


# -- what a cycle decided, in the log


def log_decisions(outcome: Outcome) -> None:
    """One line for each decision that matters."""
    bound: Counter[str] = Counter()
    nodes: dict[str, set[str]] = {}
    for decision in outcome.decisions:
        match decision:
            case Bind():
                bound[decision.job] += 1
                nodes.setdefault(decision.job, set()).add(decision.node)
            case Evict():
                action, beneficiary = decision.action, decision.beneficiary
                fields = about(pod=decision.key, node=decision.node, action=action, beneficiary=beneficiary)
                log.info("evict", extra=fields)
            case GateRemoval():
                log.info("scheduling gate removed", extra=about(pod=_key(decision)))
            case PodGroupStatus():
                log.info("phase", extra=about(job=_key(decision), phase=decision.phase))
            case NativeGroupCondition():
                log.info("scheduled", extra=about(job=_key(decision), scheduled=decision.status))
            case Event(kind="PodGroup" | "NativePodGroup", type="Warning"):
                log.info("waiting", extra=about(job=_key(decision), why=decision.message))
    for job, pods in bound.items():
        log.info("bind", extra=about(job=job, pods=pods, nodes=len(nodes[job])))
    if outcome.decisions:
        seconds = round(sum(outcome.seconds.values()), 4)
        log.debug("cycle", extra=about(seconds=seconds, decisions=len(outcome.decisions)))


def _key(decision: GateRemoval | PodGroupStatus | NativeGroupCondition | Event) -> str:
    return f"{decision.namespace}/{decision.name}"


# -- reports a plugin that does not return, its extension point and for how long, from a thread of its own


SLOW_AFTER = 5.0
"""Seconds after which the log and a metric report a call that has not returned."""
HANGS_AFTER = 60.0
"""Seconds after which such a call is a reason to replace the process."""
REMEDY = "this process should be replaced; fix the plugin and restart"
INTERVAL = 1.0
"""Seconds between two looks at the stack."""


class Watchdog:
    """Looks at the stack of a thread from time to time."""

    def __init__(self, metrics: SchedulerMetrics, clock: Callable[[], float] = time.monotonic):
        self._metrics = metrics
        self._clock = clock
        self._since: dict[PluginCall, float] = {}
        """When each call that is under way was first seen."""
        self._slow: PluginCall | None = None
        """The call that was reported."""
        self._hanging = ""

    @property
    def problem(self) -> str:
        """Which plugin hangs, if one does; from any thread."""
        return self._hanging

    def watch(self, thread: threading.Thread) -> None:
        """Watch a thread until it ends."""
        threading.Thread(target=self._run, args=(thread,), name="watchdog", daemon=True).start()

    def _run(self, thread: threading.Thread) -> None:
        while thread.is_alive():
            with suppress(
                OSError, ValueError, AttributeError, RuntimeError
            ):  # without a stderr there is no timer
                faulthandler.dump_traceback_later(HANGS_AFTER)
            thread.join(INTERVAL)
            with self._metrics.guard("watchdog"):
                self.look(sys._current_frames().get(thread.ident or 0))
        faulthandler.cancel_dump_traceback_later()

    def look(self, frame: FrameType | None) -> None:
        """Compare the calls on a stack with those of the last look."""
        now = self._clock()
        self._since = {call: self._since.get(call, now) for call in plugin_calls(frame)}
        slow = next((call for call, since in self._since.items() if now - since >= SLOW_AFTER), None)
        if slow != self._slow and self._slow is not None:
            self._metrics.slow_call_returned(self._slow.plugin, self._slow.point)
            log.warning("plugin %r goes on after %s", self._slow.plugin, self._slow.point)
        if slow is None:
            self._slow, self._hanging = None, ""
            return
        seconds = now - self._since[slow]
        self._metrics.slow_call(slow.plugin, slow.point, seconds, first=slow != self._slow)
        text = f"plugin {slow.plugin!r} has been running in {slow.point} for {seconds:.0f} seconds"
        if slow != self._slow:
            self._slow = slow
            log.warning("%s, at %s", text, line_of(frame))
        if seconds >= HANGS_AFTER:
            if not self._hanging:
                log.error("%s, at %s: %s", text, line_of(frame), REMEDY)
            self._hanging = text


# -- the plugins on the stack of a thread: no call is recorded, and still a plugin that hangs is named


_NODE_FUNCTIONS: dict[CodeType, str] = {
    checked.__code__: "filter",
    scored.__code__: "score",
    finished.__code__: "score",
    UsageEvaluation._score.__code__: "score",
    Evaluation._version.__code__: "function",
}
"""Where the engine calls filters and scores, which need not be methods of a plugin, and which variable holds them."""


class PluginCall(NamedTuple):
    """A call of a plugin that is under way; the same call is equal to itself whenever it is looked at."""

    frame: FrameType
    plugin: str
    point: str


def plugin_calls(frame: FrameType | None) -> list[PluginCall]:
    """The calls of plugins on the stack that ends in a frame, the innermost first."""
    calls = []
    while frame is not None:
        asked = _call_of(frame)
        if asked is not None:
            calls.append(PluginCall(frame, *asked))
        frame = frame.f_back
    return calls


def _call_of(frame: FrameType) -> tuple[str, str] | None:
    """The plugin and the extension point of a frame, if it is a plugin's: its public methods are points."""
    code = frame.f_code
    if code in _NODE_FUNCTIONS:
        called = frame.f_locals.get(_NODE_FUNCTIONS[code])
        if isinstance(called, NodeFilter | NodeScore):
            return called.plugin, "node_filters" if isinstance(called, NodeFilter) else "node_scores"
    elif code.co_argcount and not code.co_name.startswith("_"):
        first = frame.f_locals.get(code.co_varnames[0])
        if isinstance(first, Plugin):
            return first.name, code.co_name
    return None


def line_of(frame: FrameType | None) -> str:
    """The file and line that a frame is at."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "an unknown line"
