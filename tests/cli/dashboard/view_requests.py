"""Requests for pages of a cluster that is given as manifests, without a server."""

from __future__ import annotations

import asyncio
import re
from html.parser import HTMLParser
from typing import Any

import msgspec

from stromboli.api.decoding import decode, decode_as
from stromboli.api.types.volcano_job import Job
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.pages.page_content import PageContent, Render, ViewRequest
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.cli.live.visible_records import EVERYTHING, Visibility
from stromboli.cli.status.cluster_policy import PolicyInForce
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS

CATALOG = load_catalog()
NOW = 1_800_000_000.0
HOSTILE = '"><script>alert(1)</script>'
"""What must never reach a browser as markup."""


def view_request(
    path: str,
    *manifests: dict[str, Any],
    query: dict[str, str] | None = None,
    names: dict[str, str] | None = None,
    visibility: Visibility = EVERYTHING,
    policy: str = PRESETS["full"],
) -> ViewRequest:
    """What somebody who may see so much of this cluster asks for; his API server answers nothing."""
    session = ClusterSession(Client(Access("http://127.0.0.1:9")), None, "default")
    cluster = WatchedCluster(session, CATALOG)
    for manifest in manifests:
        is_job = manifest["apiVersion"].startswith("batch.volcano.sh")
        object = decode_as(Job, msgspec.json.encode(manifest)) if is_job else decode(manifest)
        assert object is not None
        cluster.watches.records.put(object, new=True)
    view = cluster.view(visibility)
    view.content.use_policy(PolicyInForce(load_policy(policy, CATALOG), "policy"))
    viewer = Viewer("ann", "ann", session, visibility)
    return ViewRequest(path, names or {}, query or {}, viewer, cluster, view, NOW)


def rendered(render: Render, request: ViewRequest) -> PageContent:
    return asyncio.run(render(request))


def html_of(page: PageContent) -> str:
    return "\n".join(page.regions.values())


def text_of(page: PageContent) -> str:
    """What a page says, without its markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html_of(page)))


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def links_of(page: PageContent) -> list[str]:
    parser = _Links()
    parser.feed(html_of(page))
    return parser.targets
