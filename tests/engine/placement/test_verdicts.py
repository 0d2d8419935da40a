"""Why a task was not placed, in the words users know (spec 01 4.1)."""

from __future__ import annotations

import numpy as np

from stromboli.engine.placement.node_functions import Check, Nodes, Refusal, reads
from stromboli.engine.placement.node_placement import Place, Placement
from stromboli.engine.placement.verdict import Reason, Verdict, verdict_everywhere, verdict_text
from stromboli.engine.plugin import Plugin
from stromboli.engine.rules import Rules
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import node, pod, task_named


def test_reasons_are_counted_and_sorted_as_strings() -> None:
    reasons = (
        Reason("node(s) had taints", 2, "predicates", False),
        Reason("Insufficient cpu", 3, "resources", True),
    )
    assert (
        Verdict(5, reasons).message == "0/5 nodes are unavailable: 2 node(s) had taints, 3 Insufficient cpu."
    )
    ten = (Reason("b", 2, "x", True), Reason("a", 10, "x", True))
    assert Verdict(12, ten).message == "0/12 nodes are unavailable: 10 a, 2 b."


def test_the_same_reason_of_two_plugins_is_one_entry() -> None:
    reasons = (Reason("no", 2, "a", False), Reason("no", 3, "b", False))
    assert Verdict(5, reasons).message == "0/5 nodes are unavailable: 5 no."


def test_without_reasons_the_base_stands_alone() -> None:
    assert Verdict(0).message == "0/0 nodes are unavailable"


def test_a_sentence_of_its_own_replaces_everything() -> None:
    assert verdict_text("skip it").message == "skip it"


def test_a_refusal_before_any_node_stands_for_all() -> None:
    verdict = verdict_everywhere(Refusal("no volume", False, "predicates"), 3)
    assert verdict.message == "0/3 nodes are unavailable: 3 no volume."
    assert verdict.hopeless is not None
    assert verdict.hopeless.all()
    assert verdict_everywhere(Refusal("full", True), 3).hopeless is None


def test_the_dominant_reason_is_that_of_most_nodes() -> None:
    few, most = Reason("few", 1, "a", True), Reason("most", 4, "a", True)
    assert Verdict(5, (few, most)).dominant == most
    assert Verdict(5).dominant is None


class Picky(Plugin):
    """Two curable checks and one that is not, over the node's name."""

    name = "picky"

    @reads("static")
    def filter_nodes(self, task: Task, nodes: Nodes) -> list[Check]:
        number = nodes.each(lambda node: int(node.name[1:]))
        return [Check(number != 3, "never three"), Check(number < 2, "too high", curable=True)]


def test_what_does_not_fit_comes_first_and_a_filter_gives_its_first_reason() -> None:
    nodes = [node("n0", cpu=1), node("n1", memory="1Gi"), node("n2"), node("n3"), node("n4")]
    cluster = World().add(*nodes, pod("p", cpu=2, memory="2Gi")).cluster
    verdict = Placement(Rules([[Picky(None, {})]])).find(cluster, task_named(cluster, "p"))
    assert isinstance(verdict, Verdict)
    assert verdict.message == (
        "0/5 nodes are unavailable: 1 Insufficient cpu, 1 Insufficient memory, 1 never three, 2 too high."
    )
    assert {reason.text: (reason.plugin, reason.curable) for reason in verdict.reasons} == {
        "Insufficient cpu": ("resources", True),
        "Insufficient memory": ("resources", True),
        "never three": ("picky", False),
        "too high": ("picky", True),
    }
    assert verdict.hopeless is not None
    assert np.flatnonzero(verdict.hopeless).tolist() == [3]


def test_only_the_first_missing_resource_of_a_node_is_named() -> None:
    cluster = (
        World().add(node("n0", cpu=1, memory="1Gi", gpu=1), pod("p", cpu=2, memory="2Gi", gpu=2)).cluster
    )
    verdict = Placement(Rules([])).find(cluster, task_named(cluster, "p"))
    assert isinstance(verdict, Verdict)
    assert verdict.message == "0/1 nodes are unavailable: 1 Insufficient cpu."


def test_a_pod_without_gpu_fits_a_node_whose_gpus_are_in_the_red() -> None:
    cluster = World().add(node("n0", gpu=1), pod("g", on="n0", gpu=3), pod("p"), pod("q", gpu=1)).cluster
    placement = Placement(Rules([]))
    assert not isinstance(placement.find(cluster, task_named(cluster, "p")), Verdict)
    refused = placement.find(cluster, task_named(cluster, "q"))
    assert isinstance(refused, Verdict)
    assert refused.message == "0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu."


def test_of_equal_nodes_the_first_by_age_and_name_is_taken() -> None:
    cluster = (
        World().add(node("n1", created=0), node("n0", created=0), node("a", created=1), pod("p")).cluster
    )
    place = Placement(Rules([])).find(cluster, task_named(cluster, "p"))
    assert place == Place(cluster.nodes["n0"], now=True)


def test_a_place_is_sought_only_within_the_given_nodes() -> None:
    cluster = World().add(node("n0"), node("n1"), node("n2", cpu=1), pod("p", cpu=2)).cluster
    placement = Placement(Rules([]))
    assert placement.find(cluster, task_named(cluster, "p"), np.array([False, True, True])) == Place(
        cluster.nodes["n1"], now=True
    )
    nowhere = placement.find(cluster, task_named(cluster, "p"), np.array([False, False, True]))
    assert isinstance(nowhere, Verdict)
    assert nowhere.message == "0/1 nodes are unavailable: 1 Insufficient cpu."
