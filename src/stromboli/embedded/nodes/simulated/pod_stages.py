"""The next stage of a pod on a simulated node, and its time: a function of the pod as the API server has it.

As in KWOK, a stage takes a pod from one state to the next after a delay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.durations import FOREVER, BadDuration, Duration, parse_duration
from stromboli.embedded.nodes import node_annotations
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.simulated.command_plan import container_plans
from stromboli.embedded.nodes.simulated.container_times import seconds_of
from stromboli.embedded.nodes.simulated.pod_run import PodRun


class PodState(Enum):
    BOUND = "bound"
    RUNNING = "running"
    TERMINATING = "terminating"
    FINISHED = "finished"


class Stage(Enum):
    START = "start"
    ADVANCE = "advance"
    """One of its containers ends, or is restarted."""
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
    stop_delay: float = 0.02


def state_of(pod: NodePod) -> PodState:
    if pod.terminating:
        return PodState.TERMINATING
    if pod.finished:
        return PodState.FINISHED
    initializing = bool(pod.status.init_container_statuses)
    return PodState.RUNNING if initializing or started_at(pod) is not None else PodState.BOUND


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
    completes = started + run_time(pod, delays)
    expires = deadline(pod, started)
    if expires < completes:
        return ScheduledStage(Stage.EXPIRE, expires)
    return ScheduledStage(Stage.COMPLETE, completes, _exit_code(pod)) if math.isfinite(completes) else None


def next_of_run(pod: NodePod, run: PodRun, delays: StageDelays) -> ScheduledStage | None:
    """The next stage of a pod with commands that plainly do something."""
    stages = [
        ScheduledStage(Stage.ADVANCE, run.due),
        ScheduledStage(Stage.EXPIRE, deadline(pod, run.started)),
    ]
    if run.uncertain_since is not None:
        stages.append(ScheduledStage(Stage.COMPLETE, run.uncertain_since + delays.run_time.sample(pod.uid)))
    first = min(stages, key=lambda stage: stage.at)
    return first if math.isfinite(first.at) else None


def deadline(pod: NodePod, started: float) -> float:
    """When `activeDeadlineSeconds` ends a pod."""
    seconds = pod.spec.active_deadline_seconds
    return math.inf if seconds is None else started + seconds


def says_how_it_ends(pod: NodePod) -> bool:
    """It has an annotation, which counts more than what its containers do."""
    return not pod.metadata.annotations.keys().isdisjoint(
        (node_annotations.RUN_TIME, node_annotations.EXIT_CODE)
    )


def run_time(pod: NodePod, delays: StageDelays) -> float:
    """Seconds by the annotation, else until all commands plainly end, else by default."""
    plans = container_plans(pod.spec.containers, pod)
    planned = [plan.run_time for plan in plans if plan is not None]
    longest = max(planned, default=0.0) if len(planned) == len(plans) else None
    default = delays.run_time if longest is None else Duration(longest, longest)
    return _annotated_duration(pod, node_annotations.RUN_TIME, default).sample(pod.uid)


def _annotated_duration(pod: NodePod, annotation: str, default: Duration) -> Duration:
    text = pod.metadata.annotations.get(annotation)
    try:
        return parse_duration(text) if text else default
    except BadDuration:
        return default


def _exit_code(pod: NodePod) -> int:
    text = pod.metadata.annotations.get(node_annotations.EXIT_CODE, "0")
    return int(text) % 256 if text.isdecimal() and len(text) < 4 else 0


def _stop_delay(pod: NodePod, delays: StageDelays) -> float:
    grace = pod.metadata.deletion_grace_period_seconds
    return delays.stop_delay if grace is None else min(delays.stop_delay, grace)


def started_at(pod: NodePod) -> float | None:
    """When its containers started, if they did."""
    if pod.status.phase != names.POD_RUNNING:
        return None
    times = [seconds for status in pod.status.container_statuses or () if (seconds := _running_since(status))]
    start = pod.status.start_time
    return max(times, default=None if start is None else start.timestamp())


def running_containers(pod: NodePod) -> list[str]:
    """Names of the containers that run."""
    if pod.finished:
        return []
    statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    return [str(status.get("name")) for status in statuses if (status.get("state") or {}).get("running")]


def _running_since(status: Content) -> float:
    return seconds_of(((status.get("state") or {}).get("running") or {}).get("startedAt"))
