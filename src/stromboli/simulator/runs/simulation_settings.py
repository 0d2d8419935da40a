"""How a simulation runs, besides its workload, nodes and policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stromboli.model.cluster import Cluster
from stromboli.scheduling_loop import PERIOD
from stromboli.simulator.runs.node_outages import NodeFailures
from stromboli.simulator.runs.run_record import RunRecord

Gauge = Callable[[Cluster], float | None]
"""Measures the cluster at the moments of samples and at the end."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How a simulation runs."""

    seed: int = 0
    on_every_event: bool = True
    """Whether there is a cycle at every event; else one in a period, where it could decide anything."""
    period: float = PERIOD
    """Seconds of virtual time from cycle to cycle, where cycles do not follow events."""
    failures: NodeFailures | None = None
    drop_misfits: bool = False
    """Whether a job leaves that could not start at the moment of its submission."""
    fragmentation: Gauge | None = None
    """The share of GPUs that typical tasks cannot use."""
    measures: Callable[[RunRecord], Mapping[str, float]] | None = None
    """More figures of the finished run, for its record."""
    described_by: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    """What the record says of the settings: options, names of files and policies."""
