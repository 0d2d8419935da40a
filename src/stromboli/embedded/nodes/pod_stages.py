"""What a pod on a simulated node does next, and when: a function of the pod as it stands on the API server."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from stromboli.api import names
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.durations import FOREVER, BadSpan, Span, parse_span
from stromboli.embedded.nodes.node_types import NodePod, Thing


class Stage(Enum):
    """Where in its life a pod is."""

    BOUND = "bound"
    RUNNING = "running"
    LEAVING = "leaving"
    OVER = "over"


class What(Enum):
    """The steps of a pod's life."""

    START = "start"
    FINISH = "finish"
    EXPIRE = "expire"
    """It ran longer than its spec allows."""
    LEAVE = "leave"
    """It was deleted and is let go."""


class Step(NamedTuple):
    """At this time, this."""

    what: What
    when: float
    exit_code: int = 0


SHORTLY = Span(0.5, 0.5)


@dataclass(frozen=True, slots=True)
class Habits:
    """How simulated nodes behave where a pod does not say."""

    start_delay: Span = SHORTLY
    run_time: Span = FOREVER
    stop_delay: float = 0.2


def stage_of(pod: NodePod) -> Stage:
    if pod.leaving:
        return Stage.LEAVING
    if pod.finished:
        return Stage.OVER
    return Stage.RUNNING if started_at(pod) is not None else Stage.BOUND


def next_step(pod: NodePod, since: float, habits: Habits) -> Step | None:
    """What is next; none if the pod only has to be left alone. `since` is when it came to its stage."""
    match stage_of(pod):
        case Stage.LEAVING:
            return Step(What.LEAVE, since if pod.finished else since + _stop_delay(pod, habits))
        case Stage.RUNNING:
            return _end(pod, since, habits)
        case Stage.BOUND:
            return Step(
                What.START, since + _span(pod, node_annotations.START_DELAY, habits.start_delay).draw(pod.uid)
            )
        case _:
            return None


def _end(pod: NodePod, begun: float, habits: Habits) -> Step | None:
    when = begun + run_time(pod, habits).draw(pod.uid)
    deadline = pod.spec.active_deadline_seconds
    allowed = begun + deadline if deadline is not None else math.inf
    if allowed < when:
        return Step(What.EXPIRE, allowed)
    return Step(What.FINISH, when, _exit_code(pod)) if math.isfinite(when) else None


def run_time(pod: NodePod, habits: Habits) -> Span:
    """What the annotation says, else how long the command would sleep if that ended the pod, else what is usual."""
    ends = pod.spec.restart_policy != names.RESTART_ALWAYS
    slept = _slept(pod.spec.containers) if ends else None
    return _span(pod, node_annotations.RUN_TIME, slept or habits.run_time)


def _span(pod: NodePod, mark: str, otherwise: Span) -> Span:
    text = pod.metadata.annotations.get(mark)
    try:
        return parse_span(text) if text else otherwise
    except BadSpan:
        return otherwise


def _slept(containers: list[Thing]) -> Span | None:
    """`sleep 30` takes 30 seconds, also in a shell; the longest of several counts."""
    found = [
        span
        for container in containers
        if (span := _sleep([*_words(container, "command"), *_words(container, "args")]))
    ]
    return max(found, key=lambda span: span.high) if found and len(found) == len(containers) else None


def _words(container: Thing, field: str) -> list[str]:
    words = container.get(field)
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []


def _sleep(words: list[str]) -> Span | None:
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and words[1] == "-c":
        words = words[2].split()
    if len(words) != 2 or words[0].rpartition("/")[2] != "sleep":
        return None
    try:
        return FOREVER if words[1] in ("infinity", "inf") else parse_span(words[1])
    except BadSpan:
        return None


def _exit_code(pod: NodePod) -> int:
    text = pod.metadata.annotations.get(node_annotations.EXIT_CODE, "0")
    return int(text) % 256 if text.isdecimal() and len(text) < 4 else 0


def _stop_delay(pod: NodePod, habits: Habits) -> float:
    grace = pod.metadata.deletion_grace_period_seconds
    return habits.stop_delay if grace is None else min(habits.stop_delay, grace)


def started_at(pod: NodePod) -> float | None:
    """When its containers began to run, if they did."""
    if pod.status.phase != "Running":
        return None
    times = []
    for status in pod.status.container_statuses or ():
        text = ((status.get("state") or {}).get("running") or {}).get("startedAt")
        if isinstance(text, str):
            times.append(datetime.fromisoformat(text).timestamp())
    start = pod.status.start_time
    return max(times, default=None if start is None else start.timestamp())
