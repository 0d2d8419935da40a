"""The containers of a simulated pod whose commands plainly do something: when they end and are restarted.

A state machine over time alone: `advance` moves it, `due` says when that is next worthwhile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.go_scalars import timestamp
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_status_patches import Termination, container_id
from stromboli.embedded.nodes.simulated.command_plan import CommandPlan, container_plans
from stromboli.embedded.nodes.simulated.container_times import finished_at, seconds_of

FIRST_BACKOFF, MAX_BACKOFF = 10.0, 300.0
"""Seconds before the second restart of a container, and before a late one, as a kubelet's; the first is at once."""
BACKOFF_RESET = 600.0
"""A container that ran longer than these seconds starts with the first back-off again."""
SHORTEST_RUN = 0.1
"""Seconds that a command runs at least, so that its pod is seen running."""
_INITIALIZING: Content = {"waiting": {"reason": "PodInitializing"}}


@dataclass(slots=True)
class ContainerRun:
    """A container, its state and when that changes."""

    spec: Content
    policy: str
    """Its restart policy."""
    plan: CommandPlan | None
    state: Content = field(default_factory=lambda: _INITIALIZING)
    started: float = 0.0
    due: float = math.inf
    restarts: int = 0
    failures: int = 0
    """Runs that ended since the last long one."""
    last: Content | None = None

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def exit_code(self) -> int | None:
        terminated = self.state.get("terminated")
        return None if terminated is None else int(terminated.get("exitCode") or 0)

    @property
    def runs(self) -> bool:
        return "running" in self.state

    @property
    def started_once(self) -> bool:
        return self.state is not _INITIALIZING

    @property
    def initialized(self) -> bool:
        """Of an init container: the next one may start."""
        return self.exit_code == 0 or (self.policy == names.RESTART_ALWAYS and self.started_once)

    def start(self, now: float) -> None:
        self.started = now
        self.state = {"running": {"startedAt": timestamp(now)}}
        self.due = self._end()

    def _end(self) -> float:
        return math.inf if self.plan is None else self.started + max(SHORTEST_RUN, self.plan.run_time)

    def advance(self, pod: NodePod, now: float) -> bool:
        """End or restart it if that is due; whether it now waits for its back-off."""
        if now < self.due:
            return False
        if not self.runs:
            self._restart(now)
            return False
        code = self.plan.exit_code if self.plan is not None else 0
        self.terminate(pod, now, code)
        if self.policy == "Never" or (self.policy == "OnFailure" and not code):
            return False
        self.failures = 1 if now - self.started > BACKOFF_RESET else self.failures + 1
        self.last, pause = self.state, backoff(self.failures)
        if not pause:
            self._restart(now)
            return False
        text = f"back-off {pause:.0f}s restarting failed container={self.name} pod={full_name(pod)}"
        self.state = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        self.due = now + pause
        return True

    def _restart(self, now: float) -> None:
        self.restarts += 1
        self.start(now)

    def terminate(self, pod: NodePod, now: float, code: int) -> None:
        id = container_id(pod, self.name, self.restarts)
        self.state = Termination(code, now, self.started or now).state(id)
        self.due = math.inf

    def shift(self, seconds: float) -> None:
        """Move its times, since the clock was set."""
        if self.started_once:
            self.started += seconds
        self.due += seconds

    def restore(self, status: Content) -> None:
        """Go on from its status."""
        self.restarts = self.failures = int(status.get("restartCount") or 0)
        self.last = status.get("lastState") or None
        state = status.get("state") or {}
        if "running" in state:
            self.state, self.started = state, seconds_of(state["running"].get("startedAt"))
            self.due = self._end()
        elif "terminated" in state:
            self.state, self.started = state, seconds_of(state["terminated"].get("startedAt"))
        elif self.last:
            self.failures += 1
            self.state, self.due = state, finished_at(self.last) + backoff(self.failures)


