"""The dashboard of `stromboli up` in Debian's Chromium: what a user sees, does and is spared.

With STROMBOLI_SCREENSHOTS=1 it also makes the screenshots of the documentation.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from stromboli.cli.dashboard.address_file import read_address
from tests.chromium import Browser, browser
from tests.cli.dashboard.busy_cluster import job, phase_of, resources, start
from tests.embedded.up_process import Up

pytestmark = pytest.mark.programs("chromium", "kubectl")
CHECKS = (Path(__file__).parent / "page_checks.js").read_text()
IMAGES = Path(__file__).parents[3] / "docs" / "pictures"
LARGEST_IMAGE = 160 * 1024
PATHS = (
    "/",
    "/queues",
    "/queues/research",
    "/jobs",
    "/jobs?q=e&phase=Pending",
    "/jobs/research/llm-pretrain",
    "/jobs/research/foundation",
    "/jobs/default/loud",
    "/jobs/research/resnet/suspend",
    "/jobs/research/resnet/scale",
    "/jobs/research/resnet/delete",
    "/queues/vision/close",
    "/pods/default/loud-worker-0",
    "/nodes",
    "/nodes/gpu-1",
    "/topology",
    "/policy",
    "/decisions",
    "/no/such/page",
    "/jobs/research/nothing",
)
SOME_PATHS = ("/", "/queues/research", "/jobs/research/llm-pretrain", "/nodes")
"""With the page of a HyperNode, five that show most kinds of elements."""
Story = Callable[[Browser, str], Awaitable[None]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = start(tmp_path_factory.mktemp("busy"))
    yield up
    up.stop()


async def enter(tab: Browser, cluster: Up) -> str:
    """Open the printed address; the part of it that all pages share."""
    address = read_address(cluster.data)
    await tab.open(address)
    await tab.until("!!document.querySelector('header nav')")
    return address.partition("/?")[0]


def in_browser(cluster: Up, profile: Path, story: Story) -> None:
    """A story of a browser that was let in; nothing is complained of, and nobody else is asked for anything."""

    async def run() -> None:
        async with browser(profile) as tab:
            host = await enter(tab, cluster)
            await story(tab, host)
            await tab.value("1")
            assert tab.complaints() == []
            others = [url for url in tab.requests() if not url.startswith((f"{host}/", "about:"))]
            assert others == []

    asyncio.run(run())


async def hyper_node_path(tab: Browser, host: str) -> str:
    """Of some HyperNode; their names have a part by chance."""
    await tab.open(f"{host}/topology")
    return str(await tab.until("document.querySelector('main a[href^=\"/topology/\"]').getAttribute('href')"))


@pytest.mark.parametrize(
    ("width", "dark", "paths"),
    [(360, True, PATHS), (360, False, SOME_PATHS), (1280, True, SOME_PATHS), (1280, False, SOME_PATHS)],
)
def test_pages_can_be_read_by_everybody(
    cluster: Up, tmp_path: Path, width: int, dark: bool, paths: tuple[str, ...]
) -> None:
    async def story(tab: Browser, host: str) -> None:
        problems = {}
        for path in (*paths, await hyper_node_path(tab, host)):
            await tab.open(host + path, width=width, dark=dark)
            await tab.until("document.readyState === 'complete' && !!document.querySelector('h1')")
            told = await tab.value(CHECKS)
            if told:
                problems[path] = told
        tab.events = [event for event in tab.events if "404 (Not Found)" not in str(event)]
        assert problems == {}, yaml.safe_dump(problems, width=200)

    in_browser(cluster, tmp_path, story)


def test_hostile_text_is_text(cluster: Up, tmp_path: Path) -> None:
    async def story(tab: Browser, host: str) -> None:
        for path in PATHS[:-2]:
            await tab.open(host + path)
            assert await tab.value("window.__hacked === undefined"), path
        await tab.open(f"{host}/pods/default/loud-worker-0")
        assert await tab.until("document.body.textContent.includes('onerror=window.__hacked=1')")
        await asyncio.sleep(1.5)  # an update comes, and is text as well
        assert await tab.value("window.__hacked === undefined")
        assert await tab.value("document.querySelectorAll('img[onerror], main script').length") == 0

    in_browser(cluster, tmp_path, story)


def test_nothing_is_stored_where_scripts_could_read_it(cluster: Up, tmp_path: Path) -> None:
    async def story(tab: Browser, host: str) -> None:
        for path in ("/", "/jobs", "/nodes"):
            await tab.open(host + path)
            stored = "[document.cookie, localStorage.length, sessionStorage.length, location.search]"
            assert await tab.value(stored) == ["", 0, 0, ""]
            databases = await tab.call(
                "Runtime.evaluate", expression="indexedDB.databases()", awaitPromise=True, returnByValue=True
            )
            assert databases["result"]["value"] == []
        history = (await tab.call("Page.getNavigationHistory"))["entries"]
        assert not [entry["url"] for entry in history if "code=" in entry["url"]]

    in_browser(cluster, tmp_path, story)


def test_a_new_job_appears_while_somebody_types(cluster: Up, tmp_path: Path) -> None:
    async def story(tab: Browser, host: str) -> None:
        await tab.open(f"{host}/jobs?namespace=default")
        await tab.until("document.body.textContent.includes('loud')")
        await tab.value("window.stayed = true")
        search = "document.querySelector('form.filters input[type=search]')"
        await tab.value(f"{search}.focus()")
        for letter in "lat":
            await tab.press(letter)
        await submit(cluster, job("late", "default", "default", resources(1)))
        await tab.until("document.querySelector('main').textContent.includes('late')", 30)
        assert await tab.value(f"document.activeElement === {search}")
        assert await tab.value(f"{search}.value") == "lat"
        assert await tab.value("window.stayed"), "it is the same page"
        await tab.until("/late[^]*Running/.test(document.querySelector('main').innerText)", 30)
        await asyncio.to_thread(cluster.kubectl, "delete", "vcjob", "late")
        await tab.until("!document.querySelector('main table').textContent.includes('late')", 30)
        assert await tab.value(f"{search}.value") == "lat"

    in_browser(cluster, tmp_path, story)


async def submit(cluster: Up, manifest: dict[str, object]) -> None:
    text = yaml.safe_dump(manifest)
    await asyncio.to_thread(cluster.kubectl, "apply", "-f", "-", stdin=text)


def test_a_job_is_suspended_and_resumed_by_clicks(cluster: Up, tmp_path: Path) -> None:
    async def story(tab: Browser, host: str) -> None:
        await submit(cluster, job("clicked", "default", "default", resources(1)))
        await tab.open(f"{host}/jobs/default/clicked")
        await tab.until("document.querySelector('main .phase').innerText.includes('Running')", 30)
        for verb, phase in (("suspend", "Aborted"), ("resume", "Running")):
            await tab.until(f"!!document.querySelector('a[href$=\"/clicked/{verb}\"]')", 30)
            await tab.value(f"document.querySelector('a[href$=\"/clicked/{verb}\"]').click()")
            button = "document.querySelector('main form button[type=submit]')"
            await tab.until(f"location.pathname.endsWith('/{verb}') && !!{button}")
            assert await tab.value(f"document.body.textContent.includes('stromboli job {verb} clicked')")
            await tab.value(f"{button}.click()")
            await tab.until("location.pathname === '/jobs/default/clicked'")
            await tab.until(f"document.querySelector('main .phase').innerText.includes('{phase}')", 30)
            assert await asyncio.to_thread(phase_of, cluster, "clicked", "default") == phase
        await asyncio.to_thread(cluster.kubectl, "delete", "vcjob", "clicked")

    in_browser(cluster, tmp_path, story)


def test_the_keyboard_is_enough(cluster: Up, tmp_path: Path) -> None:
    async def story(tab: Browser, host: str) -> None:
        reached = []
        for _ in range(12):
            await tab.press("Tab", 9)
            reached.append(await tab.value("document.activeElement.textContent.trim()"))
        titles = ["Overview", "Queues", "Jobs", "Nodes", "Topology", "Policy", "Decisions"]
        assert reached[:9] == ["Skip to the content", "Stromboli", *titles]
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert await tab.value(outline) != "none"
        for key, path in (("j", "/jobs"), ("q", "/queues"), ("n", "/nodes"), ("o", "/")):
            await tab.press("g")
            await tab.press(key)
            await tab.until(f"location.pathname === '{path}' && document.readyState === 'complete'")
        await tab.open(f"{host}/jobs")
        await tab.press("/")
        assert await tab.value("document.activeElement.type") == "search"
        assert await tab.value("document.activeElement.value") == ""
        await tab.press("g")
        await tab.press("q")
        assert await tab.value("document.activeElement.value") == "gq", "it is typed, not obeyed"
        await tab.press("Enter", 13)
        await tab.until("location.search === '?q=gq'")

    in_browser(cluster, tmp_path, story)


def test_a_page_says_that_it_is_not_connected_and_goes_on_when_it_is_again(tmp_path: Path) -> None:
    """Of a small cluster of its own, which stops and starts again."""

    async def story(up: Up) -> None:
        async with browser(tmp_path / "profile") as tab:
            await enter(tab, up)
            await tab.until("document.getElementById('connection').hidden")
            await asyncio.to_thread(up.stop)
            await tab.until("!document.getElementById('connection').hidden", 30)
            assert "Not connected since" in await tab.value(
                "document.getElementById('connection').textContent"
            )

    with Up(tmp_path / "data", "--nodes", "1x4cpu") as up:
        asyncio.run(story(up))


# -- with rights of his own


RULES = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: watcher, namespace: research}
rules:
- apiGroups: ["", batch.volcano.sh, scheduling.volcano.sh]
  resources: [pods, events, jobs, podgroups]
  verbs: [get, list, watch]
"""


