"""Simulated nodes: no machine, no process, only time. One timer heap for all pods of all nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import NoReturn

from stromboli.api import names
from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.pod_claims_check import MissingClaim, needs_claims
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.pod_streams import CommandRequest, Remote, Socket, StreamRefused
from stromboli.embedded.nodes.simulated.pod_run import PodRun, full_name
from stromboli.embedded.nodes.simulated.pod_run_status import PodRunStatus
from stromboli.embedded.nodes.simulated.pod_stages import (
    PodState,
    ScheduledStage,
    Stage,
    StageDelays,
    next_of_run,
    next_stage,
    running_containers,
    says_how_it_ends,
    started_at,
    state_of,
)
from stromboli.embedded.nodes.simulated.simulated_logs import simulated_log
from stromboli.embedded.nodes.timer_heap import TimerHeap
from stromboli.embedded.nodes.usage.cluster_usage import ContainerUsage
from stromboli.embedded.nodes.usage.simulated_usage import container_usages
from stromboli.embedded.nodes.write_queue import WriteQueue

FIRST_RETRY, MAX_RETRY = 1.0, 60.0
"""Seconds until a stage that could not be written is tried again, at first and at most."""
FIRST_CHECK, MAX_CHECK = 1.0, 8.0
"""Seconds until claims that a pod waits for are looked at again, at first and at most."""
MIN_JUMP = 1.0
"""Seconds by which the wall clock must be set before the times of pods follow."""
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

CheckClaims = Callable[[NodePod], Awaitable[MissingClaim | None]]


@dataclass(slots=True)
class SimulatedPod:
    """A pod, its state, and the stage that comes next."""

    pod: NodePod
    state: PodState
    since: float
    next: ScheduledStage | None = None
    written: Stage | None = None
    """The stage that was written and not yet observed."""
    failures: int = 0
    has_claims: bool = False
    """Its volumes and devices were there when it was about to start."""
    checks: int = 0
    """How often they were not."""
    run: PodRun | None = None
    """Its containers, if their commands plainly do something."""
    run_status: PodRunStatus | None = None

    def plan(self, now: float) -> None:
        """Read what its containers do, and go on where they are."""
        if not says_how_it_ends(self.pod) and (run := PodRun(self.pod)).planned:
            self.run, self.run_status = run, PodRunStatus(self.pod, run)
            if self.state is PodState.RUNNING:
                run.restore(self.pod, now)

    def shift(self, seconds: float) -> None:
        """Move its times, since the clock was set."""
        self.since += seconds
        if self.next is not None:
            self.next = self.next._replace(at=self.next.at + seconds)
        if self.run is not None:
            self.run.shift(seconds)


def uptime() -> float:
    """Seconds since the machine started, including those in which it slept."""
    return time.clock_gettime(_UPTIME)


class SimulatedRuntime:
    """Plays the stages of pods."""

    def __init__(
        self,
        writes: WriteQueue,
        addresses: PodAddresses,
        delays: StageDelays,
        clock: Callable[[], float] = time.time,
        check_claims: CheckClaims | None = None,
        steady: Callable[[], float] | None = None,
    ) -> None:
        """`check_claims` returns what a pod with claims still waits for, as a kubelet would.

        `steady` is a clock that is never set, for durations. Default: the machine's if `clock` is, else `clock`.
        """
        self._writes = writes
        self._addresses = addresses
        self._check_claims = check_claims
        self._checks: set[asyncio.Task[None]] = set()
        self._delays = delays
        self._clock = clock
        self._steady = steady or (uptime if clock is time.time else clock)
        self._offset = clock() - self._steady()
        self._pods: dict[str, SimulatedPod] = {}
        self._timers = TimerHeap(self._play, self._now)

    def _now(self) -> float:
        """Read the wall clock; if it was set, all times move with it, so that pods run as long as they would have."""
        now = self._clock()
        jump = now - self._steady() - self._offset
        if abs(jump) >= MIN_JUMP:
            self._offset += jump
            self._timers.shift(jump)
            for simulated in self._pods.values():
                simulated.shift(jump)
        return now

    def put(self, pod: NodePod) -> None:
        state = state_of(pod)
        simulated = self._pods.get(pod.uid)
        if simulated is None:
            now = self._now()
            started = started_at(pod) if state is PodState.RUNNING else None
            since = now if started is None else min(started, now)
            simulated = self._pods[pod.uid] = SimulatedPod(pod, state, since)
            if state in (PodState.BOUND, PodState.RUNNING):
                simulated.plan(now)
        elif simulated.state is not state:
            if state is not PodState.RUNNING or simulated.written is not Stage.START:
                simulated.since = self._now()  # a running pod counts from when its start was written
            simulated.state, simulated.written, simulated.failures = state, None, 0
        simulated.pod = pod
        self._schedule(simulated)

    def drop(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._timers.cancel(uid)

    def log(self, pod: NodePod, query: LogQuery) -> AsyncGenerator[bytes] | None:
        def current() -> NodePod | None:
            simulated = self._pods.get(pod.uid)
            return None if simulated is None else simulated.pod

        return simulated_log(pod, query, current, self._clock)

    async def clean_up(self) -> None:
        """Nothing is ever left."""

    async def measure(self) -> None:
        """Nothing is measured here."""

    def usage(self, pod: NodePod) -> list[ContainerUsage]:
        names = running_containers(pod) if pod.uid in self._pods else []
        return container_usages(pod, names, self._clock())

    def check_streams(self, pod: NodePod, container: str) -> NoReturn:
        raise StreamRefused(
            f"pod {pod.name} is on the simulated node {pod.spec.node_name}, which runs no processes:"
            " there is nothing to exec into, to attach to or to connect to; stromboli up --real runs pods as processes"
        )

    async def open_command(self, pod: NodePod, request: CommandRequest) -> Remote:
        self.check_streams(pod, request.container)

    async def open_port(self, pod: NodePod, port: int) -> Socket:
        self.check_streams(pod, "")

    async def close(self) -> None:
        self._timers.clear()
        for check in self._checks:
            check.cancel()

    async def _await_claims(self, simulated: SimulatedPod, check: CheckClaims) -> None:
        """Start a pod if everything that it claims is there, or tell what is missing and look again."""
        pod = simulated.pod
        missing = await check(pod)
        if self._pods.get(pod.uid) is not simulated or simulated.next is None:
            return
        if missing is None:
            simulated.has_claims = True
            self._play(pod.uid)
        else:
            self._writes.record_event(pod, names.WARNING, missing.reason, missing.message)
            self._timers.set(pod.uid, self._now() + _pause(simulated.checks, FIRST_CHECK, MAX_CHECK))
            simulated.checks += 1

    def _schedule(self, simulated: SimulatedPod) -> None:
        pod, run = simulated.pod, simulated.run
        if run is not None and simulated.state is PodState.RUNNING:
            simulated.next = next_of_run(pod, run, self._delays)
        else:
            simulated.next = next_stage(pod, simulated.since, self._delays)
        if simulated.next is None or simulated.next.stage is simulated.written:
            self._timers.cancel(pod.uid)
        else:
            self._timers.set(pod.uid, simulated.next.at)

    def _play(self, uid: str) -> None:
        simulated = self._pods.get(uid)
        if simulated is None or simulated.next is None:
            return
        pod, stage = simulated.pod, simulated.next.stage
        if stage is Stage.START and not simulated.has_claims and needs_claims(pod) and self._check_claims:
            task = asyncio.create_task(self._await_claims(simulated, self._check_claims))
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)
            return
        simulated.written = stage

        def failed(_: Exception) -> None:
            if self._pods.get(pod.uid) is simulated and simulated.written is stage:
                simulated.written = None
                pause = _pause(simulated.failures, FIRST_RETRY, MAX_RETRY)
                simulated.failures += 1
                self._timers.set(pod.uid, self._now() + pause)

        status = self._status(simulated, simulated.next)
        if stage is not Stage.DELETE:
            self._writes.patch_status(pod, status, failed)
            return
        if pod.needs_final_status:
            self._writes.patch_status(pod, status)
        self._writes.delete_pod(pod, failed)

    def _status(self, simulated: SimulatedPod, next: ScheduledStage) -> Content:
        """The status of a pod after a stage."""
        if simulated.run is not None:
            return self._run_status(simulated, simulated.run, next)
        pod, now = simulated.pod, self._now()
        match next.stage:
            case Stage.START:
                simulated.since = now
                return pod_status_patches.running(pod, now, *self._addresses.of(pod))
            case Stage.EXPIRE:
                return pod_status_patches.expired(pod, now, simulated.since)
            case Stage.DELETE:
                return pod_status_patches.killed(pod, now, simulated.since)
            case _:
                return pod_status_patches.finished(pod, now, simulated.since, next.exit_code)

    def _run_status(self, simulated: SimulatedPod, run: PodRun, next: ScheduledStage) -> Content:
        """The status of a pod after a stage, by its containers."""
        pod, now, code = simulated.pod, self._now(), None
        match next.stage:
            case Stage.START | Stage.ADVANCE:
                for name in run.advance(pod, now):
                    message = f"Back-off restarting failed container {name} in pod {full_name(pod)}"
                    self._writes.record_event(pod, names.WARNING, "BackOff", message)
                code = run.exit_code if run.finished else None
            case Stage.COMPLETE:
                run.stop(pod, now, 0)
                code = run.exit_code
            case Stage.EXPIRE | Stage.DELETE:
                run.stop(pod, now, pod_status_patches.KILLED)
                code = pod_status_patches.KILLED
        if next.stage is Stage.ADVANCE and code is None:  # it goes on without a look at what was written
            simulated.written = None
            self._schedule(simulated)
        assert simulated.run_status is not None
        status = simulated.run_status.status(pod, now, self._addresses.of(pod), code)
        return status | (pod_status_patches.DEADLINE_EXCEEDED if next.stage is Stage.EXPIRE else {})


def _pause(failures: int, first: float, longest: float) -> float:
    return min(longest, first * 2.0 ** min(failures, 10))
