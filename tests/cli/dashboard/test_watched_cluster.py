"""A cluster that is watched once, for viewers who see different parts of it."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.api.decoding import decode
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard import watched_cluster
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.cli.live.visible_records import EVERYTHING, Visibility
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.simulator.explain.explanation_document import Explanation
from stromboli.simulator.job_manifests import job_manifests
from tests.cli.dashboard.network_manifests import node, pod


def cluster_of(*manifests: dict[str, object]) -> WatchedCluster:
    session = ClusterSession(Client(Access("http://127.0.0.1:9")), None, "default")
    cluster = WatchedCluster(session, load_catalog())
    for manifest in manifests:
        object = decode(manifest)
        assert object is not None
        cluster.watches.records.put(object, new=True)
    return cluster


def in_namespace(name: str) -> Visibility:
    return Visibility(dict.fromkeys(("pods", "podgroups", "jobs", "events"), frozenset({name})))


def test_those_who_see_the_same_share_a_view() -> None:
    cluster = cluster_of(*job_manifests("a", namespace="one"), *job_manifests("b", namespace="two"))
    one = cluster.view(in_namespace("one"))
    assert cluster.view(in_namespace("one")) is one
    assert cluster.view(EVERYTHING).records is cluster.watches.records
    assert cluster.view(Visibility({"pods": None})).records is cluster.watches.records
    assert [*one.records.groups] == ["one/a"]
    assert [row["name"] for row in cluster.view(in_namespace("two")).content.jobs()] == ["b"]


def test_views_are_bounded_and_those_that_go_follow_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_cluster, "MOST_VISIBILITIES", 3)
    cluster = cluster_of()
    first = cluster.view(in_namespace("n0"))
    for number in range(1, 10):
        cluster.view(in_namespace(f"n{number}"))
        assert cluster.view(in_namespace("n0")) is first, "it was looked at a moment ago"
    assert len(cluster.watches.records.followers) == 3
    gone = cluster.view(in_namespace("n1"))
    assert len(cluster.watches.records.followers) == 3
    assert gone.records.version == 0


def test_each_view_has_the_nodes_of_its_own_records() -> None:
    cluster = cluster_of(node("n-1"), pod("p", on="n-1", group="a"))
    whole = cluster.view(EVERYTHING)
    assert whole.nodes.occupancy() is whole.nodes.occupancy()
    assert whole.nodes.occupancy().pods == [1]
    assert cluster.view(in_namespace("other")).nodes.occupancy().pods == [0]


def test_explanations_end_with_the_cluster() -> None:
    async def work() -> bool:
        cluster, ended = cluster_of(), asyncio.Event()

        async def explain() -> Explanation:
            try:
                return await asyncio.get_running_loop().create_future()
            finally:
                ended.set()

        asking = asyncio.create_task(cluster.explanations.get(("ann", "train"), explain))
        await asyncio.sleep(0.01)
        await cluster.stop()
        asking.cancel()
        return ended.is_set()

    assert asyncio.run(work())
