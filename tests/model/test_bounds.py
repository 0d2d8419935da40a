"""Hostile amounts are refused before they could make a sum wrap."""

import pytest

from stromboli.api.errors import BadObject
from stromboli.testing import World


def test_a_pod_with_which_a_nodes_sum_could_not_be_counted_is_refused():
    world = World(nodes="n1 cpu=4,memory=10Gi")
    world.job("one", memory="3Ei", running_on="n1")
    with pytest.raises(BadObject, match="node n1 would hold more memory than can be counted"):
        world.job("two", memory="3Ei", running_on="n1")
    world.cluster.settle()
    assert world.cluster.columns.row("n1")["used"]["memory"] == 3 * 2**60


def test_shapes_that_a_cycle_did_not_meet_are_forgotten():
    world = World(nodes="n1 cpu=1")
    world.job("small", cpu=2)
    world.run(plugins="gang")
    placement = world.step().outcome.session.placement
    assert len(placement._known) == 1
    world.finish("small-0")
    world.step(2)
    assert len(placement._known) == 0
