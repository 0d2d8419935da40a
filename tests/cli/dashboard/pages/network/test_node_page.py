"""The page of a node, from records and with the rights of who looks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.dashboard.pages.network.node_page import node_content, node_view, pod_regions
from stromboli.cli.dashboard.pages.page_content import NotThere, PageContent
from stromboli.cli.dashboard.reading.node_reading import NodeReading, node_reading
from stromboli.cli.live.visible_records import EVERYTHING, Visibility
from tests.cli.dashboard.network_manifests import Manifest, hyper_node, node, pod, pod_group, two_racks
from tests.cli.dashboard.served_cluster import READER, ServedCluster, served
from tests.cli.dashboard.view_requests import HOSTILE, html_of, links_of, rendered, text_of, view_request


def node_page(
    name: str, *manifests: Manifest, visibility: Visibility = EVERYTHING, **query: str
) -> PageContent:
    """Where nothing was read of the object."""
    request = view_request(f"/nodes/{name}", *manifests, query=query, visibility=visibility)
    return node_content(request, name, request.records.nodes[name], NodeReading(), pod_regions(request, name))


# -- from records


def test_it_has_its_resources_and_its_pods_with_their_jobs() -> None:
    page = node_page("n-1", *two_racks())
    text = text_of(page)
    assert "CPU 8 / 16 CPU in use 8 / 16 8" in text
    assert "Pods 2 / 110" in text
    assert "default/train-0 train default Running 4 1Gi" in text
    assert {
        "/pods/default/train-0",
        "/podgroups/default/train",
        "/queues/default",
        "/topology/rack-a",
        "/topology/spine",
    } <= set(links_of(page))


def test_finished_pods_are_not_on_it() -> None:
    page = node_page("n-1", node("n-1"), pod("done", on="n-1", phase="Succeeded"))
    assert "No pod that you may see is on it" in text_of(page)


def test_pods_can_be_sorted_by_what_they_ask_for() -> None:
    cluster = [node("n-1"), pod("small", on="n-1", cpu="1"), pod("large", on="n-1", cpu="8")]
    table = node_page("n-1", *cluster, sort="-by-cpu").regions["node-pods"]
    assert table.index("default/large") < table.index("default/small")


def test_a_cordoned_node_says_why_no_pods_come() -> None:
    assert "no: it is cordoned" in text_of(node_page("n-1", node("n-1", cordoned=True)))
    assert "Takes new pods yes" in text_of(node_page("n-1", node("n-1")))


def test_it_names_commands_to_look_further() -> None:
    assert "stromboli explain node/n-1" in text_of(node_page("n-1", node("n-1")))


def test_who_may_not_list_pods_is_told() -> None:
    page = node_page("n-1", *two_racks(), visibility=Visibility({"pods": frozenset()}))
    assert "Pods may not be listed" in text_of(page)
    assert "? / 16" in text_of(page)
    assert "train-0" not in html_of(page)


def test_a_node_that_does_not_exist_is_not_there() -> None:
    with pytest.raises(NotThere, match="no node n-9"):
        rendered(node_view, view_request("/nodes/n-9", *two_racks(), names={"node": "n-9"}))


def test_an_api_server_that_does_not_answer_is_told() -> None:
    request = view_request("/nodes/n-1", node("n-1"), query={"tab": "events"}, names={"node": "n-1"})
    page = rendered(node_view, request)
    assert "it could not be read" in text_of(page)
    assert "0 / 16" in text_of(page)


def test_hostile_names_and_labels_are_harmless() -> None:
    labels = {f"{HOSTILE}{number}": "x" * 10_000 for number in range(1000)}
    cluster = [
        node(HOSTILE, labels=labels),
        hyper_node(HOSTILE, 1, HOSTILE),
        pod_group(HOSTILE),
        pod(HOSTILE, on=HOSTILE, group=HOSTILE),
    ]
    page = node_page(HOSTILE, *cluster)
    assert "<script" not in html_of(page)
    assert "and 960 more" in text_of(page)
    assert len(html_of(page)) < 30_000


def test_nodes_that_are_not_what_they_should_be_are_read_anyway() -> None:
    manifest = {"metadata": [], "spec": {"taints": "many"}, "status": {"conditions": [7], "nodeInfo": 3}}
    assert node_reading(manifest) == NodeReading()


# -- from an API server


def on_cluster(work: Callable[[ServedCluster], Awaitable[None]], folder: Path, **options: Any) -> None:
    async def run() -> None:
        async with served(folder, **options) as cluster:
            manifest = node("n-1")
            manifest["spec"]["taints"] = [{"key": "gpu", "value": HOSTILE[:5], "effect": "NoSchedule"}]
            manifest["status"]["conditions"] += [
                {
                    "type": "DiskPressure",
                    "status": "False",
                    "reason": "KubeletHasNoDiskPressure",
                    "message": HOSTILE,
                }
            ]
            event = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": "n-1.1", "namespace": "default"},
                "involvedObject": {"kind": "Node", "name": "n-1"},
                "reason": "Rebooted",
                "message": HOSTILE,
                "type": "Warning",
                "lastTimestamp": "2027-01-15T07:00:00Z",
            }
            await cluster.create(manifest, event)
            await work(cluster)

    asyncio.run(run())


def test_taints_conditions_and_events_are_read_with_the_rights_of_the_viewer(tmp_path: Path) -> None:
    async def look(cluster: ServedCluster) -> None:
        await cluster.allow("ann", READER)
        page = await cluster.page(node_view, "/nodes/n-1", {"node": "n-1"}, "ann", tab="events")
        text = text_of(page)
        assert "NoSchedule" in text
        assert "only those that tolerate its taints" in text
        assert "KubeletHasNoDiskPressure" in text
        assert "Rebooted" in text
        assert "<script" not in html_of(page)

    on_cluster(look, tmp_path)


def test_who_may_not_read_the_node_is_told_which_right_is_missing(tmp_path: Path) -> None:
    async def look(cluster: ServedCluster) -> None:
        page = await cluster.page(node_view, "/nodes/n-1", {"node": "n-1"}, "bob", tab="events")
        assert 'user "bob" may not get nodes' in text_of(page).replace("&quot;", '"')
        assert "Rebooted" not in text_of(page)

    on_cluster(look, tmp_path)


def test_the_explanation_is_that_of_the_command(tmp_path: Path) -> None:
    async def look(cluster: ServedCluster) -> None:
        page = await cluster.page(node_view, "/nodes/n-1", {"node": "n-1"}, tab="explanation")
        assert "Node n-1 is Ready: it runs no pods" in text_of(page)
        assert "it accepts only pods that tolerate" in text_of(page)

    on_cluster(look, tmp_path)
