"""Plugins may read the numbers of nodes, not change them: every plugin and the cluster itself share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stromboli.engine.placement.node_functions import Nodes, NodeScore, reads
from stromboli.engine.plugin import Plugin
from stromboli.model.dimensions import CPU
from stromboli.model.task import Task
from stromboli.testing import World


def greedy(change: Callable[[Nodes], Any], what: str) -> type[Plugin]:
    class Greedy(Plugin):
        """Subtracts from what it was shown."""

        name = "greedy"

        @reads(what)
        def score_nodes(self, task: Task, nodes: Nodes) -> Any:
            change(nodes)
            return nodes.zeros()

    return Greedy


def take_from_row(nodes: Nodes) -> None:
    left = nodes.idle[CPU]
    left -= 1000


def take_from_columns(nodes: Nodes) -> None:
    nodes.columns.idle[CPU] -= 1000


def take_from_block(nodes: Nodes) -> None:
    nodes.columns.amounts[:] = 0


def relabel(nodes: Nodes) -> None:
    codes, _ = nodes.label("kubernetes.io/hostname")
    codes += 1


@pytest.mark.parametrize("change", [take_from_row, take_from_columns, take_from_block, relabel])
@pytest.mark.parametrize("what", ["static", "usage", "external"])
def test_in_place_arithmetic_is_an_error_of_that_plugin_and_changes_nothing(
    change: Callable[[Nodes], Any], what: str
) -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4").job("a", pods=2, cpu=1, phase="Inqueue")
    world.cluster.settle()
    before = world.cluster.columns.amounts.copy()
    result = world.run("allocate", "gang greedy", plugin_classes=[greedy(change, what)])
    if what == "usage" and change is relabel:
        assert result.failures == []  # the codes of a few nodes are a copy
    else:
        assert len(result.failures) == 1
        assert result.failures[0].startswith("plugin 'greedy' failed in score_nodes: ValueError: ")
        assert "read-only" in result.failures[0]
        assert np.array_equal(world.cluster.columns.amounts, before)


def test_a_normalisation_cannot_change_the_raw_scores_or_the_candidates() -> None:
    class Spoiler(Plugin):
        """Normalises in place."""

        name = "spoiler"

        def node_scores(self, task: Task) -> list[NodeScore]:
            def finish(task: Task, nodes: Nodes, raw: Any, candidates: Any) -> Any:
                raw *= 2
                return raw

            def score(task: Task, nodes: Nodes) -> Any:
                return np.arange(len(nodes), dtype=np.float64)

            return [NodeScore(score, plugin=self.name, reads="static", finish=finish)]

    world = World(nodes="n1 cpu=4; n2 cpu=4").job("a", cpu=1, phase="Inqueue")
    (failure,) = world.run("allocate", "spoiler", plugin_classes=[Spoiler]).failures
    assert failure.startswith("plugin 'spoiler' failed in node_scores: ValueError: ")
