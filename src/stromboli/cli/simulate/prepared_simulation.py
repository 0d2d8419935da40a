"""What a form makes of the options: all that a simulation needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.runs.simulation import SimulationSettings
from stromboli.simulator.workloads.submitted_jobs import Workload


@dataclass(frozen=True, slots=True)
class PreparedSimulation:
    """A workload, the nodes it meets, the policy and the settings."""

    workload: Workload
    nodes: Sequence[Manifest]
    policy: Policy
    settings: SimulationSettings
