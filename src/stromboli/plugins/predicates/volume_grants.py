"""What a task is given for its claims that wait for it, on the node that was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.placement.node_functions import Refusal
from stromboli.model.volumes.task_volumes import delayed_claims
from stromboli.model.volumes.volume_grant import VolumeGrant

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task


def volume_grants(cluster: Cluster, task: Task, node: Node, timeout: int) -> Iterator[VolumeGrant | Refusal]:
    """A volume for each claim, or the promise to provision one on the node."""
    waiting = delayed_claims(cluster.volumes, cluster.objects, task) if task.volume_claims else []
    if not waiting:
        return
    volumes = cluster.volumes.matching.choose(tuple(delayed for _, delayed in waiting), node.row)
    if volumes is None:  # somebody else has the volume since the filters were asked
        yield Refusal(names.NO_VOLUME_TO_BIND)
        return
    for (claim, _), volume in zip(waiting, volumes, strict=True):
        yield VolumeGrant(claim.namespace, claim.name, claim.metadata.uid, volume, timeout)
