"""When a plugin raises: which one it was, at which point, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.engine.nodefunctions import BadAnswer
from stromboli.engine.plugin import Plugin

LONGEST = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """A plugin's mistake, as far as it can be told."""

    plugin: str
    point: str
    error: str

    @property
    def message(self) -> str:
        who = f"plugin {self.plugin!r} failed in {self.point}" if self.plugin else "scheduling failed"
        return f"{who}: {self.error}"


class CycleLost(Exception):
    """A failure that costs the cycle, never the state."""

    def __init__(self, failure: Failure):
        super().__init__(failure.message)
        self.failure = failure


def failure_of(error: BaseException) -> Failure:
    """The outermost plugin method on the way to an error."""
    plugin, point = (error.plugin, error.point) if isinstance(error, BadAnswer) else ("", "")
    trace = error.__traceback__
    while trace is not None and not plugin:
        frame = trace.tb_frame
        who = frame.f_locals.get("self")
        if isinstance(who, Plugin):
            plugin, point = who.name, frame.f_code.co_name
        trace = trace.tb_next
    text = f"{type(error).__name__}: {error}"
    return Failure(plugin, point, text if len(text) <= LONGEST else text[:LONGEST] + "...")
