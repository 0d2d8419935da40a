"""What is free and what is overbooked is kept up while few nodes change, and summed up again if many do."""

from __future__ import annotations

import pytest

from stromboli.model.node_columns import SpareSums
from stromboli.model.status import Status
from stromboli.testing import World


@pytest.mark.parametrize("changed", [1, 2, 3, 8])
def test_sums_are_those_of_all_nodes_however_many_changed(changed: int) -> None:
    nodes = [f"n{number}" for number in range(8)]
    world = World("; ".join(f"{name} cpu=2" for name in nodes))
    for name in nodes:
        world.job(f"waits-{name}", cpu=3).job(f"runs-{name}", cpu=1, running_on=name)
    world.step()
    cluster = world.cluster
    assert cluster.columns.free == SpareSums(cluster.columns).current()[0]
    for name in nodes[:changed]:
        cluster.move(cluster.tasks[f"Pod/default/waits-{name}-0"], Status.BOUND, cluster.nodes[name])
    free, overbooked = SpareSums(cluster.columns).current()
    assert (cluster.columns.free, cluster.columns.overbooked) == (free, overbooked)
    assert overbooked[0] == 2000 * changed