@contextmanager
def dashboard_by_token(cluster: Up) -> Iterator[str]:
    """Another dashboard of the cluster, to which everybody brings a token; its address."""
    options = ("--authentication", "token", "--listen-address", "127.0.0.1:0")
    command = [sys.executable, "-m", "stromboli", "dashboard", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=cluster.environment) as process:
        try:
            assert process.stdout is not None
            match = re.search(r"http://[\d.:]+", process.stdout.readline())
            assert match is not None
            yield match[0]
        finally:
            process.terminate()


def test_who_lacks_a_right_is_told_which(cluster: Up, tmp_path: Path) -> None:
    cluster.kubectl("create", "serviceaccount", "watcher", "-n", "research")
    cluster.kubectl("apply", "-f", "-", stdin=RULES)
    binding = ("--role=watcher", "--serviceaccount=research:watcher", "-n", "research")
    cluster.kubectl("create", "rolebinding", "watcher", *binding)
    token = cluster.kubectl("create", "token", "watcher", "-n", "research").strip()

    async def story(address: str) -> None:
        async with browser(tmp_path) as tab:
            await tab.open(f"{address}/jobs")
            field = "document.querySelector('input[name=token]')"
            await tab.until(f"document.activeElement === {field}")
            await tab.call("Input.insertText", text=token)
            await tab.press("Enter", 13)
            await tab.until("location.pathname === '/jobs' && !!document.querySelector('main table')")
            text = await tab.value("document.body.innerText")
            assert "llm-pretrain" in text
            assert "serve" not in text
            assert "system:serviceaccount:research:watcher" in text
            assert "in research alone" in await tab.value("document.body.textContent"), (
                "in what can be unfolded"
            )
            assert await tab.value("document.cookie") == ""
            assert token not in await tab.value("document.documentElement.outerHTML + location.href")
            await tab.open(f"{address}/jobs/research/resnet/suspend")
            text = await tab.until("document.querySelector('main').innerText")
            assert "may not create commands.bus.volcano.sh" in text
            assert await tab.value("document.querySelectorAll('main form button[type=submit]').length") == 0
            told = await tab.value(CHECKS)
            assert told == []
            await tab.value("document.querySelector('form[action=\"/leave\"] button').click()")
            await tab.until(f"location.pathname === '/' && !!{field}")
            complaints = [each for each in tab.complaints() if "401 (Unauthorized)" not in each]
            assert complaints == []

    with dashboard_by_token(cluster) as address:
        asyncio.run(story(address))
    assert phase_of(cluster, "resnet", "research") == "Running"


