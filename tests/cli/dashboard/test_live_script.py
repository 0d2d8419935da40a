"""What the script of a page does with updates, in Chromium: what somebody looks at, types and chooses stays his."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.dashboard.pages.object_elements import command_line
from stromboli.cli.dashboard.pages.page_content import PageContent, PageRoute, ViewRequest
from stromboli.cli.dashboard.pages.page_elements import (
    KEPT_PARAMETERS,
    FilterField,
    TableColumn,
    age,
    data_table,
    filter_form,
    link,
)
from stromboli.cli.dashboard.server import dashboard_app, event_stream, live_pages
from stromboli.simulator.reports.page.markup import Markup, element, joined
from tests.chromium import Browser, browser
from tests.cli.dashboard.served_dashboard import Dashboard, dashboard

pytestmark = pytest.mark.programs("chromium")
BANNER = "document.getElementById('connection')"
TELLS = f"(!{BANNER}.hidden && {BANNER}.textContent)"
AN_HOUR = 3600


class Stage:
    """A page with the regions that a test gives it."""

    def __init__(self) -> None:
        self.regions: dict[str, Callable[[ViewRequest], Markup]] = {}
        self.names: Sequence[str] = ()
        """Of the objects in its table."""
        self.choices: Sequence[str] = ("red", "green")
        self.show("table", self._table)

    def show(self, name: str, content: Callable[[ViewRequest], Markup] | Markup) -> None:
        self.regions[name] = (lambda _: content) if isinstance(content, Markup) else content

    def _table(self, request: ViewRequest) -> Markup:
        columns = [
            TableColumn("Job", lambda row: link(f"/jobs/a/{row['name']}", row["name"])),
            TableColumn("Words", lambda row: f"words about {row['name']}"),
        ]
        return data_table(request, "jobs", columns, [{"name": name} for name in self.names])

    def filters(self, request: ViewRequest) -> Markup:
        return filter_form(request, [FilterField("q", "Search"), FilterField("state", "State", self.choices)])

    async def __call__(self, request: ViewRequest) -> PageContent:
        return PageContent("Stage", {name: content(request) for name, content in self.regions.items()})


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    page = Stage()
    monkeypatch.setattr(dashboard_app, "PAGES", (PageRoute("/", page, "overview", refresh=0.01),))
    monkeypatch.setattr(live_pages, "PACE", 0.05)
    monkeypatch.setattr(live_pages, "RENDERING_PART", 1)
    monkeypatch.setattr(event_stream, "RETRY_MILLISECONDS", 100)
    monkeypatch.setattr(event_stream, "RECHECK", 0.1)
    return page


class Cable:
    """What is between a browser and the dashboard; it can be cut without either's noticing."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._works = asyncio.Event()
        self._works.set()
        self._carrying: set[asyncio.Task[None]] = set()
        self.port = 0

    def cut(self) -> None:
        self._works.clear()

    def mend(self) -> None:
        self._works.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                while data := await reader.read(65536):
                    await self._works.wait()
                    writer.write(data)
                    await writer.drain()
        finally:
            writer.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        ways = ((reader, back), (there, writer))
        self._carrying |= {asyncio.create_task(self._carry(*way)) for way in ways}

    @asynccontextmanager
    async def plugged(self) -> AsyncIterator[Cable]:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._carrying:
                task.cancel()
            await asyncio.wait(self._carrying)


Story = Callable[[Browser, Dashboard], Awaitable[None]]


def in_browser(folder: Path, story: Story, query: str = "") -> None:
    """A story of a browser that was let in, and looks at the page."""

    async def run() -> None:
        async with dashboard(folder) as board, browser(folder / "profile") as tab:
            await enter(tab, board, query)
            await story(tab, board)

    asyncio.run(run())


async def enter(tab: Browser, board: Dashboard, query: str = "", port: int = 0) -> None:
    assert board.code is not None
    host = f"http://127.0.0.1:{port or board.port}"
    await tab.open(f"{host}/?code={board.code.current}")
    await tab.until("location.search === ''")
    if query:
        await tab.open(f"{host}/?{query}")
    await tab.value("window.stayed = true")


async def changed(tab: Browser, stage: Stage) -> None:
    """Wait until the page has all that the stage shows now."""
    number = str(int(await tab.value("document.getElementById('mark')?.textContent ?? 0")) + 1)
    stage.show("mark", element("p", number, id="mark"))
    await tab.until(f"document.getElementById('mark')?.textContent === '{number}'", 20)
    assert await tab.value("window.stayed"), "it is the same page"