class PodRun:
    """The containers of a pod: init containers in turn, sidecars beside the others, then all others."""

    def __init__(self, pod: NodePod) -> None:
        policy = pod.spec.restart_policy
        once = "Never" if policy == "Never" else "OnFailure"
        inits, mains = pod.spec.init_containers or [], pod.spec.containers
        plans = container_plans([*inits, *mains], pod)
        self.planned = any(plan is not None for plan in plans)
        """A container says when it ends."""
        self.started = 0.0
        self.inits = [_init_container(spec, once, plan) for spec, plan in zip(inits, plans, strict=False)]
        self.mains = [
            ContainerRun(spec, policy, plan) for spec, plan in zip(mains, plans[len(inits) :], strict=True)
        ]

    @property
    def uncertain_since(self) -> float | None:
        """When a container started that does not say when it ends, if there is one."""
        return next((main.started for main in self.mains if main.plan is None and main.runs), None)

    @property
    def due(self) -> float:
        return min(container.due for container in (*self.inits, *self.mains))

    @property
    def initialized(self) -> bool:
        return all(init.initialized for init in self.inits)

    @property
    def finished(self) -> bool:
        """No container will run again."""
        return any(init.exit_code for init in self.inits) or all(
            main.exit_code is not None for main in self.mains
        )

    @property
    def exit_code(self) -> int:
        """Of the pod: that of the first container that failed."""
        return next((code for run in (*self.inits, *self.mains) if (code := run.exit_code)), 0)

    def restore(self, pod: NodePod, now: float) -> None:
        """Go on where the status of the pod is; a start in the future, before the clock was set, counts as now."""
        status = pod.status
        self.started = status.start_time.timestamp() if status.start_time is not None else 0.0
        statuses = {
            each.get("name"): each
            for each in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
        }
        runs = (*self.inits, *self.mains)
        for run in runs:
            run.restore(statuses.get(run.name) or {})
        if (last := max(self.started, *(run.started for run in runs))) > now:
            self.shift(now - last)

    def shift(self, seconds: float) -> None:
        """Move all times, since the clock was set."""
        if self.started:
            self.started += seconds
        for run in (*self.inits, *self.mains):
            run.shift(seconds)

    def advance(self, pod: NodePod, now: float) -> list[str]:
        """Do everything that is due, at first start; the names of containers that now wait for their back-off."""
        self.started = self.started or now
        waiting = [run.name for run in (*self.inits, *self.mains) if run.advance(pod, now)]
        self._start_next(now)
        if self.finished:
            self.stop(pod, now, 0)  # sidecars end after all others
        return waiting

    def _start_next(self, now: float) -> None:
        for init in self.inits:
            if not init.started_once:
                init.start(now)
            if not init.initialized:
                return
        for main in self.mains:
            if not main.started_once:
                main.start(now)

    def stop(self, pod: NodePod, now: float, code: int) -> None:
        """End all containers that run or wait; those that never ran stay as they are."""
        for run in (*self.inits, *self.mains):
            if run.runs:
                run.terminate(pod, now, code)
            elif run.exit_code is None and run.last is not None:
                run.state, run.due = run.last, math.inf


def backoff(failures: int) -> float:
    """Seconds before a restart: none before the first, then doubling."""
    return 0.0 if failures <= 1 else min(MAX_BACKOFF, FIRST_BACKOFF * 2.0 ** min(failures - 2, 10))


def full_name(pod: NodePod) -> str:
    """As a kubelet writes it in messages."""
    return f"{pod.name}_{pod.namespace}({pod.uid})"


def _init_container(spec: Content, policy: str, plan: CommandPlan | None) -> ContainerRun:
    """One that does not say when it ends completes at once: whatever it waits for is there."""
    policy = names.RESTART_ALWAYS if spec.get("restartPolicy") == names.RESTART_ALWAYS else policy
    if plan is None and policy != names.RESTART_ALWAYS:
        plan = CommandPlan(0.0)
    return ContainerRun(spec, policy, plan)
