"""The thread that alone may look at the model: before our turn it keeps in step, then it runs cycle after cycle."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from stromboli.scheduler.cycle_calls import Errands
from stromboli.scheduler.cycle_metrics import Measuring
from stromboli.scheduler.decision_log import tell
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduling_loop import Scheduler

log = logging.getLogger(__name__)

STUCK = 300.0
"""Seconds without the end of a cycle after which we should be restarted."""
GARBAGE = (20_000, 20, 50)
"""How many new objects until Python looks for garbage: with its own 700 that is a tenth of our time under load."""


class Loop:
    """Made, told whose turn it is, and waited for on the event loop."""

    def __init__(
        self, world: KubernetesWorld, scheduler: Scheduler, measuring: Measuring, stop: threading.Event
    ):
        """`stop` ends it, and its rest."""
        self.scheduler = scheduler
        self.errands = Errands()
        self.crashed = False
        self.ended = asyncio.Event()
        self._world = world
        self._measuring = measuring
        self._last_round = time.monotonic()
        self._turn = threading.Event()
        """Set when it is our turn, or when it never will be."""
        self._stop = stop

    @property
    def leads(self) -> bool:
        return self._turn.is_set() and not self._stop.is_set()

    @property
    def silence(self) -> float:
        """Seconds since it last came round."""
        return time.monotonic() - self._last_round

    def start(self) -> None:
        """Keep in step."""
        gc.set_threshold(*GARBAGE)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, args=(loop,), name="cycles", daemon=True).start()

    def lead(self) -> None:
        """It is our turn."""
        self._turn.set()

    def stop(self) -> None:
        """End after the cycle that is under way; from any thread."""
        self._stop.set()
        self._turn.set()

    # -- in the thread

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while not self._turn.is_set():
                self._world.follow()
                self._came_round()
                self._turn.wait(self.scheduler.period)
            if not self._stop.is_set():
                self._world.take_over()
                self._cycle()
                gc.collect()
                gc.freeze()  # what is there stays for long
            while not self._stop.is_set():
                self._world.sleep(self.scheduler.period)
                self._cycle()
        except BaseException:
            self.crashed = True
            log.exception("the loop broke down")
        finally:
            call(loop, self.ended.set)

    def _cycle(self) -> None:
        outcome = self.scheduler.cycle()
        self._measuring.cycle(outcome)
        tell(outcome)
        self._came_round()

    def _came_round(self) -> None:
        self.errands.attend()
        self._last_round = time.monotonic()


def call(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    """On the event loop, unless it is over."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
