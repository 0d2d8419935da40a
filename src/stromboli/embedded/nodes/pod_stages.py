"""What a pod on a simulated node does next, and when: a function of the pod as it stands on the API server."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from stromboli.api import names
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.durations import FOREVER, BadDuration, Duration, parse_duration
from stromboli.embedded.nodes.node_types import Content, NodePod


class PodState(Enum):
    """Where in its life a pod is."""

    BOUND = "bound"
    RUNNING = "running"
    LEAVING = "leaving"
    OVER = "over"


class Stage(Enum):
    """The steps of a pod's life."""

    START = "start"
    FINISH = "finish"
    EXPIRE = "expire"
    """It ran longer than its spec allows."""
    LEAVE = "leave"
    """It was deleted and is let go."""


class ScheduledStage(NamedTuple):
    """At this time, this."""

    what: Stage
    when: float
    exit_code: int = 0


SHORTLY = Duration(0.5, 0.5)


@dataclass(frozen=True, slots=True)
class StageDelays:
    """How simulated nodes behave where a pod does not say."""

    start_delay: Duration = SHORTLY
    run_time: Duration = FOREVER
    stop_delay: float = 0.2


def state_of(pod: NodePod) -> PodState:
    if pod.leaving:
        return PodState.LEAVING
    if pod.finished:
        return PodState.OVER
    return PodState.RUNNING if started_at(pod) is not None else PodState.BOUND


def next_stage(pod: NodePod, since: float, habits: StageDelays) -> ScheduledStage | None:
    """What is next; none if the pod only has to be left alone. `since` is when it came to its stage."""
    match state_of(pod):
        case PodState.LEAVING:
            return ScheduledStage(Stage.LEAVE, since if pod.finished else since + _stop_delay(pod, habits))
        case PodState.RUNNING:
            return _end(pod, since, habits)
        case PodState.BOUND:
            return ScheduledStage(
                Stage.START,
                since + _span(pod, node_annotations.START_DELAY, habits.start_delay).draw(pod.uid),
            )
        case _:
            return None


def _end(pod: NodePod, begun: float, habits: StageDelays) -> ScheduledStage | None:
    when = begun + run_time(pod, habits).draw(pod.uid)
    deadline = pod.spec.active_deadline_seconds
    allowed = begun + deadline if deadline is not None else math.inf
    if allowed < when:
        return ScheduledStage(Stage.EXPIRE, allowed)
    return ScheduledStage(Stage.FINISH, when, _exit_code(pod)) if math.isfinite(when) else None


def run_time(pod: NodePod, habits: StageDelays) -> Duration:
    """What the annotation says, else how long the command would sleep if that ended the pod, else what is usual."""
    ends = pod.spec.restart_policy != names.RESTART_ALWAYS
    slept = _slept(pod.spec.containers) if ends else None
    return _span(pod, node_annotations.RUN_TIME, slept or habits.run_time)


def _span(pod: NodePod, mark: str, otherwise: Duration) -> Duration:
    text = pod.metadata.annotations.get(mark)
    try:
        return parse_duration(text) if text else otherwise
    except BadDuration:
        return otherwise


def _slept(containers: list[Content]) -> Duration | None:
    """`sleep 30` takes 30 seconds, also in a shell; the longest of several counts."""
    found = [
        span
        for container in containers
        if (span := _sleep([*_words(container, "command"), *_words(container, "args")]))
    ]
    return max(found, key=lambda span: span.high) if found and len(found) == len(containers) else None


def _words(container: Content, field: str) -> list[str]:
    words = container.get(field)
    return [word for word in words if isinstance(word, str)] if isinstance(words, list) else []


def _sleep(words: list[str]) -> Duration | None:
    if len(words) == 3 and words[0].rpartition("/")[2] in ("sh", "bash") and words[1] == "-c":
        words = words[2].split()
    if len(words) != 2 or words[0].rpartition("/")[2] != "sleep":
        return None
    try:
        return FOREVER if words[1] in ("infinity", "inf") else parse_duration(words[1])
    except BadDuration:
        return None


def _exit_code(pod: NodePod) -> int:
    text = pod.metadata.annotations.get(node_annotations.EXIT_CODE, "0")
    return int(text) % 256 if text.isdecimal() and len(text) < 4 else 0


def _stop_delay(pod: NodePod, habits: StageDelays) -> float:
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
