"""Nodes in racks, racks below switches, and HyperNodes that follow."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stromboli.controllers.hypernode.discovery_config import KEY, TopologyType, read_config
from stromboli.embedded.cluster_services import ServiceConfig, controllers, nodes
from stromboli.embedded.data_files import DataError
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes import node_network
from stromboli.embedded.nodes.node_groups import BadNodes, node_manifests
from stromboli.embedded.nodes.node_network import (
    CONFIG_MAPS,
    DISCOVERY,
    HYPER_NODES,
    RACK,
    SWITCH,
    has_racks,
    place_in_racks,
)
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.policy.policy import default_policy

CATALOG = load_catalog()


def places(count: int, racks: int, switches: int = 0) -> list[str]:
    manifests = node_manifests([f"{count}x1cpu"])
    place_in_racks(manifests, racks, switches)
    nodes_labels = [node["metadata"]["labels"] for node in manifests]
    return [f"{labels.get(SWITCH, '')} {labels[RACK]}".strip() for labels in nodes_labels]


def test_nodes_are_divided_evenly_and_in_order() -> None:
    assert places(4, 2) == ["rack-1", "rack-1", "rack-2", "rack-2"]
    assert places(5, 2) == ["rack-1", "rack-1", "rack-1", "rack-2", "rack-2"]
    assert places(4, 4, 2) == ["switch-1 rack-1", "switch-1 rack-2", "switch-2 rack-3", "switch-2 rack-4"]
    assert places(3, 3, 1) == ["switch-1 rack-1", "switch-1 rack-2", "switch-1 rack-3"]


def test_every_rack_and_switch_has_nodes() -> None:
    for count in range(1, 12):
        for racks in range(1, count + 1):
            for switches in range(1, racks + 1):
                labels = [place.split() for place in places(count, racks, switches)]
                assert len({switch for switch, _ in labels}) == switches
                assert len({rack for _, rack in labels}) == len({tuple(place) for place in labels}) == racks


@pytest.mark.parametrize(
    ("racks", "switches", "problem"),
    [
        (5, 0, "--racks 5: more racks than nodes; at most 4"),
        (2, 3, "--switches 3: more switches than racks; at most 2"),
        (0, 1, "--switches 1: switches connect racks; say how many with --racks"),
    ],
)
def test_what_cannot_be_is_explained(racks: int, switches: int, problem: str) -> None:
    with pytest.raises(BadNodes, match=problem):
        places(4, racks, switches)


def test_nodes_that_say_where_they_are_are_not_put_elsewhere() -> None:
    manifests = node_manifests(["2x1cpu"])
    assert not has_racks(manifests)
    manifests[1]["metadata"]["labels"][RACK] = "mine"
    assert has_racks(manifests)
    with pytest.raises(BadNodes, match=f"--racks 1: node n2 has the label {RACK} already"):
        place_in_racks(manifests, 1, 0)


def test_the_configuration_of_discovery_is_sound() -> None:
    config = read_config({KEY: DISCOVERY}, "volcano-system")
    assert config.problems == ()
    assert config.label is not None
    assert config.label.types == (TopologyType("racks", (RACK, SWITCH)),)


BROKEN = {"data": {KEY: "networkTopologyDiscovery: ["}}


def service_config(*labels: str, racks: int = 0, switches: int = 0, requested: bool = True) -> ServiceConfig:
    """Four nodes; with racks if there are labels, or if those were requested."""
    manifests = node_manifests(["4x1cpu"])
    for node, label in zip(manifests, labels, strict=False):
        node["metadata"]["labels"][RACK] = label
    place_in_racks(manifests, racks, switches)
    return ServiceConfig(
        manifests, CATALOG, default_policy(CATALOG), nodes_requested=requested, racks_requested=racks > 0
    )


async def hyper_nodes(folder: DataFolder, config: ServiceConfig) -> list[dict[str, Any]]:
    """Those of a cluster as soon as it has started."""
    async with (
        EmbeddedCluster(folder, config, services=(nodes, controllers)),
        Client(config.access) as client,
    ):
        items: list[dict[str, Any]] = msgspec.json.decode(await client.list(HYPER_NODES))["items"]
        return items


def shown(items: list[dict[str, Any]]) -> list[tuple[int, str, int]]:
    return [(item["spec"]["tier"], item["spec"]["tierName"], item["status"]["nodeCount"]) for item in items]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(node_network, "DISCOVERY_WAIT", 60.0)
    return DataFolder(tmp_path / "data")


def test_a_cluster_with_racks_has_hyper_nodes_when_it_is_ready_and_after_a_restart(
    folder: DataFolder,
) -> None:
    first = asyncio.run(hyper_nodes(folder, service_config(racks=2, switches=1)))
    assert shown(first) == [(1, RACK, 2), (1, RACK, 2), (2, SWITCH, 4)]
    again = asyncio.run(hyper_nodes(folder, service_config(requested=False)))
    assert again == first
    with pytest.raises(DataError, match=r"--racks: .* has nodes already; say with --nodes which"):
        asyncio.run(hyper_nodes(folder, service_config(racks=2, requested=False)))
    divided_anew = asyncio.run(hyper_nodes(folder, service_config(racks=1)))
    assert shown(divided_anew) == [(1, RACK, 4)]
    folder.release()


def test_hyper_nodes_that_do_not_follow_are_told_with_the_config_map(
    folder: DataFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_configuration() -> None:
        config = service_config(racks=2, switches=1)
        async with (
            EmbeddedCluster(folder, config, services=(nodes, controllers)),
            Client(config.access) as client,
        ):
            await client.patch(CONFIG_MAPS, "volcano-controller-configmap", BROKEN, "volcano-system")

    asyncio.run(break_configuration())
    assert "do not follow" not in caplog.text
    monkeypatch.setattr(node_network, "DISCOVERY_WAIT", 0.1)
    left = asyncio.run(hyper_nodes(folder, service_config(racks=2)))
    assert len(left) == 3, "the racks are right, the switch is not"
    assert "HyperNodes do not follow the racks of the nodes; events of ConfigMap" in caplog.text
    assert "kubectl describe configmap -n volcano-system volcano-controller-configmap" in caplog.text
    folder.release()


def test_labels_of_manifests_are_enough(folder: DataFolder) -> None:
    racks = asyncio.run(hyper_nodes(folder, service_config("a", "a", "b")))
    assert sorted(shown(racks)) == [(1, RACK, 1), (1, RACK, 2)]
    folder.release()
