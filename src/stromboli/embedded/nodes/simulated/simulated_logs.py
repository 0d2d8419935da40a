"""Logs of simulated containers: what their commands plainly print, at the time at which they would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from datetime import UTC, datetime

from stromboli.api import names
from stromboli.api.go_scalars import micro_time
from stromboli.embedded.nodes.node_annotations import RUN_TIME
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.simulated.command_plan import CommandPlan, Output, Printed, container_plans
from stromboli.embedded.nodes.simulated.container_times import finished_at, started_at
from stromboli.embedded.nodes.simulated.pod_stages import says_how_it_ends

POLL = 0.5
"""Seconds between two looks at a container whose log is followed."""

CurrentPod = Callable[[], NodePod | None]
"""The pod as it is now; None once it is gone."""


def simulated_log(
    pod: NodePod, query: LogQuery, current: CurrentPod, clock: Callable[[], float]
) -> AsyncGenerator[bytes] | None:
    """The log of the last run of a container, or of the one before; None if there is none."""
    state = _state(pod, query)
    start = started_at(state)
    plan = None if says_how_it_ends(pod) else _plan(pod, query.container)
    if not start and (plan is not None or query.previous):
        return None
    return _lines(pod, query, start, plan or _unplanned(pod), current, clock)


def _unplanned(pod: NodePod) -> CommandPlan:
    """The log of a command that does not say when it ends; who expects an end is told how to give one."""
    text = f"(simulated: {pod.spec.node_name} runs no processes"
    if pod.spec.restart_policy != names.RESTART_ALWAYS and not says_how_it_ends(pod):
        text += (
            f", and this command does not plainly end. How long it runs: the annotation {RUN_TIME}=30s of the pod,"
            " or `stromboli up --run-time 30s` for all)"
        )
    else:
        text += ")"
    return CommandPlan(0.0, 0, (Output(0.0, f"{text}\n"),))


async def _lines(
    pod: NodePod,
    query: LogQuery,
    start: float,
    plan: CommandPlan,
    current: CurrentPod,
    clock: Callable[[], float],
) -> AsyncGenerator[bytes]:
    printed = 0
    while True:
        state = _state(pod, query)
        end = finished_at(state) or clock()
        due = [
            output for output in plan.outputs[printed:] if start + output.at <= end + 1
        ]  # times are to the second
        texts = [text for output in due for text in _text(pod, query, start, output)]
        if not printed and query.tail is not None:
            texts = texts[len(texts) - min(query.tail, len(texts)) :]
        printed += len(due)
        if texts:
            yield "".join(texts).encode()
        if not query.follow or printed == len(plan.outputs) or "running" not in state:
            return
        await asyncio.sleep(POLL)
        latest = current()
        if latest is None or started_at(_state(latest, query)) != start:
            return  # it is gone, or was restarted
        pod = latest


def _text(pod: NodePod, query: LogQuery, start: float, output: Output) -> Iterator[str]:
    at = start + output.at
    if query.since is not None and at < query.since - 1:
        return
    match output.text:
        case Printed.DATE:
            text = datetime.fromtimestamp(at, UTC).strftime("%a %b %e %H:%M:%S UTC %Y\n")
        case Printed.HOSTNAME:
            text = f"{pod.name}\n"
        case Printed.UNKNOWN:
            text = f"(simulated: {pod.spec.node_name} runs no processes)\n"
        case plain:
            text = plain
    for line in text.splitlines(keepends=True):
        yield f"{micro_time(at)} {line}" if query.timestamps else line


def _state(pod: NodePod, query: LogQuery) -> Content:
    statuses = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    status: Content = next((status for status in statuses if status.get("name") == query.container), {})
    state = status.get("state") or {}
    last: Content = status.get("lastState") or {}
    return last if query.previous or "waiting" in state else state


def _plan(pod: NodePod, container: str) -> CommandPlan | None:
    specs = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    plans = zip(specs, container_plans(specs, pod), strict=True)
    return next((plan for spec, plan in plans if spec.get("name") == container), None)
