"""Nodes are evaluated ahead for a shape that is placed again and again, as often as that pays."""

from collections import Counter

import pytest

from stromboli.engine.placement import usage_evaluation
from stromboli.engine.placement.node_functions import reads
from stromboli.engine.plugin import Plugin
from stromboli.model.dimensions import CPU
from stromboli.testing import World

NODES, PODS, BEYOND = 40, 400, 10
IN_TWO_STEPS = 2 * NODES


@pytest.fixture
def two_steps_ahead(monkeypatch):
    monkeypatch.setattr(usage_evaluation, "MAX_STEPS_AT_ONCE", IN_TWO_STEPS)
    monkeypatch.setattr(usage_evaluation, "AGAIN_AFTER", BEYOND)


@pytest.mark.usefixtures("two_steps_ahead")
def test_nodes_are_evaluated_ahead_again_once_placements_went_beyond():
    evaluated = Counter()

    class Spread(Plugin):
        name = "spread"

        @reads("usage")
        def score_nodes(self, task, nodes):
            evaluated[len(nodes)] += 1
            return -nodes.used[CPU].astype(float)

    nodes = "; ".join(f"n{number} cpu=100" for number in range(NODES))
    run = (
        World(nodes=nodes).job("job", pods=PODS, cpu=1).run(plugins="gang | spread", plugin_classes=[Spread])
    )
    assert set(Counter(run.binds.values()).values()) == {PODS // NODES}
    assert evaluated[IN_TWO_STEPS] == PODS // (NODES + BEYOND)
