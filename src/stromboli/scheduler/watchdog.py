"""Says which plugin does not return, at which extension point and for how long, from a thread of its own.

Code that holds the interpreter's lock, such as a regular expression, stops this thread too, with the event loop, its
endpoints and the lease. Then a timer that needs no lock writes the stacks of all threads to stderr.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from stromboli.daemon.metric_types import forget
from stromboli.engine.plugin_calls import PluginCall, line_of, plugin_calls
from stromboli.scheduler.scheduler_metrics import Metrics

log = logging.getLogger(__name__)

SLOW_AFTER = 5.0
"""Seconds after which the log and a metric tell of a call that has not returned."""
HANGS_AFTER = 60.0
"""Seconds after which such a call is a reason to replace the process."""
WAY_OUT = "this process should be replaced; mend the plugin and restart"
INTERVAL = 1.0
"""Seconds between two looks; they are all that the watchdog costs."""


class Watchdog:
    """Looks at the stack of a thread from time to time."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic):
        self._metrics = metrics
        self._clock = clock
        self._since: dict[PluginCall, float] = {}
        """When each call that is under way was first seen."""
        self._slow: PluginCall | None = None
        """The call that was told of."""
        self._hanging = ""

    @property
    def problem(self) -> str:
        """Which plugin hangs, if one does; from any thread."""
        return self._hanging

    def watch(self, thread: threading.Thread) -> None:
        """Look at a thread until it ends."""
        threading.Thread(target=self._run, args=(thread,), name="watchdog", daemon=True).start()

    def _run(self, thread: threading.Thread) -> None:
        while thread.is_alive():
            with suppress(
                OSError, ValueError, AttributeError, RuntimeError
            ):  # without a stderr there is no timer
                faulthandler.dump_traceback_later(HANGS_AFTER)
            thread.join(INTERVAL)
            with self._metrics.guard("watchdog"):
                self.look(sys._current_frames().get(thread.ident or 0))
        faulthandler.cancel_dump_traceback_later()

    def look(self, frame: FrameType | None) -> None:
        """Compare the calls on a stack with those of the last look."""
        now = self._clock()
        self._since = {call: self._since.get(call, now) for call in plugin_calls(frame)}
        slow = next((call for call, since in self._since.items() if now - since >= SLOW_AFTER), None)
        if slow != self._slow and self._slow is not None:
            forget(self._metrics.plugin_running, self._slow.plugin, self._slow.point)
            log.warning("plugin %r goes on after %s", self._slow.plugin, self._slow.point)
        if slow is None:
            self._slow, self._hanging = None, ""
            return
        seconds = now - self._since[slow]
        self._metrics.plugin_running.labels(slow.plugin, slow.point).set(seconds)
        text = f"plugin {slow.plugin!r} has been running in {slow.point} for {seconds:.0f} seconds"
        if slow != self._slow:
            self._slow = slow
            self._metrics.slow_plugin_calls.labels(slow.plugin, slow.point).inc()
            log.warning("%s, at %s", text, line_of(frame))
        if seconds >= HANGS_AFTER:
            if not self._hanging:
                log.error("%s, at %s: %s", text, line_of(frame), WAY_OUT)
            self._hanging = text
