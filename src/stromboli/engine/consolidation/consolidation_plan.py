"""What consolidating for a gang comes down to: who moves from where to where, and where the gang's tasks go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stromboli.engine.consolidation.movable_tasks import Cost
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


class Move(NamedTuple):
    """A task that starts again elsewhere."""

    task: Task
    origin: Node
    destination: Node


@dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """Moves with which a gang fits; none if it fits as it is."""

    job: Job
    domain: Domain
    moves: tuple[Move, ...]
    placements: tuple[tuple[Task, Node], ...]
    """The tasks of the gang that get room, in order."""
    domains: Mapping[SubJob, Domain]
    """The domain of each sub-group."""
    cost: Cost
    chosen_by: str
    """The plugins that let the moved tasks go."""
