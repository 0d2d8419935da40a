"""Viewers by token, with rights on parts of a cluster: nothing of the rest is in any page, number, event or error."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from stromboli.cli.dashboard.actions.action_routes import ACTIONS
from stromboli.cli.dashboard.pages.page_routes import PAGES
from stromboli.cli.dashboard.server import dashboard_app, event_stream, live_pages
from stromboli.cli.dashboard.viewers import token_authentication
from tests.cli.dashboard.served_dashboard import Browser, Dashboard, Events, Response, dashboard
from tests.cli.dashboard.two_teams import (
    JOBS,
    OTHER_TEAM,
    QUEUES,
    SECRET,
    SECRET_CPUS,
    TEAM,
    WORKLOADS,
    add_eviction,
    add_job,
    grant,
    populate,
    put,
    rule,
    token_of,
)

READ = "get list watch"
PATTERNS = tuple(route.pattern for route in (*PAGES, *ACTIONS))
OBJECTS = {"namespace": TEAM, "queue": "team-queue", "node": "node-1", "hypernode": "rack-node-1"}
HIDDEN = {
    "namespace": OTHER_TEAM,
    "queue": f"{SECRET}-queue",
    "node": f"{SECRET}-node",
    "hypernode": f"rack-{SECRET}-node",
}
QUERIES = (
    "",
    "?q=train",
    "?q=zz",
    "?waiting=1",
    "?phase=Running",
    "?group=rack",
    "?sort=-cpu",
    "?view=table",
    "?page=2",
)
Story = Callable[[Dashboard], Awaitable[None]]


def addresses(names: dict[str, str], jobs: tuple[str, ...]) -> Iterator[str]:
    """Of all pages, about these objects."""
    for pattern, job in itertools.product(PATTERNS, jobs):
        name = f"{job}-main-0" if pattern.startswith("/pods") else job
        yield pattern.format_map({"name": name, **names})


VISIBLE = tuple(dict.fromkeys(addresses(OBJECTS, ("train", "wait"))))
SECRET_ADDRESSES = tuple(dict.fromkeys(addresses(HIDDEN, (f"{SECRET}-train", f"{SECRET}-wait"))))


@asynccontextmanager
async def board_of_two_teams(folder: Path) -> AsyncIterator[Dashboard]:
    async with dashboard(folder, by_token=True) as board:
        await populate(board.api)
        yield board


def on_two_teams(folder: Path, story: Story) -> None:
    async def run() -> None:
        async with board_of_two_teams(folder) as board:
            await story(board)

    asyncio.run(run())


async def member(board: Dashboard, name: str = "member", verbs: str = READ) -> str:
    """Of the team, who sees its workloads and queues by name."""
    token = await token_of(board.api, name)
    await grant(board.api, name, rule(verbs, *WORKLOADS), namespace=TEAM)
    return token


def check_silent(response: Response | str, where: str) -> None:
    text = response if isinstance(response, str) else response.text + str(response.headers)
    for secret in (SECRET, SECRET_CPUS):
        place = text.find(secret)
        assert place < 0, f"{where}: {text[max(0, place - 300) : place + 100]}"


def test_a_member_of_a_team_sees_his_team_and_nothing_of_another(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.logged_in(await member(board))
        pages = [(path + query, await browser.get(path + query)) for path in VISIBLE for query in QUERIES[:1]]
        pages += [
            (path + query, await browser.get(path + query)) for path in VISIBLE[:9] for query in QUERIES
        ]
        for address, page in pages:
            assert page.status in (200, 403, 404), (address, page.text)
            check_silent(page, address)
        shown = dict(pages)
        assert "train" in shown["/jobs"].text
        assert "train" in shown["/jobs/team/train"].text
        assert "train-main-0" in shown["/pods/team/train-main-0"].text
        assert f"in {TEAM} alone" in shown["/"].text
        assert "You may not list hypernodes, nodes, queues" in shown["/"].text
        everything = await board.logged_in(board.api.server.token)
        whole = [await everything.get(path) for path in ("/", "/jobs", "/queues", "/nodes")]
        assert all(SECRET in page.text for page in whole[1:]), "the test would see nothing otherwise"

    on_two_teams(tmp_path, story)


def test_a_viewer_of_nodes_sees_their_names_and_no_workloads(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        token = await token_of(board.api, "node-reader")
        await grant(board.api, "node-reader", rule(READ, "nodes"))
        browser = await board.logged_in(token)
        nodes = await browser.get("/nodes")
        assert "node-1" in nodes.text
        assert f"{SECRET}-node" in nodes.text, "nodes are his to see"
        for path in ("/", "/jobs", "/queues", "/nodes", *VISIBLE):
            page = await browser.get(path)
            assert f"{SECRET}-train" not in page.text, path
            assert f"{SECRET}-wait" not in page.text, path
            assert f"{SECRET}-queue" not in page.text, path
            assert SECRET_CPUS not in page.text, path
            assert OTHER_TEAM not in page.text, path

    on_two_teams(tmp_path, story)


def test_who_may_see_nothing_sees_nothing(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.logged_in(await token_of(board.api, "nobody"))
        for path in VISIBLE:
            page = await browser.get(path)
            check_silent(page, path)
            if path in ("/", "/jobs", "/queues", "/nodes", "/topology"):
                assert page.status == 200
                text = re.sub(r"<[^>]*>", " ", page.text)
                assert "train" not in text, path
                assert "node-1" not in text, path

    on_two_teams(tmp_path, story)


def test_what_is_hidden_cannot_be_told_from_what_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.logged_in(await member(board))
        for path in SECRET_ADDRESSES:
            hidden, missing = await browser.get(path), await browser.get(path.replace(SECRET, "nosuchname"))
            assert hidden.status == missing.status, path
            assert _undigested(hidden.text).replace(SECRET, "nosuchname") == _undigested(missing.text), path

    stopped_clock = SimpleNamespace(time=lambda: 1_800_000_000.0)  # pages show when they were rendered
    monkeypatch.setattr(dashboard_app, "time", stopped_clock)
    on_two_teams(tmp_path, story)


def _undigested(text: str) -> str:
    """A page without the digest of its content, which has the names in it."""
    return re.sub(r'data-digest="[^"]*"', "", text)


async def quiet(events: Events, seconds: float = 1.0) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await events.event() is None
    except TimeoutError:
        return True


@pytest.mark.slow
def test_live_updates_tell_nothing_of_what_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.logged_in(await member(board))
        for number, view in enumerate(("/jobs", "/queues", "/nodes", "/jobs?q=e")):
            async with browser.events(view) as events:
                check_silent(str(await events.event()), view)
                await add_job(board.api, OTHER_TEAM, f"{SECRET}-{number}", f"{SECRET}-queue", SECRET_CPUS)
                await put(board.api, QUEUES, f"{SECRET}-{number}", spec={"weight": 1})
                assert await quiet(events), "that something has changed is a secret too"
        async with browser.events("/") as events:
            check_silent(str(await events.event()), "/")
            await add_eviction(board.api, OTHER_TEAM, f"{SECRET}-train", "-again")
            await add_job(board.api, TEAM, "fresh", "team-queue")
            check_silent(str(await events.event()), "/")
        async with browser.events("/jobs") as events:
            await events.event()
            await add_job(board.api, TEAM, "newest", "team-queue")
            told = str(await events.event())
            assert "newest" in told
            check_silent(told, "/jobs")

    monkeypatch.setattr(live_pages, "PACE", 0.05)
    on_two_teams(tmp_path, story)


def test_viewers_with_the_same_rights_share_pages_and_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        first, second = await member(board), await member(board, "second")
        browsers = [await board.logged_in(each) for each in (first, second, board.api.server.token)]
        async with (
            browsers[0].events("/jobs") as one,
            browsers[1].events("/jobs") as other,
            browsers[2].events("/jobs") as whole,
        ):
            assert await one.event() == await other.event()
            assert SECRET in str(await whole.event())

    monkeypatch.setattr(live_pages, "PACE", 0.05)
    on_two_teams(tmp_path, story)


def test_rights_that_are_taken_away_end_what_is_shown_and_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        token = await token_of(board.api, "passing")
        binding = await grant(board.api, "passing", rule(READ, *WORKLOADS), namespace=OTHER_TEAM)
        browser = await board.logged_in(token)
        assert SECRET in (await browser.get("/jobs")).text
        async with browser.events("/jobs") as events:
            assert SECRET in str(await events.event())
            await board.api.delete(binding)
            assert await events.event() is None
        page = await browser.get("/jobs")
        assert page.status == 200
        check_silent(page, "/jobs")
        await board.api.delete("/api/v1/namespaces/default/serviceaccounts/passing")
        async with asyncio.timeout(60):
            while (await browser.get("/jobs")).status != 401:
                await asyncio.sleep(0.05)
        assert (await board.browser().get("/jobs", Authorization=f"Bearer {token}")).status == 401

    monkeypatch.setattr(token_authentication, "REVIEWED_SECONDS", 0.2)
    monkeypatch.setattr(event_stream, "RECHECK", 0.1)
    on_two_teams(tmp_path, story)


async def _is_suspended(board: Dashboard, name: str) -> bool:
    commands = await board.api.get("/apis/bus.volcano.sh/v1alpha1/commands")
    return any(item["target"]["name"] == name for item in commands["items"])


async def _ordered(board: Dashboard, browser: Browser, namespace: str, job: str, action: str) -> Response:
    """A form is sent as the page of the action has it for those who have the right."""
    uid = (await board.api.get(f"{JOBS.format(namespace)}/{job}"))["metadata"]["uid"]
    return await browser.post(f"/jobs/{namespace}/{job}/{action}", f"uid={uid}&sure=yes")


def test_an_action_goes_with_the_rights_of_the_viewer(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        reader = await board.logged_in(await member(board))
        refused = await _ordered(board, reader, TEAM, "train", "suspend")
        assert refused.status in (400, 403)
        assert "may not create" in refused.text
        assert "commands" in refused.text
        assert not await _is_suspended(board, "train")
        refused = await _ordered(board, reader, TEAM, "wait", "delete")
        assert refused.status in (400, 403)
        assert "may not delete" in refused.text

        token = await token_of(board.api, "writer")
        rules = [
            rule(f"{READ} delete", *WORKLOADS),
            rule("create", "commands.bus.volcano.sh"),
        ]
        await grant(board.api, "writer", *rules, namespace=TEAM)
        writer = await board.logged_in(token)
        done = await _ordered(board, writer, TEAM, "train", "suspend")
        assert done.status == 303, done.text
        assert await _is_suspended(board, "train")
        assert (await _ordered(board, writer, TEAM, "wait", "delete")).status == 303
        status, _ = await board.api.request("GET", f"{JOBS.format(TEAM)}/wait")
        assert status == 404
        hidden = await _ordered(board, writer, OTHER_TEAM, f"{SECRET}-train", "suspend")
        assert hidden.status in (400, 403, 404)
        assert not await _is_suspended(board, f"{SECRET}-train")

    on_two_teams(tmp_path, story)