async def streams(tab: Browser) -> int:
    """How many the browser has asked for."""
    await tab.value("1")  # so that its messages are read
    return len([url for url in tab.requests() if "/live?" in url])


def row(name: str) -> str:
    return f"document.querySelector('a[href=\"/jobs/a/{name}\"]')"


# -- rows


def test_the_focus_stays_with_the_object_when_rows_come_go_and_are_put_in_another_order(
    tmp_path: Path, stage: Stage
) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.value(f"{row('c')}.focus(); window.row = {row('c')}.closest('tr')")
        for names in ("zabcd", "bcde", "ce", "xyce", "ecyx", "abcd"):
            stage.names = tuple(names)
            await changed(tab, stage)
            told = (
                "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[0].textContent).join('')"
            )
            assert await tab.value(told) == names
            assert await tab.value("document.activeElement.getAttribute('href')") == "/jobs/a/c", names
            assert await tab.value("document.activeElement.closest('tr') === window.row"), names

    stage.names = tuple("abcd")
    in_browser(tmp_path, story)


def test_selected_text_stays_selected_when_rows_come_and_go_above_it(tmp_path: Path, stage: Stage) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        cell = f"{row('c')}.closest('tr').cells[1]"
        await tab.value(f"getSelection().selectAllChildren({cell})")
        for names in ("zabcd", "bcd", "cd"):
            stage.names = tuple(names)
            await changed(tab, stage)
            assert await tab.value("getSelection().toString()") == "words about c", names

    stage.names = tuple("abcd")
    in_browser(tmp_path, story)


def test_who_was_in_a_row_that_is_gone_is_still_in_its_table(tmp_path: Path, stage: Stage) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.value(f"{row('b')}.focus()")
        stage.names = ("a", "c")
        await changed(tab, stage)
        assert await tab.value("document.activeElement.className") == "scroll"
        await tab.press("Tab", 9)
        assert await tab.value("document.activeElement.getAttribute('href')") == "/jobs/a/a"

    stage.names = ("a", "b", "c")
    in_browser(tmp_path, story)


def test_what_somebody_unfolded_stays_unfolded_at_its_object(tmp_path: Path, stage: Stage) -> None:
    def tree(names: str) -> Markup:
        entries = (
            element("li", element("details", element("summary", link(f"/topology/{name}", name)), name * 3))
            for name in names
        )
        return element("ul", *entries)

    async def story(tab: Browser, board: Dashboard) -> None:
        unfolded = (
            "[...document.querySelectorAll('details[open] a')].map((each) => each.textContent).join('')"
        )
        await tab.value("document.querySelector('a[href=\"/topology/b\"]').closest('details').open = true")
        for names in ("xabc", "bc", "cb"):
            stage.show("tree", tree(names))
            await changed(tab, stage)
            assert await tab.value(unfolded) == "b"

    stage.show("tree", tree("abc"))
    in_browser(tmp_path, story)


# -- drawings


def test_drawings_are_changed_as_drawings(tmp_path: Path, stage: Stage) -> None:
    def drawing(width: float, count: int) -> Markup:
        parts = [element("rect", width=width, height=10.0, class_="bar-used") for _ in range(count)]
        return element("svg", *parts, viewBox=f"0 0 {width:g} 10", preserveAspectRatio="none", class_="bar")

    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.value("window.drawing = document.querySelector('#region-drawing svg')")
        stage.show("drawing", drawing(60.0, 3))
        await changed(tab, stage)
        assert await tab.value("window.drawing.isConnected")
        assert await tab.value("window.drawing.viewBox.baseVal.width") == 60
        assert await tab.value("[...window.drawing.children].every((each) => each instanceof SVGRectElement)")
        assert await tab.value("window.drawing.querySelectorAll('rect').length") == 3

    stage.show("drawing", drawing(120.0, 1))
    in_browser(tmp_path, story)


# -- forms


def test_choices_are_brought_up_to_date_and_what_is_chosen_stays(tmp_path: Path, stage: Stage) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        select = "document.querySelector('select[name=state]')"
        offered = f"[...{select}.options].map((option) => option.value).join(' ')"
        await tab.value(f"{select}.value = 'green'")
        stage.choices = ("blue", "green", "yellow")
        await changed(tab, stage)
        assert await tab.value(offered) == " blue green yellow"
        assert await tab.value(f"{select}.value") == "green"
        stage.choices = ("blue",)
        await changed(tab, stage)
        assert await tab.value(offered) == " blue"
        assert await tab.value(f"{select}.value") == ""

    stage.show("filters", stage.filters)
    in_browser(tmp_path, story)


