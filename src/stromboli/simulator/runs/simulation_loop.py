"""The loop of a simulation: from event to event, with cycles of the real scheduler in between."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind
from stromboli.engine.queue_limits import deserved_share, own_limits
from stromboli.engine.session import Session
from stromboli.engine.waiting.capacity_waits import Waits
from stromboli.engine.waiting.fixed_point import REPORTS
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.runs.event_queue import EventKind
from stromboli.simulator.runs.run_recorder import in_units
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.runs.timed_world import TimedWorld

Observe = Callable[[Outcome], None]
"""Called after every cycle, before what it decided comes true."""
MOST_CYCLES_AT_A_MOMENT = 100
"""After so many cycles that all changed something, time goes on by a period."""
MOST_IDLE_CYCLES = 10_000
"""So many cycles without an event end a simulation: evictions go round in circles."""
MOST_LATER_TRIES = 40
"""When nothing is to happen any more, those who wait are tried so many times again, each time twice as long after."""
MOST_FAILURES_OF_A_NODE = 1_000
"""So many failures of each node, while no job comes and no pod ends, end a simulation: nodes fail too often."""
MOST_LOST_CYCLES = 10
"""So many cycles in a row that a plugin lost end a simulation."""


class SimulationLoop:
    """Advances a world from moment to moment. Cycles follow events, or the period."""

    def __init__(
        self,
        world: TimedWorld,
        policy: Policy,
        catalog: Catalog,
        settings: SimulationSettings,
        observe: Observe | None = None,
    ) -> None:
        self._observe = observe
        self.world = world
        self._settings = settings
        self._scheduler = Scheduler(world, policy, catalog, settings.period, reports=False)
        self._for_waiting = all(action.for_waiting for action in self._scheduler.engine.actions)
        """Whether no action does anything where no job waits."""
        self._due = inf
        """When the next cycle is, if not at an event."""
        self._moment = inf
        """When somebody waits for the time alone."""
        self._unsure = False
        """Whether the last cycle could come to something else later though nothing happens."""
        self._idle = 0
        self._tries = 0
        self._lost = 0
        self._failures = 0
        self._began = False
        self._end = 0.0
        """When something happened or was decided for the last time."""
        self._session: Session | None = None
        """Of the last cycle that ran."""

    def recall(self, waits: Waits | None) -> None:
        """Begin with the jobs for which a cycle at the present found no room."""
        self._scheduler.engine.recall(self.world.cluster, waits)

    def step(self) -> bool:
        """Go on to the next moment at which anything happens; False if there is none."""
        time = min(self.world.events.next_time, self._due, self._moment)
        if time == inf:
            time = self._later()
        if time == inf or self._is_stuck():
            return False
        happened = self._happen_at(time)
        if self._settings.on_every_event:
            if happened or time >= min(self._due, self._moment):
                self._cycle_to_rest()
        else:
            self._cycle_in_period(happened)
        self.world.drop_misfits()
        self._sample()
        return True

    def _happen_at(self, time: float) -> bool:
        """Let everything happen that is to happen at a moment; whether anything was."""
        world, happened = self.world, False
        while world.events.next_time <= time:
            event = world.events.pop()
            if world.is_stale(event):
                continue
            if not happened:
                world.advance(event.time)
                happened = True
            self._count(event.kind)
            world.happen(event)
        if happened:
            self._idle = self._tries = 0
            self._end = world.time
        elif time > world.time and time >= min(self._due, self._moment):
            world.advance(time)
        return happened

    def _count(self, kind: EventKind) -> None:
        """Measures begin with the first job; failures of nodes are counted from one event of a job to the next."""
        if kind is EventKind.JOB_SUBMITTED and not self._began:
            self._began = True
            self.world.recorder.begin()
        if kind is EventKind.NODE_FAILS:
            self._failures += 1
        elif kind is not EventKind.NODE_REPAIRED:
            self._failures = 0

    # -- cycles

    def _cycle_to_rest(self) -> None:
        """Cycles at this moment, until they change nothing any more."""
        self._due = inf
        for _ in range(MOST_CYCLES_AT_A_MOMENT):
            if not self._cycle():
                return
        self._due = self.world.time + self._settings.period

    def _cycle_in_period(self, happened: bool) -> None:
        """A cycle if one is due; after an event it is due when its period is over."""
        time, period = self.world.time, self._settings.period
        if happened:
            self._due = min(self._due, self._grid(time))
        if time >= min(self._due, self._moment):
            changed = self._cycle()
            self._due = _after(time, period) if changed else inf

    def _grid(self, time: float) -> float:
        """The first multiple of the period that is not earlier."""
        return ceil(time / self._settings.period) * self._settings.period

    def _cycle(self) -> bool:
        """One cycle, and what it decided comes true; whether that could let more happen."""
        world, outcome = self.world, self._scheduler.cycle()
        world.record.cycles += 1
        self._idle += 1
        if self._observe is not None:
            self._observe(outcome)
        world.sync()
        self._note_failures(outcome)
        if outcome.repeated:
            return False
        self._session = outcome.session
        reads = outcome.session.reads
        self._moment = min(reads.until, world.cluster.reservations.next_moment) - world.epoch
        if self._moment <= world.time:
            self._moment = inf
        if not self._settings.on_every_event and self._moment < inf:
            self._moment = self._grid(self._moment)
        self._unsure = reads.any or bool(outcome.session.failures)
        return outcome.lost is None and self._may_go_on(outcome)

    def _may_go_on(self, outcome: Outcome) -> bool:
        """Whether another cycle at this moment could decide anything: not if pods were but bound and nobody waits."""
        deeds = [decision for decision in outcome.decisions if not isinstance(decision, REPORTS)]
        if deeds:
            self._end = self.world.time
        cluster = self.world.cluster
        if self._for_waiting and not cluster.backlog and not cluster.waiting:
            return any(not isinstance(decision, Bind) for decision in deeds)
        return bool(deeds)

    def _later(self) -> float:
        """When to try again those who wait though nothing is to happen, for a policy may go by the time itself."""
        waiting = self.world.cluster.backlog or self.world.cluster.waiting
        if not self._unsure or not waiting or self._tries >= MOST_LATER_TRIES:
            return inf
        self._due = self.world.time + self._settings.period * 2**self._tries
        self._tries += 1
        return self._due

    def _is_stuck(self) -> bool:
        """Whether it is of no use to go on."""
        if self._lost >= MOST_LOST_CYCLES:
            self._fail(f"it ended early: {MOST_LOST_CYCLES} cycles in a row came to nothing")
            return True
        if self._idle >= MOST_IDLE_CYCLES:
            self._fail(
                f"it ended early: {MOST_IDLE_CYCLES} cycles changed something though nothing happened, "
                "as when jobs evict each other in turn"
            )
            return True
        if self._failures > MOST_FAILURES_OF_A_NODE * max(1, len(self.world.record.nodes)):
            self._fail(
                f"it ended early: each node failed {MOST_FAILURES_OF_A_NODE} times and no pod came to its end; "
                "let nodes fail less often, or pods run for a shorter time"
            )
            return True
        return False

    def _note_failures(self, outcome: Outcome) -> None:
        if outcome.lost is None:
            self._lost = 0
        else:
            self._lost += 1
            self._fail(f"the cycle is lost: {outcome.lost.message}")
        for failure in outcome.session.failures:
            self._fail(failure.message)

    def _fail(self, why: str) -> None:
        self.world.record.failed = self.world.record.failed or why
        self.world.notes.add("time", "something failed", why)

    # -- samples

    def _sample(self) -> None:
        if self.world.recorder.wants_sample():
            self._add_sample()

    def _add_sample(self) -> None:
        gauge = self._settings.fragmentation
        fragmentation = gauge(self.world.cluster) if gauge is not None else None
        self.world.recorder.add_sample(self._deserved(), fragmentation)

    def _deserved(self) -> dict[str, dict[str, float]]:
        """What queues deserve, where several have had work."""
        world, session = self.world, self._session
        if session is None or len(world.recorder.used_by_queue) < 2:
            return {}
        dims, shares = world.cluster.dims, {}
        for name in sorted(world.recorder.used_by_queue):
            queue = world.cluster.queues.get(name)
            if queue is not None:
                share = deserved_share(queue, own_limits(session, queue))
                finite = {dim: int(amount) for dim, amount in share.items() if amount < inf}
                shares[name] = in_units(dims.named(finite))
        return shares

    def close(self) -> None:
        """The simulation has come to its end, which is before those tries that came to nothing."""
        self.world.advance(min(self._end, self.world.time))
        self._add_sample()
        self.world.close()


def _after(time: float, period: float) -> float:
    """The first multiple of a period that is later."""
    due = (time // period + 1) * period
    return due if due > time else due + period
