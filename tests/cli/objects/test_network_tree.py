"""The tree of HyperNodes as `stromboli hypernode tree` shows it."""

from __future__ import annotations

import pytest

from stromboli.cli.objects.hyper_node_text import print_tree
from stromboli.cli.status.topology_usage import hyper_node_tree, topology
from stromboli.testing import World
from tests.manifests import hyper_node, node

NAMES = ["n0", "n1", "n2", "n3"]
RACKS = [
    hyper_node(f"r{rack}", 1, nodes=NAMES[2 * rack : 2 * rack + 2], tier_name="rack") for rack in range(2)
]


def world() -> World:
    nodes = (node(name, **{"nvidia.com/gpu": 8}) for name in NAMES)
    everything = World().add(*nodes, *RACKS, hyper_node("top", 2, children=["r0", "r1"]))
    return everything.job("j", pods=1, cpu=1, gpu=4, running_on="n0")


def shown(world: World, capsys: pytest.CaptureFixture[str], wide: bool = False) -> list[list[str]]:
    cluster = world.cluster
    print_tree({"hyperNodes": hyper_node_tree(cluster), **topology(cluster)}, wide)
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_row_says_what_is_free_and_the_largest_gang(capsys: pytest.CaptureFixture[str]) -> None:
    _, top, first, second = shown(world(), capsys)
    assert top[:6] == ["top", "2", "3/4", "██░░░░░░░░", "2", "28/32"]
    assert first[:7] == ["├─", "r0", "1", "rack", "1/2", "█████░░░░░", "1"]
    assert second[:7] == ["└─", "r1", "1", "rack", "2/2", "░░░░░░░░░░", "2"]


def test_wide_says_the_largest_gang_in_all_resources(capsys: pytest.CaptureFixture[str]) -> None:
    titles, top, *_ = shown(world(), capsys, wide=True)
    assert titles[-6:] == ["LARGEST", "GPUS", "LARGEST", "CPU", "LARGEST", "MEMORY"]
    assert top[-3:] == ["16", "8", "128Gi"]


def test_what_is_left_out_is_named_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    circle = [hyper_node("a", 2, children=["b"]), hyper_node("b", 1, children=["a"])]
    lines = [" ".join(words) for words in shown(world().add(*circle), capsys)]
    assert sum(line.startswith("left out: ") for line in lines) == 2


def test_without_hyper_nodes_there_is_no_tree(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = World().add(node("n0")).cluster
    print_tree({"hyperNodes": hyper_node_tree(cluster), **topology(cluster)}, wide=False)
    assert capsys.readouterr() == ("", "No hypernodes found.\n")
