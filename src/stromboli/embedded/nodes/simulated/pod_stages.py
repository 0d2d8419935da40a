"""The next stage of a pod on a simulated node, and its time: a function of the pod as the API server has it.

As in KWOK, a stage takes a pod from one state to the next after a delay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from stromboli.api import names
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.simulated.durations import FOREVER, BadDuration, Duration, parse_duration


class PodState(Enum):
    BOUND = "bound"
    RUNNING = "running"
    TERMINATING = "terminating"
    FINISHED = "finished"


class Stage(Enum):
    START = "start"
    COMPLETE = "complete"
    EXPIRE = "expire"
    """It ran longer than its spec allows."""
    DELETE = "delete"
    """It was marked for deletion, and is deleted for good."""


class ScheduledStage(NamedTuple):
    stage: Stage
    at: float
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class StageDelays:
    """Delays of the stages where a pod has no annotation."""

    start_delay: Duration = field(default=Duration(0.5, 0.5))
    run_time: Duration = FOREVER
    stop_delay: float = 0.2


def state_of(pod: NodePod) -> PodState:
    if pod.terminating:
        return PodState.TERMINATING
    if pod.finished:
        return PodState.FINISHED
    return PodState.RUNNING if started_at(pod) is not None else PodState.BOUND


def next_stage(pod: NodePod, since: float, delays: StageDelays) -> ScheduledStage | None:
    """The next stage; None if the pod stays as it is. `since` is when it came to its state."""
    match state_of(pod):
        case PodState.TERMINATING:
            return ScheduledStage(Stage.DELETE, since if pod.finished else since + _stop_delay(pod, delays))
        case PodState.RUNNING:
            return _completion(pod, since, delays)
        case PodState.BOUND:
            return ScheduledStage(
                Stage.START,
                since
                + _annotated_duration(pod, node_annotations.START_DELAY, delays.start_delay).sample(pod.uid),
            )
        case _:
            return None


def _completion(pod: NodePod, started: float, delays: StageDelays) -> ScheduledStage | None:
    completes = started + run_time(pod, delays).sample(pod.uid)
    deadline = pod.spec.active_deadline_seconds
    expires = started + deadline if deadline is not None else math.inf
    if expires < completes:
        return ScheduledStage(Stage.EXPIRE, expires)
    return ScheduledStage(Stage.COMPLETE, completes, _exit_code(pod)) if math.isfinite(completes) else None


def run_time(pod: NodePod, delays: StageDelays) -> Duration:
    """From the annotation, else how long the command sleeps if its end completes the pod, else the default."""
    restarts = pod.spec.restart_policy == names.RESTART_ALWAYS
    slept = None if restarts else _sleep_duration(pod.spec.containers)
    return _annotated_duration(pod, node_annotations.RUN_TIME, slept or delays.run_time)


def _annotated_duration(pod: NodePod, annotation: str, default: Duration) -> Duration:
    text = pod.metadata.annotations.get(annotation)
    try:
        return parse_duration(text) if text else default
    except BadDuration:
        return default


def _sleep_duration(containers: list[Content]) -> Duration | None:
    """`sleep 30` takes 30 seconds, also in a shell; of several containers the longest counts."""
    durations = [
        duration
        for container in containers
        if (duration := _sleep([*_strings(container, "command"), *_strings(container, "args")]))
    ]
    if not durations or len(durations) < len(containers):
        return None
    return max(durations, key=lambda duration: duration.high)


def _strings(container: Content, field: str) -> list[str]:
    arguments = container.get(field)
    strings = arguments if isinstance(arguments, list) else ()
    return [argument for argument in strings if isinstance(argument, str)]


def _sleep(arguments: list[str]) -> Duration | None:
    if len(arguments) == 3 and arguments[0].rpartition("/")[2] in ("sh", "bash") and arguments[1] == "-c":
        arguments = arguments[2].split()
    if len(arguments) != 2 or arguments[0].rpartition("/")[2] != "sleep":
        return None
    try:
        return FOREVER if arguments[1] in ("infinity", "inf") else parse_duration(arguments[1])
    except BadDuration:
        return None


def _exit_code(pod: NodePod) -> int:
    text = pod.metadata.annotations.get(node_annotations.EXIT_CODE, "0")
    return int(text) % 256 if text.isdecimal() and len(text) < 4 else 0


def _stop_delay(pod: NodePod, delays: StageDelays) -> float:
    grace = pod.metadata.deletion_grace_period_seconds
    return delays.stop_delay if grace is None else min(delays.stop_delay, grace)


def started_at(pod: NodePod) -> float | None:
    """When its containers started, if they did."""
    if pod.status.phase != "Running":
        return None
    times = []
    for status in pod.status.container_statuses or ():
        text = ((status.get("state") or {}).get("running") or {}).get("startedAt")
        if isinstance(text, str):
            times.append(datetime.fromisoformat(text).timestamp())
    start = pod.status.start_time
    return max(times, default=None if start is None else start.timestamp())
