"""Times in the states of containers, as seconds since the epoch."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stromboli.embedded.nodes.node_types import Content


def seconds_of(text: Any) -> float:
    """0 if it is no time."""
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else 0.0
    except ValueError:
        return 0.0


def finished_at(state: Content) -> float:
    return seconds_of((state.get("terminated") or {}).get("finishedAt"))


def started_at(state: Content) -> float:
    """Of a container that runs or terminated."""
    return seconds_of((state.get("running") or state.get("terminated") or {}).get("startedAt"))
