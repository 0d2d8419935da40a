"""What the leader remembers of itself: its last cycles, and the policy in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.scheduler.explain.cycle_record import CycleRecord
from stromboli.scheduler.explain.policy_record import PolicyRecord

if TYPE_CHECKING:
    from stromboli.daemon.telemetry_guard import TelemetryGuard
    from stromboli.engine.cycle import Outcome
    from stromboli.scheduling_loop import Scheduler


class LeaderRecord(NamedTuple):
    """Noted in the cycle's thread, told on the event loop without waiting for a cycle."""

    cycles: CycleRecord
    policy: PolicyRecord

    def note(self, scheduler: Scheduler, outcome: Outcome, guard: TelemetryGuard) -> None:
        """A cycle ended, and the cluster has not changed since."""
        with guard("cycle record"):
            self.cycles.note(outcome)
        with guard("policy record"):
            self.policy.note(scheduler)
