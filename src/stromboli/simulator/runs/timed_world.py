"""What every cluster in virtual time has: a clock, events, and the record of what happens."""

from __future__ import annotations

from abc import ABC, abstractmethod

from stromboli.model.intake.object_intake import Intake
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.simulator.runs.event_queue import EventQueue, ScheduledEvent
from stromboli.simulator.runs.run_notes import RunNotes
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.run_recorder import RunRecorder

GANG_RESTARTED = "its gang fell below its minimum"


class TimedWorld(Rehearsal, ABC):
    """A world that a simulation loop takes from event to event."""

    record: RunRecord
    recorder: RunRecorder

    def __init__(self, epoch: float, intake: Intake | None = None) -> None:
        super().__init__(intake, epoch)
        self.epoch = epoch
        """When it begins, in seconds since 1970."""
        self.time = 0.0
        """Seconds since it began."""
        self.events = EventQueue()
        self.notes = RunNotes()
        self.done = 0
        """Jobs that have ended or left."""

    def advance(self, time: float) -> None:
        """Virtual time passes until a moment."""
        self.recorder.advance(time)
        self.time = time
        self._now = self.epoch + time

    @abstractmethod
    def happen(self, event: ScheduledEvent) -> None:
        """Something happens now."""

    @abstractmethod
    def is_stale(self, event: ScheduledEvent) -> bool:
        """Whether an event is of a pod that does not run any more."""

    @abstractmethod
    def drop_misfits(self) -> None:
        """Jobs leave that were submitted at this moment and could not start, where jobs do so."""

    @abstractmethod
    def close(self) -> None:
        """Complete the record."""
