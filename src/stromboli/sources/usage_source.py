"""The interface of sources of node usage, and checks of their responses."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from stromboli.api import go_scalars
from stromboli.model.node_usage import NodeUsage
from stromboli.transport import Trust

T = TypeVar("T")
Metrics = Mapping[str, str]
"""The `metrics` section of a policy."""
WINDOW = "10m"
"""The period over which usage is averaged."""


class BadMetrics(Exception):
    """Invalid settings of a source, or an invalid response."""


class Source(Protocol):
    """Measures the load of nodes."""

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        """Usage by node; raises `BadMetrics` or `CallFailed` if it cannot be read."""


def decoded(body: bytes, kind: type[T], source: str) -> T:
    """A response, if it has the expected form."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadMetrics(f"{source}: the answer is not what it should be: {error}"[:300]) from None


def paired(
    cpu: Mapping[str, float], memory: Mapping[str, float], nodes: Collection[str], at: float
) -> dict[str, NodeUsage]:
    """Usage of the nodes for which both numbers are known."""
    return {
        node: NodeUsage(max(cpu[node], 0.0), max(memory[node], 0.0), at)
        for node in nodes
        if _known(cpu.get(node)) and _known(memory.get(node))
    }


def _known(number: float | None) -> bool:
    """A node without a measurement must not look idle."""
    return number is not None and math.isfinite(number)


def number(value: Any) -> float:
    """A number that may be written as text; NaN if it is invalid."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def address(metrics: Metrics) -> str:
    """The address in the settings, without a slash at its end."""
    given = metrics.get("address", "").rstrip("/")
    if not given:
        raise BadMetrics(f"metrics: type {metrics.get('type', '')} needs an address")
    return given


def trust(metrics: Metrics) -> Trust:
    return Trust(verify=go_scalars.boolean(metrics.get("tls.insecureSkipVerify", "")) is not True)
