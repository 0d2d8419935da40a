"""Members of HyperNodes are those of the model, whatever came, went or changed."""

from __future__ import annotations

import random

from stromboli.api.decoding import decode
from stromboli.api.types.node import Node
from stromboli.api.types.scheduling import HyperNode
from stromboli.cli.dashboard.topology.network_tree import NetworkTree
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.cli.status.cluster_status import intake_of
from tests.cli.dashboard.network_manifests import Manifest, hyper_node, node


def by_pattern(name: str, tier: int, pattern: str) -> Manifest:
    manifest = hyper_node(name, tier)
    manifest["spec"]["members"] = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}]
    return manifest


def by_labels(name: str, tier: int, **labels: str) -> Manifest:
    manifest = hyper_node(name, tier)
    manifest["spec"]["members"] = [{"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}]
    return manifest


def members_of_the_model(manifests: list[Manifest]) -> dict[str, set[str]]:
    objects = [decode(manifest) for manifest in manifests]
    cluster = intake_of(
        {kind: [each for each in objects if type(each) is kind] for kind in (Node, HyperNode)}
    )[0].cluster
    nodes = cluster.columns.nodes
    return {
        name: {nodes[row].name for row in domain.rows.tolist()}
        for name, domain in cluster.hyper_nodes.domains.items()
    }


def members(network: NetworkTree) -> dict[str, set[str]]:
    return {domain.name: {network.names[row] for row in domain.rows.tolist()} for domain in network.domains}


def test_members_are_those_of_the_model_through_changes() -> None:
    choice = random.Random(7)
    hyper_nodes = [
        hyper_node("rack-a", 1, "n-0", "n-1", "n-17"),
        by_pattern("rack-b", 1, "n-(5|6|7)"),
        by_labels("rack-c", 1, zone="west"),
        by_pattern("broken", 1, "("),
        hyper_node("spine", 2, "rack-a", "rack-b", of="HyperNode"),
        hyper_node("claims-too", 2, "rack-b", of="HyperNode"),
        hyper_node("top", 3, "spine", of="HyperNode"),
    ]
    records, network = ClusterRecords(), NetworkTree()
    current: dict[str, Manifest] = {}
    for _ in range(60):
        if choice.random() < 0.5:
            name = f"n-{choice.randrange(20)}"
            manifest = node(name, labels={"zone": choice.choice(["west", "east"])})
        else:
            manifest = choice.choice(hyper_nodes)
        key = manifest["kind"] + manifest["metadata"]["name"]
        object = decode(manifest)
        assert object is not None
        if key in current and choice.random() < 0.4:
            del current[key]
            records.drop(object)
        else:
            current[key] = manifest
            records.put(object, new=True)
        network.follow(records)
        assert members(network) == members_of_the_model(list(current.values()))


def test_pods_that_come_and_go_leave_the_tree_alone() -> None:
    records, network = ClusterRecords(), NetworkTree()
    for manifest in (node("n-1"), hyper_node("rack", 1, "n-1")):
        object = decode(manifest)
        assert object is not None
        records.put(object, new=True)
    network.follow(records)
    version = network.tree.version
    records.version += 1
    network.follow(records)
    assert network.tree.version == version


def test_a_node_is_in_the_hyper_nodes_above_it_the_lowest_first() -> None:
    records, network = ClusterRecords(), NetworkTree()
    spine = hyper_node("spine", 2, "rack", of="HyperNode")
    for manifest in (node("n-1"), node("n-2"), hyper_node("rack", 1, "n-1"), spine):
        object = decode(manifest)
        assert object is not None
        records.put(object, new=True)
    network.follow(records)
    assert [domain.name for domain in network.containing("n-1")] == ["rack", "spine"]
    assert network.containing("n-2") == []
    assert network.containing("nobody") == []
