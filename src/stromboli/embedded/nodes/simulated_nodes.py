"""Simulated nodes: no machine, no process, only time. One heap of alarms for all pods of all nodes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import dataclass

from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.pod_addresses import PodAddresses
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.pod_stages import (
    PodState,
    ScheduledStage,
    Stage,
    StageDelays,
    next_stage,
    started_at,
    state_of,
)
from stromboli.embedded.nodes.timer_heap import TimerHeap
from stromboli.embedded.nodes.write_queue import WriteQueue

AGAIN, LONGEST = 1.0, 60.0
"""Seconds until a step that could not be written is tried anew, at first and at most."""


@dataclass(slots=True)
class SimulatedPod:
    """A pod, where it stands, and what was set in motion."""

    pod: NodePod
    stage: PodState
    since: float
    step: ScheduledStage | None = None
    written: Stage | None = None
    """The step that was written and not yet seen."""
    failures: int = 0


class SimulatedRuntime:
    """Lets pods pretend to run."""

    def __init__(
        self,
        writes: WriteQueue,
        addresses: PodAddresses,
        habits: StageDelays,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writes = writes
        self._addresses = addresses
        self._habits = habits
        self._clock = clock
        self._lives: dict[str, SimulatedPod] = {}
        self._timers = TimerHeap(self._due, clock)

    def put(self, pod: NodePod) -> None:
        """A pod came, or is another now."""
        stage = state_of(pod)
        life = self._lives.get(pod.uid)
        if life is None:
            begun = started_at(pod) if stage is PodState.RUNNING else None
            life = self._lives[pod.uid] = SimulatedPod(pod, stage, self._clock() if begun is None else begun)
        elif life.stage is not stage:
            if stage is not PodState.RUNNING or life.written is not Stage.START:
                life.since = self._clock()  # how long it runs was counted from when we wrote that it does
            life.stage, life.written, life.failures = stage, None, 0
        life.pod = pod
        self._plan(life)

    def drop(self, uid: str) -> None:
        """A pod is gone."""
        self._lives.pop(uid, None)
        self._timers.cancel(uid)

    def log(self, pod: NodePod, query: LogQuery) -> AsyncIterator[bytes]:
        """A simulated pod has nothing to say but that."""
        return _nothing(pod)

    async def close(self) -> None:
        self._timers.clear()

    def _plan(self, life: SimulatedPod) -> None:
        life.step = next_stage(life.pod, life.since, self._habits)
        if life.step is None or life.step.what is life.written:
            self._timers.cancel(life.pod.uid)
        else:
            self._timers.set(life.pod.uid, life.step.when)

    def _due(self, uid: Hashable) -> None:
        life = self._lives.get(str(uid))
        if life is None or life.step is None:
            return
        pod, step, now = life.pod, life.step, self._clock()
        life.written = step.what

        def failed(_: Exception) -> None:
            if self._lives.get(pod.uid) is life and life.written is step.what:
                life.written = None
                pause = min(LONGEST, AGAIN * 2.0 ** min(life.failures, 10))
                life.failures += 1
                self._timers.set(pod.uid, self._clock() + pause)

        match step.what:
            case Stage.START:
                life.since = now
                address, host = self._addresses.of(pod)
                self._writes.status(pod, pod_status_patches.running(pod, now, address, host), failed)
            case Stage.FINISH:
                self._writes.status(
                    pod, pod_status_patches.finished(pod, now, life.since, step.exit_code), failed
                )
            case Stage.EXPIRE:
                self._writes.status(pod, pod_status_patches.expired(pod, now, life.since), failed)
            case Stage.LEAVE:
                self._writes.let_go(pod, failed)


async def _nothing(pod: NodePod) -> AsyncIterator[bytes]:
    yield f"(simulated: {pod.spec.node_name} runs no processes)\n".encode()
