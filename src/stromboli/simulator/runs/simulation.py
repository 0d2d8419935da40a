"""A simulation: the real scheduler on a virtual world, from event to event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.workloads.submitted_jobs import Workload

Progress = Callable[[int, float], None]
"""Called now and then with the number of jobs that are done and the virtual time."""


@dataclass(frozen=True, slots=True)
class NodeFailures:
    """How often nodes fail and how long they are away: exponentially distributed, of each node by itself."""

    mean_time_between_failures: float
    mean_time_to_repair: float


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How a simulation runs, besides its workload, nodes and policy."""

    seed: int = 0
    period: float | None = None
    """Seconds of virtual time from cycle to cycle; None: a cycle on every event."""
    failures: NodeFailures | None = None
    drop_misfits: bool = False
    """Whether a job leaves that does not fit in the cycle after its submission."""
    described_by: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    """What the record says of the settings: options, names of files and policies."""


def simulate(
    workload: Workload,
    nodes: Sequence[Manifest],
    policy: Policy,
    catalog: Catalog,
    settings: SimulationSettings = SimulationSettings(),  # noqa: B008 (it is frozen)
    progress: Progress | None = None,
) -> RunRecord:
    """Run a workload to its end, or as far as it comes; an interrupt ends it early and leaves a partial record.

    Without nodes it runs on those of the workload.
    """
    raise NotImplementedError
