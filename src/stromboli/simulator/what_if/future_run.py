"""What comes of a cluster as virtual time passes under its policy, and why jobs wait meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Outcome
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.simulation_loop import SimulationLoop
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.what_if.future_world import FutureWorld

Progress = Callable[[float, int], None]
"""Called at every moment with the virtual seconds that have passed, and the jobs that wait."""


@dataclass(slots=True)
class Wait:
    """Why a job waits from a moment on, in seconds from the present."""

    since: float
    explanation: Diagnosis


@dataclass(slots=True)
class Future:
    """The record of a run, and why the jobs waited that were to be watched."""

    record: RunRecord
    waits: dict[str, list[Wait]] = field(default_factory=dict)
    """By the job; only where the reason changes."""


class FutureRun:
    """A run from the present until nothing happens any more."""

    def __init__(
        self,
        loaded: Loaded,
        policy: Policy,
        catalog: Catalog,
        now: float,
        assumed: float | None = None,
        watched: Collection[str] = (),
    ) -> None:
        """`assumed`: seconds that jobs without a limit run; `watched`: jobs whose reasons to wait are kept."""
        settings = SimulationSettings()
        self._world = FutureWorld(loaded, now, settings, assumed)
        self._watched = [job for job in self._world.cluster.jobs.values() if job.key in watched]
        self._loop = SimulationLoop(self._world, policy, catalog, settings, self._observe)
        self._future = Future(self._world.record)

    def run(self, progress: Progress | None = None) -> Future:
        """Let time pass; an interrupt leaves a partial record."""
        world = self._world
        try:
            while self._loop.step():
                if progress is not None:
                    progress(world.time, len(world.cluster.backlog))
        except KeyboardInterrupt:
            world.record.partial = True
        self._loop.close()
        return self._future

    def _observe(self, outcome: Outcome) -> None:
        """Keep why the watched jobs wait, where that has changed."""
        if outcome.repeated:
            return
        for job in self._watched:
            explanation = outcome.explain(job)
            waits = self._future.waits.setdefault(job.key, [])
            if explanation is not None and (
                not waits or waits[-1].explanation.summary != explanation.summary
            ):
                waits.append(Wait(self._world.time, explanation))
