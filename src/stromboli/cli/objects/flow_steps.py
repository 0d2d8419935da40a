"""The steps of a JobFlow as a tree: what follows what, how far each is, and what it waits for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.cli.cluster.tree_branches import tree_lines
from stromboli.cli.objects.common_columns import items, nested
from stromboli.embedded.tables.age_text import duration_text, instant

MOST_STEPS = 1000
"""That are shown; admission lets no more in."""
WAITING, COMPLETED = "Waiting", "Completed"


@dataclass
class FlowStep:
    """A step, the steps before it, and its job if there is one."""

    name: str
    targets: list[str]
    probes: list[str]
    patched: bool
    state: str = WAITING
    started: float | None = None
    ended: float | None = None
    restarts: int = 0
    below: list[FlowStep] = field(default_factory=list)
    """The steps that are shown below it: those that come after it and after nothing deeper."""


def flow_steps(flow: Manifest) -> list[FlowStep]:
    """The steps in the order of the flow, with the states of their jobs."""
    steps = [_step(entry) for entry in items(nested(flow, "spec", "flows"))[:MOST_STEPS]]
    states = {str(job.get("name")): job for job in items(nested(flow, "status", "jobStatusList"))}
    for step in steps:
        job = states.get(f"{name_of(flow)}-{step.name}")
        if job is not None:
            restarts = job.get("restartCount")
            step.state = str(job.get("state") or "Pending")
            step.started, step.ended = instant(job.get("startTimestamp")), instant(job.get("endTimestamp"))
            step.restarts = restarts if isinstance(restarts, int) else 0
    return steps


def _step(entry: Manifest) -> FlowStep:
    targets = nested(entry, "dependsOn", "targets")
    return FlowStep(
        str(entry.get("name") or ""),
        [str(target) for target in targets] if isinstance(targets, list) else [],
        _probes(nested(entry, "dependsOn", "probe")),
        bool(nested(entry, "patch", "jobSpec")),
    )


def _probes(probe: object) -> list[str]:
    """Each probe in a few words."""
    lists = probe if isinstance(probe, dict) else {}
    texts = []
    for http in items(lists.get("httpGetList")):
        texts.append(f"{_pods(http)} answer GET :{http.get('port')}{http.get('path') or '/'}")
    for tcp in items(lists.get("tcpSocketList")):
        texts.append(f"{_pods(tcp)} accept connections on port {tcp.get('port')}")
    for status in items(lists.get("taskStatusList")):
        texts.append(f"{_pods(status)} are {status.get('phase')}")
    return texts


def _pods(probe: Manifest) -> str:
    return f"pods of task {probe['taskName']}" if probe.get("taskName") else "pods"


def step_tree(flow: Manifest) -> list[str]:
    """The tree as lines: a step stands below the last of those that it follows, the others are named."""
    steps = flow_steps(flow)
    by_name = {step.name: step for step in steps}
    depths = _depths(steps, by_name)
    roots = []
    for step in steps:
        known = [by_name[target] for target in step.targets if target in by_name and target != step.name]
        above = max(known, key=lambda target: depths[target.name], default=None)
        if above is None or depths[above.name] >= depths[step.name]:
            roots.append(step)  # first, or part of a circle
        else:
            above.below.append(step)
    now = time.time()
    return tree_lines(roots, lambda step: step.below, lambda step: _text(step, by_name, flow, now))


def _depths(steps: list[FlowStep], by_name: dict[str, FlowStep]) -> dict[str, int]:
    """How many steps come before each, one after the other; a circle ends at the number of steps."""
    depths = dict.fromkeys(by_name, 0)
    for _ in range(len(steps)):
        changed = False
        for step in steps:
            above = [depths[target] + 1 for target in step.targets if target in depths]
            depth = min(len(steps), max(above, default=0))
            changed |= depth != depths[step.name]
            depths[step.name] = depth
        if not changed:
            break
    return depths


def _text(step: FlowStep, by_name: dict[str, FlowStep], flow: Manifest, now: float) -> str:
    parts = [f"{step.name}  {step.state}"]
    if step.started is not None:
        took = duration_text((step.ended if step.ended is not None else now) - step.started)
        parts.append(f"in {took}" if step.ended is not None else f"for {took}")
    if step.restarts:
        parts.append(f"restarted {step.restarts} times")
    if step.state == WAITING:
        parts += _waits(step, by_name)
    else:
        parts.append(f"job {name_of(flow)}-{step.name}")
        parts += [f"after {', '.join(step.targets)}"] if len(step.targets) > 1 else []
    if step.probes:
        parts.append(f"may start once {' and '.join(step.probes)}")
    if step.patched:
        parts.append("template patched")
    return ", ".join(parts)


def _waits(step: FlowStep, by_name: dict[str, FlowStep]) -> list[str]:
    """What it waits for: steps before it that are not complete, else its job."""
    open_targets = [
        f"{target} ({by_name[target].state})" if target in by_name else f"{target} (no such step)"
        for target in step.targets
        if target not in by_name or by_name[target].state != COMPLETED
    ]
    if open_targets:
        return [f"for {', '.join(open_targets)}"]
    return [f"for its job: is there a JobTemplate {step.name}?"]
