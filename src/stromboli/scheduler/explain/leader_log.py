"""What the leader keeps about its decisions: those about each job, its last cycles, and the active policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.scheduler.explain.cycle_record import CycleRecord
from stromboli.scheduler.explain.decision_history import DecisionHistory
from stromboli.scheduler.explain.policy_record import PolicyRecord

if TYPE_CHECKING:
    from stromboli.daemon.telemetry_guard import TelemetryGuard
    from stromboli.engine.cycle import Outcome
    from stromboli.scheduling_loop import Scheduler


class LeaderLog:
    """Written in the cycle's thread, read on the event loop without waiting for a cycle."""

    def __init__(self) -> None:
        self.jobs = DecisionHistory()
        self.cycles = CycleRecord()
        self.policy = PolicyRecord()

    def note(self, scheduler: Scheduler, outcome: Outcome, guard: TelemetryGuard) -> None:
        """Record a cycle that ended; the cluster has not changed since."""
        with guard("cycle record"):
            self.cycles.note(outcome)
        with guard("policy record"):
            self.policy.note(scheduler)
