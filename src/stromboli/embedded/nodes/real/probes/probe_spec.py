"""A probe as a container's spec has it, with Kubernetes' defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from stromboli.embedded.nodes.node_types import Content


class ProbeType(StrEnum):
    """The value is the word of events."""

    STARTUP = "Startup"
    LIVENESS = "Liveness"
    READINESS = "Readiness"


@dataclass(frozen=True, slots=True)
class Probe:
    """How a container is probed; `handler` has `exec`, `httpGet`, `tcpSocket` or `grpc`."""

    handler: Content
    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace: float | None = None
    """Instead of the pod's grace period, if a container is killed as this probe failed."""


def container_probes(container: Content) -> dict[ProbeType, Probe]:
    """The probes of a container."""
    return {type: _probe(spec) for type, spec in _specs(container)}


def _specs(container: Content) -> Iterator[tuple[ProbeType, Content]]:
    for type in ProbeType:
        spec = container.get(f"{type.lower()}Probe")
        if spec is not None:
            yield type, spec


def _probe(spec: Content) -> Probe:
    grace = spec.get("terminationGracePeriodSeconds")
    return Probe(
        handler=spec,
        initial_delay=_seconds(spec, "initialDelaySeconds", 0),
        period=_seconds(spec, "periodSeconds", 10),
        timeout=_seconds(spec, "timeoutSeconds", 1),
        success_threshold=int(spec.get("successThreshold") or 1),
        failure_threshold=int(spec.get("failureThreshold") or 3),
        termination_grace=None if grace is None else float(grace),
    )


def _seconds(spec: Content, field: str, default: float) -> float:
    """Nought and less are as if nothing was given."""
    value = float(spec.get(field) or 0)
    return value if value > 0 else default