# -- screenshots of the documentation


@pytest.mark.skipif(not os.environ.get("STROMBOLI_SCREENSHOTS"), reason="screenshots are made on request")
def test_screenshots(cluster: Up, tmp_path: Path) -> None:
    pages = {
        "overview": "/?span=10m",
        "queues": "/queues",
        "job": "/jobs/production/evaluate",
        "nodes": "/nodes?resource=gpu",
        "topology": "/topology?open=all",
        "decisions": "/decisions",
    }

    async def story(tab: Browser, host: str) -> None:
        for number in range(6):  # so that there is a past to show
            request = resources(8, 1, "16Gi")
            await submit(cluster, job(f"burst-{number}", "research", "vision", request, number + 2, "25s"))
            await asyncio.sleep(20)
        IMAGES.mkdir(exist_ok=True)
        await tab.call("Emulation.setScrollbarsHidden", hidden=True)
        for name, path in pages.items():
            await tab.open(host + path, height=720)
            await asyncio.sleep(3)
            where = "document.querySelector('.where')"
            await tab.value(f"{where}.textContent = '~/cluster'")  # whose machine it was is of no interest
            file = IMAGES / f"dashboard-{name}.png"
            await tab.screenshot(file)
            assert file.stat().st_size < LARGEST_IMAGE, (file, file.stat())

    in_browser(cluster, tmp_path, story)
