"""Which plugins a thread is in, by its stack: a plugin that hangs can be named although no call is noted anywhere."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import NamedTuple

from stromboli.engine.placement.evaluation import Evaluation
from stromboli.engine.placement.node_answers import finished, scored
from stromboli.engine.placement.node_functions import NodeFilter, NodeScore, checked
from stromboli.engine.placement.usage_evaluation import UsageEvaluation
from stromboli.engine.plugin import Plugin

_NODE_FUNCTIONS: dict[CodeType, str] = {
    checked.__code__: "filter",
    scored.__code__: "score",
    finished.__code__: "score",
    UsageEvaluation._score.__code__: "score",
    Evaluation._version.__code__: "function",
}
"""Where the engine calls filters and scores, which need not be methods of a plugin, and which variable holds them."""


class PluginCall(NamedTuple):
    """A call of a plugin that is under way; the same call is equal to itself whenever it is looked at."""

    frame: FrameType
    plugin: str
    point: str


def plugin_calls(frame: FrameType | None) -> list[PluginCall]:
    """The calls of plugins on the stack that ends in a frame, the innermost first."""
    calls = []
    while frame is not None:
        asked = _asked(frame)
        if asked is not None:
            calls.append(PluginCall(frame, *asked))
        frame = frame.f_back
    return calls


def _asked(frame: FrameType) -> tuple[str, str] | None:
    """The plugin and the point, if a frame is one of a plugin: all its public methods are points."""
    code = frame.f_code
    if code in _NODE_FUNCTIONS:
        called = frame.f_locals.get(_NODE_FUNCTIONS[code])
        if isinstance(called, NodeFilter | NodeScore):
            return called.plugin, "node_filters" if isinstance(called, NodeFilter) else "node_scores"
    elif code.co_argcount and not code.co_name.startswith("_"):
        first = frame.f_locals.get(code.co_varnames[0])
        if isinstance(first, Plugin):
            return first.name, code.co_name
    return None


def line_of(frame: FrameType | None) -> str:
    """The file and line that a frame is at."""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "an unknown line"
