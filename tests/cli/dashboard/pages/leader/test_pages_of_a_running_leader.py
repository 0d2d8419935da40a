"""The pages of decisions and of the policy on a cluster whose scheduler runs, for an administrator and for nobody."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.pages.leader.decisions_page import decisions
from stromboli.cli.dashboard.pages.leader.policy_page import policy
from stromboli.cli.dashboard.pages.page_content import PageContent, ViewRequest
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import resource_of
from stromboli.kube.cluster_access import Access
from stromboli.kube.credentials import Identity, StaticCredentials, bearer
from tests.cli.dashboard.view_requests import CATALOG, links_of, text_of
from tests.cli.leader.test_leader_query import running_cluster


def asked(cluster: WatchedCluster, viewer: Viewer, path: str, **query: str) -> ViewRequest:
    return ViewRequest(path, {}, query, viewer, cluster, cluster.view(viewer.visibility), time.time())


async def decided(cluster: WatchedCluster, viewer: Viewer, what: str) -> PageContent:
    """The page of the cycle that decided it, once one has."""
    async with asyncio.timeout(60):
        while True:
            page = await decisions(asked(cluster, viewer, "/decisions", kind="decided"))
            for number in sorted({_number(link) for link in links_of(page) if "cycle=" in link}):
                cycle = await decisions(asked(cluster, viewer, "/decisions", cycle=number))
                if what in text_of(cycle):
                    return cycle
            await asyncio.sleep(0.5)


def _number(link: str) -> str:
    return link.partition("cycle=")[2].partition("&")[0]


async def without_rights(client: Client, access: Access) -> Access:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bob"}}
    await client.create(resource_of(account), account, "default")
    body = await client.create(resource_of(account), {"spec": {}}, "default", "bob", "token")
    identity = Identity((bearer(json.loads(body)["status"]["token"]),))
    return replace(access, credentials=StaticCredentials(identity))


def test_pages_tell_what_a_running_leader_decides_and_by_which_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    async def story() -> None:
        async with running_cluster(tmp_path) as (client, access):
            session = ClusterSession(client, None, "default")
            cluster, ann = WatchedCluster(session, CATALOG), Viewer("ann", "ann", session)
            await cluster.start()
            try:
                await cluster.watches.listed()
                cycle = await decided(cluster, ann, "bound default/small-0 default/small default")
                assert {"/pods/default/small-0", "/podgroups/default/small"} <= set(links_of(cycle))
                text = text_of(await policy(asked(cluster, ann, "/policy")))
                assert "built-in policy" in text
                assert "by stromboli up" in text
                await _told_nobody(cluster, await without_rights(client, access))
            finally:
                await cluster.stop()

    asyncio.run(story())


async def _told_nobody(cluster: WatchedCluster, access: Access) -> None:
    """A service account without rights is told why, and no more."""
    async with Client(access) as client:
        bob = Viewer("bob", "bob", ClusterSession(client, None, "default"))
        for page, path in ((decisions, "/decisions"), (policy, "/policy")):
            text = text_of(await page(asked(cluster, bob, path)))
            assert "The leader does not tell" in text
            assert "stromboli-explain-cluster" in text
            assert "built-in policy" not in text
