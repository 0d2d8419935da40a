"""The tree of HyperNodes as `stromboli hypernode tree` shows it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.objects.hyper_node_text import print_tree
from stromboli.cli.objects.hypernode_commands import COLUMNS, KIND
from stromboli.cli.objects.kind_commands import named
from stromboli.cli.status.topology_usage import hyper_node_tree, topology
from stromboli.testing import World
from tests.manifests import Manifest, discovered, hyper_node, node

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


class HyperNodes:
    """A session with these HyperNodes."""

    def __init__(self, *objects: Manifest) -> None:
        self.objects = {each["metadata"]["name"]: each for each in objects}

    async def find(self, _: object, name: str) -> Manifest | None:
        return self.objects.get(name)

    async def list(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(items=[*self.objects.values()])

    async def get(self, _: object, name: str) -> Manifest:
        if name not in self.objects:
            raise ClusterError(f"{name} does not exist")
        return self.objects[name]


def test_commands_find_hyper_nodes_by_the_values_of_their_labels() -> None:
    session: Any = HyperNodes(
        discovered("rack-2", "topology/rack", "rack-1"),
        discovered("generated", "topology/rack", "rack-2"),
        discovered("third", "topology/rack", "rack-3"),
        discovered("fourth", "topology/row", "rack-3"),
    )

    def found(text: str) -> str:
        return str(asyncio.run(named(session, KIND, text))["metadata"]["name"])

    assert (found("rack-1"), found("generated")) == ("rack-2", "generated")
    assert found("rack-2") == "rack-2", "names come first"
    assert found("hypernode/rack-1") == "rack-2"
    for text in ("rack-3", "rack-4"):
        with pytest.raises(ClusterError, match="does not exist"):
            found(text)


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
