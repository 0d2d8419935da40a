"""The tree of HyperNodes as `stromboli hypernode tree` shows it."""

from __future__ import annotations

import pytest

from stromboli.cli.objects.hyper_node_text import print_tree
from stromboli.cli.objects.hypernode_commands import COLUMNS
from stromboli.cli.status.topology_usage import hyper_node_tree, topology
from stromboli.testing import World
from tests.manifests import discovered, hyper_node, node

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
    assert top[:6] == ["top", "2", "3/4", "2", "28/32", "█░░░░"]
    assert first[:8] == ["├─", "r0", "1", "rack", "1/2", "1", "12/16", "█░░░░"]
    assert second[:8] == ["└─", "r1", "1", "rack", "2/2", "2", "16/16", "░░░░░"]


def test_a_rack_without_free_cpus_shows_its_free_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    busy = world().job("etl", pods=3, cpu=3, running_on="n0 n1 n1").job("one", cpu=1, running_on="n1")
    _, _, first, _ = shown(busy, capsys)
    assert first == ["├─", "r0", "1", "rack", "0/2", "0", "12/16", "█░░░░", *first[8:]]


def test_hyper_nodes_from_labels_show_the_value_of_the_label(capsys: pytest.CaptureFixture[str]) -> None:
    generated = {"rack-1": "hypernode-racks-tier1-5q82h", "rack-2": "hypernode-racks-tier1-l9xmq"}
    generated["rack-10"] = "hypernode-racks-tier1-1aaaa"
    racks = [
        discovered(name, "topology/rack", value, nodes=[NAMES[place]])
        for place, (value, name) in enumerate(generated.items())
    ]
    cluster = World().add(*map(node, NAMES), *racks)
    _, *rows = shown(cluster, capsys)
    assert [row[:3] for row in rows] == [[value, "1", "topology/rack"] for value in generated]
    assert [each["name"] for each in hyper_node_tree(cluster.cluster)] == list(generated.values())


def test_the_list_has_the_names_of_hyper_nodes_and_the_values_of_their_labels() -> None:
    made = [discovered("hypernode-racks-tier1-5q82h", "topology/rack", "rack-1"), hyper_node("mine")]
    (column,) = [column for column in COLUMNS if column.title == "LABEL VALUE"]
    assert [column.value(each) for each in made] == ["rack-1", None]


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
