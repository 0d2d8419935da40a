"""Live updates of a page: only what has changed, to those who may see it, at a cost that is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.dashboard.pages.page_content import PageContent, PageRoute, ViewRequest
from stromboli.cli.dashboard.server import dashboard_app, event_stream, live_pages, viewer_shares
from stromboli.cli.dashboard.server.live_pages import LivePages
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.simulator.reports.page.markup import element
from tests.cli.dashboard.served_dashboard import Dashboard, Events, dashboard

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
Story = Callable[[Dashboard], Awaitable[None]]


class Counting:
    """A page with a region that changes with the queues, one that never does, and one that is there for a while."""

    def __init__(self) -> None:
        self.renders = 0
        self.live = LivePages()
        self.large = 0
        self.fails = False
        self.odd = False

    async def __call__(self, request: ViewRequest) -> PageContent:
        self.renders += 1
        if self.fails:
            raise ZeroDivisionError
        if self.odd:
            return PageContent("\ud800", {"odd": element("p", "\udcff\u2028\n\n\0</p>")})
        names = sorted(request.records.queues)
        regions = {
            "same": element("p", request.path, " ", element("time", f"{self.renders}s", data_time="1")),
            "queues": element("p", " ".join(names), "x" * self.large),
        }
        if "extra" in names:
            regions["extra"] = element("p", "extra")
        return PageContent(f"{len(names)} queues", regions)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    page = Counting()
    pages = (
        PageRoute("/", page, "overview"),
        PageRoute("/queues", page, "queues"),
        PageRoute("/own", page, "own", personal=True),
        PageRoute("/ticking", page, "ticking", refresh=0.1),
    )
    monkeypatch.setattr(dashboard_app, "PAGES", pages)
    monkeypatch.setattr(dashboard_app, "LivePages", lambda: page.live)
    monkeypatch.setattr(live_pages, "PACE", 0.05)
    return page


def on_dashboard(folder: Path, story: Story) -> None:
    async def run() -> None:
        async with dashboard(folder) as board:
            await story(board)

    asyncio.run(run())


async def add_queue(board: Dashboard, name: str) -> None:
    await board.api.post(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1}})


async def settled(board: Dashboard) -> WatchedCluster:
    """Once the cluster is read."""
    cluster = board.server.cluster
    async with asyncio.timeout(20):
        await cluster.start()
        await cluster.watches.listed()
    return cluster


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def renders_without_changes(board: Dashboard, counting: Counting) -> int:
    """How often a page is rendered in a while, after another while, in both of which nothing changes."""
    watches = board.server.cluster.watches
    while True:
        stamp, before = (watches.records.version, watches.condition), 0
        for _ in range(2):
            before = counting.renders
            await asyncio.sleep(0.4)
        if stamp == (watches.records.version, watches.condition):
            return counting.renders - before


async def quiet(events: Events, seconds: float = 0.5) -> bool:
    """Whether nothing is sent for a while."""
    try:
        async with asyncio.timeout(seconds):
            return await events.event() is None
    except TimeoutError:
        return True


def test_a_browser_is_sent_what_it_lacks_and_then_the_regions_that_change(
    tmp_path: Path, counting: Counting
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        await settled(board)
        async with browser.events("/queues") as events:
            assert (await events.message()).startswith("retry: ")
            first = await events.event()
            assert first["order"] == ["region-notices", "region-same", "region-queues"]
            assert len(first["changed"]) == 3
            await add_queue(board, "extra")
            second = await events.event()
            assert second["order"] == [*first["order"], "region-extra"]
            assert [text.partition('id="')[2].partition('"')[0] for text in second["changed"]] == [
                "region-queues",
                "region-extra",
            ]
            assert "extra" in second["changed"][0]
            await board.api.delete(f"{QUEUES}/extra")
            third = await events.event()
            assert third["order"] == first["order"]
            assert len(third["changed"]) == 1

    on_dashboard(tmp_path, story)


def test_who_has_the_page_already_is_sent_nothing_until_it_changes(
    tmp_path: Path, counting: Counting
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        await settled(board)
        page = (await browser.get("/queues")).text
        known = page.partition('data-digest="')[2].partition('"')[0]
        assert known
        async with browser.events("/queues", known) as events:
            assert (await events.message()).startswith("retry: ")
            assert await quiet(events)
        async with browser.events("/queues", known) as events:
            await events.message()
            await add_queue(board, "late")
            event = await events.event()
            assert "late" in "".join(event["changed"])
            assert await quiet(events)

    on_dashboard(tmp_path, story)


def test_what_a_browser_saw_last_counts_more_than_what_it_saw_first(
    tmp_path: Path, counting: Counting
) -> None:
    """It connects again by itself with the address of the first time."""

    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        await settled(board)
        page = (await browser.get("/queues")).text
        first = page.partition('data-digest="')[2].partition('"')[0]
        async with browser.events("/queues", first) as events:
            await events.message()
            await add_queue(board, "extra")
            id_line = (await events.message()).partition("\n")[0]
            last = id_line.removeprefix("id: ")
        async with browser.events("/queues", first, Last_Event_ID=last) as events:
            assert await quiet(events)
        await board.api.delete(f"{QUEUES}/extra")
        await until(lambda: "extra" not in board.server.cluster.watches.records.queues)
        async with browser.events("/queues", first, Last_Event_ID=last) as events:
            assert "extra" not in "".join((await events.event())["changed"])

    on_dashboard(tmp_path, story)


def test_a_page_is_rendered_once_for_all_who_look_at_it(tmp_path: Path, counting: Counting) -> None:
    async def story(board: Dashboard) -> None:
        browsers = [await board.admitted() for _ in range(3)]
        await settled(board)
        counting.renders = 0
        async with (
            browsers[0].events("/queues") as first,
            browsers[1].events("/queues") as second,
            browsers[2].events("/queues") as third,
        ):
            assert await first.event() == await second.event() == await third.event()
            assert counting.renders == 1
            assert len([task for task in asyncio.all_tasks() if "LivePage.keep" in repr(task)]) == 1
            await add_queue(board, "new")
            told = [await each.event() for each in (first, second, third)]
            assert told[0] == told[1] == told[2]
            assert counting.renders <= 3
            assert await renders_without_changes(board, counting) == 0
        await until(lambda: not counting.live._pages)
        before = counting.renders
        await add_queue(board, "unseen")
        await until(lambda: "unseen" in board.server.cluster.watches.records.queues)
        assert [task for task in asyncio.all_tasks() if "LivePage.keep" in repr(task)] == [], (
            "nothing renders pages"
        )
        assert counting.renders == before

    on_dashboard(tmp_path, story)


def test_another_query_is_another_page_and_its_order_is_none(tmp_path: Path, counting: Counting) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        await settled(board)
        counting.renders = 0
        async with (
            browser.events("/queues?a=1&b=2") as first,
            browser.events("/queues?b=2&a=1") as second,
            browser.events("/queues?a=2") as third,
        ):
            for each in (first, second, third):
                await each.event()
            assert counting.renders == 2

    on_dashboard(tmp_path, story)


def test_what_tells_time_is_rendered_again_and_sent_only_if_more_than_an_age_changed(
    tmp_path: Path, counting: Counting
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        await settled(board)
        async with browser.events("/ticking") as events:
            await events.event()
            counting.renders = 0
            assert await quiet(events, 0.6)
            assert counting.renders >= 2

    on_dashboard(tmp_path, story)


def test_a_browser_hears_that_the_server_is_still_there(
    tmp_path: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        async with browser.events("/queues") as events:
            await events.event()
            assert await events.message() == "event: heartbeat\ndata:\n"
            assert await events.message() == "event: heartbeat\ndata:\n"

    monkeypatch.setattr(event_stream, "HEARTBEAT", 0.05)
    on_dashboard(tmp_path, story)


def test_a_stream_ends_with_the_session(
    tmp_path: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        browser, other = await board.admitted(), await board.admitted()
        async with browser.events("/queues") as events, other.events("/queues") as others:
            await events.event()
            await others.event()
            await browser.post("/leave")
            assert await events.event() is None
            await add_queue(board, "new")
            assert "new" in "".join((await others.event())["changed"])

    monkeypatch.setattr(event_stream, "RECHECK", 0.1)
    on_dashboard(tmp_path, story)


def test_a_page_that_fails_while_somebody_looks_says_so_above_what_it_has_and_recovers(
    tmp_path: Path, counting: Counting
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        await settled(board)
        async with browser.events("/queues") as events:
            await events.event()
            counting.fails = True
            await add_queue(board, "bad")
            failed = await events.event()
            assert [markup for markup in failed["changed"] if "This page failed" in markup] == failed[
                "changed"
            ]
            assert failed["order"] != ["region-notices", "region-problem"], "the last content is still shown"
            counting.fails = False
            await add_queue(board, "good")
            assert "good" in "".join((await events.event())["changed"])

    on_dashboard(tmp_path, story)


def test_what_is_no_text_ends_no_stream_and_breaks_no_event(tmp_path: Path, counting: Counting) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        counting.odd = True
        async with browser.events("/queues") as events:
            event = await events.event()
            assert event["title"] == "?"
            assert "&lt;/p" in event["changed"][-1]

    on_dashboard(tmp_path, story)


def test_streams_of_a_viewer_are_bounded_and_free_again_when_he_leaves(
    tmp_path: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        async with browser.events("/queues") as first, browser.events("/") as second:
            assert (first.status, second.status) == (200, 200)
            refused = await browser.get("/live?view=/queues")
            assert refused.status == 429
            assert (await browser.get("/queues")).status == 200
        async with asyncio.timeout(10):
            while True:
                async with browser.events("/queues") as again:
                    if again.status == 200:
                        break
                await asyncio.sleep(0.05)

    monkeypatch.setattr(viewer_shares, "MOST_OWN_STREAMS", 2)
    on_dashboard(tmp_path, story)


@pytest.mark.parametrize("bound", ["streams", "pages"])
def test_all_streams_and_pages_together_are_bounded(
    tmp_path: Path, counting: Counting, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        async with browser.events("/queues?a=1") as first, browser.events("/queues?a=2") as second:
            assert (first.status, second.status) == (200, 200)
            assert (await browser.get("/live?view=/queues?a=3")).status == 429
            async with browser.events("/queues?a=2") as shared:
                assert shared.status == (200 if bound == "pages" else 429)

    if bound == "streams":
        monkeypatch.setattr(viewer_shares, "MOST_STREAMS", 2)
    else:
        monkeypatch.setattr(live_pages, "MOST_PAGES", 2)
    on_dashboard(tmp_path, story)


def test_who_reads_nothing_holds_up_nobody(tmp_path: Path, counting: Counting) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        await settled(board)
        counting.large = 400_000
        reader, writer = await asyncio.open_connection("127.0.0.1", board.port, limit=1024)
        head = f"GET /live?view=/queues HTTP/1.1\r\nHost: 127.0.0.1:{board.port}\r\nCookie: {browser.cookies}\r\n\r\n"
        writer.write(head.encode())
        async with browser.events("/queues") as events:
            await events.event()
            for number in range(8):
                await add_queue(board, f"more-{number}")
                told: Any = await events.event()
                assert f"more-{number}" in "".join(told["changed"])
        writer.transport.abort()
        assert reader is not None

    on_dashboard(tmp_path, story)


def test_a_stream_of_no_page_is_refused(tmp_path: Path, counting: Counting) -> None:
    async def story(board: Dashboard) -> None:
        browser = await board.admitted()
        for view in ("", "/nonsense", "http://evil.example/", "//evil.example/none", "/live", "/act/x"):
            async with browser.events(view) as events:
                assert events.status == 404, view
        async with board.browser().events("/queues") as events:
            assert events.status == 401

    on_dashboard(tmp_path, story)
