"""Domains by a label: the nodes of each value, computed on first use and again when a node changes."""

from __future__ import annotations

from stromboli.model.dimensions import CPU
from stromboli.model.topology.domain import label_domains
from stromboli.testing import World
from tests.manifests import node


def names_by_value(world: World, key: str) -> dict[str, list[str]]:
    columns = world.cluster.columns
    world.cluster.settle()
    return {
        value: [columns.nodes[row].name for row in domain.rows]
        for value, domain in label_domains(columns, key).by_value.items()
    }


def racks(**values: str) -> World:
    return World().add(*(node(name, labels={"rack": value}) for name, value in values.items()))


def test_nodes_are_together_by_the_value_of_the_label() -> None:
    world = racks(n1="b", n2="a", n3="b").add(node("n4"))
    assert names_by_value(world, "rack") == {"b": ["n1", "n3"], "a": ["n2"]}
    domains = label_domains(world.cluster.columns, "rack")
    assert [domain.name for domain in domains.by_value.values()] == ["rack=b", "rack=a"]
    assert domains.sums(world.cluster.columns.idle[CPU]).tolist() == [8000, 4000]


def test_a_label_that_no_node_has_makes_no_domain() -> None:
    assert names_by_value(racks(n1="a"), "zone") == {}
    assert names_by_value(World(), "zone") == {}


def test_an_empty_value_is_a_value() -> None:
    assert names_by_value(racks(n1="", n2=""), "rack") == {"": ["n1", "n2"]}


def test_they_are_the_same_until_a_node_changes() -> None:
    world = racks(n1="a", n2="a")
    names_by_value(world, "rack")
    before = label_domains(world.cluster.columns, "rack")
    assert label_domains(world.cluster.columns, "rack") is before
    world.add(node("n2", labels={"rack": "b"}))
    assert names_by_value(world, "rack") == {"a": ["n1"], "b": ["n2"]}
    world.remove(node("n1"))
    assert names_by_value(world, "rack") == {"b": ["n2"]}
