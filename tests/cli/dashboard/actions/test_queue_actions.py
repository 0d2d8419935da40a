"""Queues are opened and closed from the dashboard by commands to their controller, with the rights of the viewer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stromboli.api import names
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.dashboard.actions.action_routes import ACTIONS, ActionRoute
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.kube.request import ApiError
from tests.cli.dashboard.served_cluster import READER, ServedCluster, on_cluster
from tests.cli.dashboard.view_requests import html_of, text_of
from tests.manifests import queue


def route(verb: str) -> ActionRoute:
    return next(each for each in ACTIONS if each.pattern == f"/queues/{{queue}}/{verb}")


async def page(cluster: ServedCluster, verb: str, name: str, user: str = "") -> PageContent:
    return await cluster.page(route(verb).render, f"/queues/{name}/{verb}", {"queue": name}, user)


async def act(cluster: ServedCluster, verb: str, name: str, user: str = "") -> str:
    kept = re.search(r'name="uid" value="([^"]*)"', html_of(await page(cluster, verb, name)))
    request = await cluster.request(f"/queues/{name}/{verb}", {"queue": name}, user)
    return await route(verb).perform(request, {"uid": kept[1] if kept else ""})


@pytest.mark.parametrize(
    ("verb", "state", "done", "action"),
    [("close", "Open", "closed", "CloseQueue"), ("open", "Closed", "opened", "OpenQueue")],
)
def test_orders_go_to_the_controller(verb: str, state: str, done: str, action: str, tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(queue("research", state=state))
        assert f"stromboli queue {verb} research" in text_of(await page(cluster, verb, "research"))
        assert await act(cluster, verb, "research") == f"/queues/research?done={done}"
        assert await cluster.commands(names.QUEUE_COMMANDS_NAMESPACE) == [(action, "research")]

    on_cluster(work, tmp_path)


def test_a_queue_below_a_closed_one_says_which_is_opened_first(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(queue("top", state="Closed"), queue("sub", state="Closed", parent="top"))
        shown = await page(cluster, "open", "sub")
        assert "its parent top is Closed; `stromboli queue open top` first" in text_of(shown)
        assert "<form" not in html_of(shown)

    on_cluster(work, tmp_path)


def test_without_the_right_there_is_no_button_and_the_api_server_refuses(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        await cluster.create(queue("research"))
        await cluster.allow("ann", READER)
        shown = await page(cluster, "close", "research", user="ann")
        assert 'user "ann" may not create commands.bus.volcano.sh' in text_of(shown).replace("&quot;", '"')
        assert 'type="submit"' not in html_of(shown)
        with pytest.raises(ApiError):
            await act(cluster, "close", "research", user="ann")

    on_cluster(work, tmp_path)


def test_a_queue_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async def work(cluster: ServedCluster) -> None:
        with pytest.raises(ClusterError, match="does not exist"):
            await page(cluster, "close", "nobody")

    on_cluster(work, tmp_path)
