"""A plugin that does not return is named: in the log, in a metric, and as a reason to replace the process."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from stromboli.engine.placement.node_functions import Check, NodeFilter, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.scheduler.cycle_thread import HANGS_AFTER, SLOW_AFTER, Watchdog
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from tests.kube.fake_api import Clock
from tests.manifests import group, node, pod, queue
from tests.properties.living import LivingWorld, engine

MENDED = 20.0
"""Seconds after which a plugin goes on although the test did not let it."""


class Hang:
    """Hangs in a thread until it is let go."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._free = threading.Event()

    def __call__(self) -> None:
        self._reached.set()
        self._free.wait(MENDED)

    def frame_of(self, thread: threading.Thread) -> FrameType:
        assert self._reached.wait(MENDED)
        return sys._current_frames()[thread.ident or 0]

    def end(self, thread: threading.Thread) -> None:
        self._free.set()
        thread.join(MENDED)


def hanging(point: str, hang: Hang) -> type[Plugin]:
    """A plugin that hangs at a point: in its own method, or in a function that it made."""

    def node_filters(self: Plugin, task: Any) -> Iterator[NodeFilter]:
        def checks(task: Any, nodes: Any) -> Iterator[Check]:
            hang()
            yield Check(nodes.all(), "")

        yield NodeFilter(checks, plugin="hanging")

    def node_scores(self: Plugin, task: Any) -> Iterator[NodeScore]:
        def score(task: Any, nodes: Any) -> Any:
            hang()
            return nodes.zeros()

        yield NodeScore(score, plugin="hanging", reads="usage")

    def ask(self: Plugin, *items: Any) -> Any:
        hang()
        return items[-1].zeros() if point == "score_nodes" else None if point in ("opening", "on_move") else 0

    ask.__code__ = ask.__code__.replace(co_name=point)
    made: dict[str, Callable[..., Any]] = {"node_filters": node_filters, "node_scores": node_scores}
    return type("Hanging", (Plugin,), {"name": "hanging", point: made.get(point, ask)})


def cycle_in_a_thread(plugin: type[Plugin]) -> threading.Thread:
    objects = [queue(), node("n0"), group("a", 1), pod("a-x-0", "a")]
    world = LivingWorld(objects, lambda: engine("gang, hanging", plugin_classes=[plugin]))
    thread = threading.Thread(target=world.cycle, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "point", ["opening", "job_order", "task_order", "score_nodes", "node_scores", "node_filters", "on_move"]
)
def test_a_plugin_that_hangs_is_named_with_the_point_and_the_time(
    point: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "stromboli.scheduler.cycle_thread")
    hang, metrics, clock = Hang(), SchedulerMetrics(), Clock()
    thread, watchdog = cycle_in_a_thread(hanging(point, hang)), Watchdog(metrics, clock)
    series = f'{{plugin="hanging",point="{point}"}}'.encode()
    for now, told in ((0.0, False), (SLOW_AFTER - 1, False), (SLOW_AFTER, True), (HANGS_AFTER - 1, True)):
        clock.now = now
        watchdog.look(hang.frame_of(thread))
        assert watchdog.problem == ""
        assert (f"plugin 'hanging' has been running in {point} for 5 seconds" in caplog.text) is told
        assert (b"stromboli_plugin_running_seconds" + series in metrics.text()) is told
    assert b"stromboli_slow_plugin_calls_total" + series + b" 1.0" in metrics.text()
    clock.now = HANGS_AFTER
    watchdog.look(hang.frame_of(thread))
    assert watchdog.problem == f"plugin 'hanging' has been running in {point} for 60 seconds"
    at = rf"'hanging' has been running in {point} for (\d+) seconds, at /.+\.py:\d+(: .*fix the plugin and restart)?$"
    told = [re.search(at, record.getMessage()) for record in caplog.records]
    assert [match and (match[1], bool(match[2])) for match in told] == [("5", False), ("60", True)]
    hang.end(thread)
    watchdog.look(None)
    assert watchdog.problem == ""
    assert b"stromboli_plugin_running_seconds" + series not in metrics.text()


def test_many_calls_that_return_are_no_call_that_hangs() -> None:
    clock, metrics = Clock(), SchedulerMetrics()
    watchdog = Watchdog(metrics, clock)
    for now in range(0, 100, 4):
        hang = Hang()
        thread = cycle_in_a_thread(hanging("job_order", hang))
        clock.now = float(now)
        watchdog.look(hang.frame_of(thread))
        hang.end(thread)
        assert watchdog.problem == ""
    assert b"stromboli_slow_plugin_calls_total{" not in metrics.text()