def test_choosing_sends_a_filter_and_never_a_form_that_changes_something(
    tmp_path: Path, stage: Stage
) -> None:
    choice = element("select", element("option", "one"), element("option", "two"), name="task")
    action = element("form", choice, method="post", action="/", class_="filters", id="action")
    choose = (
        "(select) => { select.selectedIndex = 1; select.dispatchEvent(new Event('change', {bubbles: true})) }"
    )

    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.value(f"({choose})(document.querySelector('#action select'))")
        await asyncio.sleep(0.3)
        assert await tab.value("window.stayed"), "nothing was sent"
        await tab.value(f"({choose})(document.querySelector('select[name=state]'))")
        await tab.until("location.search === '?state=red'")
        await tab.call("Page.navigateToHistoryEntry", entryId=await entry_before(tab))
        await tab.until("location.search === '' && document.readyState === 'complete'")
        state = "document.querySelector('select[name=state]')"
        assert await tab.value(f"[{state}.value, {state}.disabled]") == ["", False]
        assert await tab.value("document.querySelector('[name=q]').disabled") is False

    stage.show("filters", stage.filters)
    stage.show("action", action)
    in_browser(tmp_path, story)


async def entry_before(tab: Browser) -> int:
    history = await tab.call("Page.getNavigationHistory")
    return int(history["entries"][history["currentIndex"] - 1]["id"])


def test_an_address_of_somebody_elses_making_does_not_stop_updates(tmp_path: Path, stage: Stage) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        names = "[...document.querySelector('form.filters').elements].map((each) => each.name).join(' ')"
        assert await tab.value(names) == "sort q state "
        stage.choices = ("blue",)
        await changed(tab, stage)
        assert await tab.value("document.querySelector('select[name=state]').options.length") == 2

    stage.show("filters", stage.filters)
    in_browser(tmp_path, story, "attributes=x&children=x&childNodes=x&matches=x&sort=age&done=scaled")


def test_no_parameter_of_a_page_is_a_property_of_forms(tmp_path: Path, stage: Stage) -> None:
    """As a field of that name would stand in its place."""

    async def story(tab: Browser, board: Dashboard) -> None:
        names = json.dumps(sorted(KEPT_PARAMETERS))
        assert await tab.value(f"{names}.filter((name) => name in document.createElement('form'))") == []

    in_browser(tmp_path, story)


def test_a_region_that_cannot_be_changed_is_replaced_and_others_are_updated(
    tmp_path: Path, stage: Stage
) -> None:
    def clobbered(text: str) -> Markup:
        field = element("input", name="attributes", value="x", aria_label="field")
        return element("form", field, element("p", text, id="text"))

    async def story(tab: Browser, board: Dashboard) -> None:
        stage.show("clobbered", clobbered("new"))
        stage.names = ("b",)
        await changed(tab, stage)
        assert await tab.value("document.getElementById('text').textContent") == "new"
        assert await tab.value(f"!!{row('b')}")

    stage.names = ("a",)
    stage.show("clobbered", clobbered("old"))
    in_browser(tmp_path, story)


# -- the connection


def test_a_browser_that_connects_again_by_itself_has_what_is_there_now(tmp_path: Path, stage: Stage) -> None:
    """Also where that is what it was shown first, and something else in between."""

    async def story(tab: Browser, board: Dashboard) -> None:
        stage.names = ("second",)
        await tab.until(f"!!{row('second')}")
        stage.names = ("first",)
        for task in [task for task in asyncio.all_tasks() if "_until_refused" in str(task.get_coro())]:
            task.cancel()  # the stream ends before the change is sent
        await tab.until(f"!!{row('first')}", 10)
        assert await tab.value("window.stayed")

    stage.names = ("first",)
    in_browser(tmp_path, story)


def test_a_dead_connection_is_noticed_and_made_anew(tmp_path: Path, stage: Stage) -> None:
    async def story() -> None:
        async with (
            dashboard(tmp_path) as board,
            Cable(board.port).plugged() as cable,
            browser(tmp_path / "profile") as tab,
        ):
            await tab.call("Page.addScriptToEvaluateOnNewDocument", source=CLOCK)
            await enter(tab, board, port=cable.port)
            await changed(tab, stage)
            cable.cut()
            before = await streams(tab)
            await tab.value("window.later = 30")
            await asyncio.sleep(1.5)
            assert await tab.value(TELLS) is False, "a silence of half a minute is usual"
            await tab.value(f"window.later = {AN_HOUR}")
            assert "Not connected since" in await tab.until(TELLS, 5)
            await asyncio.sleep(1.5)
            assert await streams(tab) == before + 1, "there is no hurry"
            stage.names = ("new",)
            cable.mend()
            await tab.until(f"{BANNER}.hidden && !!{row('new')}", 10)
            assert await tab.value("window.stayed")

    asyncio.run(story())


CLOCK = """
const now = Date.now.bind(Date);
window.later = 0;
Date.now = () => now() + 1000 * window.later;
"""


def test_heartbeats_tell_that_a_quiet_connection_lives(
    tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT", 0.2)

    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.call("Page.addScriptToEvaluateOnNewDocument", source=CLOCK)
        await tab.call("Page.reload")
        await tab.until("window.later === 0 && document.readyState === 'complete'")
        await tab.value("window.stayed = true")
        await changed(tab, stage)
        opened = await streams(tab)
        for later in range(20, 120, 20):
            await tab.value(f"window.later = {later}")
            await asyncio.sleep(0.7)
        assert await streams(tab) == opened
        assert await tab.value(TELLS) is False

    in_browser(tmp_path, story)


def test_who_has_to_log_in_again_is_told_and_goes_on_without_loading_the_page_again(
    tmp_path: Path, stage: Stage
) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.value("fetch('/leave', {method: 'POST'}).then(() => 0)")
        told = await tab.until(f"{TELLS} && {BANNER}.querySelector('a') && {BANNER}.textContent", 10)
        assert "This dashboard does not know you. Log in again" in told
        assert await tab.value(f"{BANNER}.querySelector('a').href") == f"http://127.0.0.1:{board.port}/"
        assert board.code is not None
        await tab.value(f"fetch('/?code={board.code.current}').then(() => 0)")
        stage.names = ("new",)
        await tab.until(f"{BANNER}.hidden && !!{row('new')}", 20)
        assert await tab.value("window.stayed")

    in_browser(tmp_path, story)


def test_who_is_refused_is_told_why(tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        told = await tab.until(
            f"{TELLS} && /Too many/.test({BANNER}.textContent) && {BANNER}.textContent", 10
        )
        assert told.startswith("Not connected since ")
        assert told.endswith("Too many pages are open.")
        monkeypatch.setattr(live_pages, "MOST_PAGES", 256)
        stage.names = ("new",)
        await tab.until(f"{BANNER}.hidden && !!{row('new')}", 20)

    monkeypatch.setattr(live_pages, "MOST_PAGES", 0)
    in_browser(tmp_path, story)


def test_a_page_that_is_hidden_holds_no_connection_and_has_what_is_new_when_it_is_seen(
    tmp_path: Path, stage: Stage
) -> None:
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    hide += "document.dispatchEvent(new Event('visibilitychange'))"

    async def story(tab: Browser, board: Dashboard) -> None:
        await changed(tab, stage)
        await tab.value(hide % "true")
        stage.names = ("new",)
        await asyncio.sleep(0.6)
        assert await tab.value(row("new")) is None
        await tab.value(hide % "false")
        await tab.until(f"!!{row('new')}", 10)
        await tab.value("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
        stage.names = ("newer",)
        await asyncio.sleep(0.6)
        assert await tab.value(row("newer")) is None
        await tab.value("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        await tab.until(f"!!{row('newer')}", 10)

    in_browser(tmp_path, story)


# -- a page that is left open


async def counts(tab: Browser) -> dict[str, float]:
    await tab.call("HeapProfiler.collectGarbage")
    told: list[dict[str, Any]] = (await tab.call("Performance.getMetrics"))["metrics"]
    return {each["name"]: each["value"] for each in told}


STREAM = """
window.EventSource = class extends EventTarget { constructor() { super(); window.stream = this; } close() {} };
"""


def test_thousands_of_updates_leave_nothing_behind(tmp_path: Path, stage: Stage) -> None:
    """As many as come within an hour or so, given to the script by hand."""

    def content(number: int) -> dict[str, Any]:
        rows = (
            element(
                "tr",
                element("td", link(f"/jobs/a/{place + number % 7}", place)),
                element("td", age(1.0 * number, 2.0)),
            )
            for place in range(30)
        )
        choices = element("select", *(element("option", number + each) for each in range(3)))
        drawing = element("svg", *(element("rect", width=1.0) for _ in range(number % 5)))
        table = element("table", element("tbody", joined(rows)))
        region = element("div", table, choices, drawing, id="region-table", class_="region")
        return {"title": "Stage", "order": ["region-table"], "changed": [region]}

    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.call("Page.addScriptToEvaluateOnNewDocument", source=STREAM)
        await tab.call("Performance.enable")
        await tab.call("Page.reload")
        await tab.until("!!window.stream?.onmessage")
        await tab.value(f"window.updates = {json.dumps([json.dumps(content(each)) for each in range(70)])}")
        event = "{data: updates[place %% 70], lastEventId: 'x'}"
        give = f"for (let place = 0; place < %d; place++) stream.onmessage({event})"
        await tab.value(give % 700)
        before = await counts(tab)
        await tab.value(give % 3500)
        after = await counts(tab)
        assert after["Nodes"] <= before["Nodes"] + 50
        assert after["JSEventListeners"] <= before["JSEventListeners"]
        assert after["JSHeapUsedSize"] <= before["JSHeapUsedSize"] + 512 * 1024

    in_browser(tmp_path, story)


# -- commands to copy


@pytest.mark.parametrize("is_secure", [True, False])
def test_a_command_is_copied_by_a_click(tmp_path: Path, stage: Stage, is_secure: bool) -> None:
    """Also where the page was not loaded with TLS, and browsers offer no clipboard."""
    command = 'kubectl create -f - <<\'END\'\n{"a": "<b>"}\nEND'

    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.call(
            "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
        )
        await tab.value("window.clipboard = navigator.clipboard")
        if not is_secure:
            await tab.value("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        await click(tab, "button[data-copy]")
        await tab.until("document.querySelector('button[data-copy]').textContent === 'Copied'", 5)
        copied = await tab.call(
            "Runtime.evaluate", expression="clipboard.readText()", awaitPromise=True, returnByValue=True
        )
        assert copied["result"]["value"] == command
        await tab.until("document.querySelector('button[data-copy]').textContent === 'Copy'", 5)

    stage.show("command", command_line(command))
    in_browser(tmp_path, story)


async def click(tab: Browser, selector: str) -> None:
    """As somebody with a mouse does."""
    box = f"document.querySelector('{selector}').getBoundingClientRect()"
    place: dict[str, float] = await tab.value(f"({{x: {box}.x + 5, y: {box}.y + 5}})")
    for kind in ("mousePressed", "mouseReleased"):
        await tab.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)


# -- the heat map


def heat_map(shares: str) -> Markup:
    return joined(
        [
            element("div", id="names", hidden="", data_names="n1 n2 n3", data_groups='[["rack", 3]]'),
            element(
                "heat-map",
                role="application",
                tabindex="0",
                aria_label="Heat map of 3 nodes",
                names="names",
                resource="CPU",
                shares=shares,
            ),
        ]
    )


async def heard(tab: Browser) -> dict[str, str]:
    """What a screen reader has of the map: names and texts by role."""
    nodes = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
    told: dict[str, str] = {}
    for node in nodes:
        role = node.get("role", {}).get("value", "")
        if role in ("application", "status") and not node.get("ignored"):
            texts = [each for each in nodes if each["nodeId"] in node.get("childIds", ())]
            own = node.get("name", {}).get("value", "")
            told[role] = own or "".join(each.get("name", {}).get("value", "") for each in texts)
    return told


def test_who_hears_the_heat_map_is_told_each_node(tmp_path: Path, stage: Stage) -> None:
    async def story(tab: Browser, board: Dashboard) -> None:
        await tab.call("Accessibility.enable")
        tip = "document.querySelector('heat-map').shadowRoot.querySelector('[role=status]')"
        await tab.until(f"!!{tip}")
        told = await heard(tab)
        assert told["application"] == "Heat map of 3 nodes"
        assert told["status"] == "", "it is there before it says something, or it would not be read out"
        await tab.press("Tab", 9)
        await tab.value("document.querySelector('heat-map').focus()")
        await tab.until(f"{tip}.textContent.startsWith('n1')", 5)
        await tab.press("ArrowRight", 39)
        await tab.until(f"{tip}.textContent.startsWith('n2')", 5)
        assert (await heard(tab))["status"] == "n2, about 50 % of CPU in use"
        await tab.value(
            f"window.said = 0; new MutationObserver(() => said++).observe({tip}, {{childList: true}})"
        )
        stage.show("map", heat_map("0Uy"))
        await changed(tab, stage)
        await asyncio.sleep(0.2)
        assert await tab.value("said") == 0, "the node is as it was"
        stage.show("map", heat_map("0yy"))
        await tab.until(f"{tip}.textContent === 'n2, 100 % of CPU in use'", 5)
        assert await tab.value("said") == 1
        await tab.press("Enter", 13)
        await tab.until("location.pathname === '/nodes/n2'")

    stage.show("map", heat_map("0U0"))
    in_browser(tmp_path, story)
