"""At which pace a page is kept live: what it costs bounds how often, what it waits for does not."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from stromboli.cli.dashboard.pages.page_content import PageContent, PageRoute, ViewRequest
from stromboli.cli.dashboard.server import live_pages
from stromboli.cli.dashboard.server.live_pages import LivePages, render
from stromboli.cli.live.visible_records import Visibility
from stromboli.simulator.reports.page.markup import element
from tests.cli.dashboard.view_requests import html_of, view_request


async def renders_within(seconds: float, work: float, wait: float) -> int:
    """How often a page is rendered that computes and waits for so long."""
    count = 0
    asked = view_request("/")

    async def page(_: ViewRequest) -> PageContent:
        nonlocal count
        count += 1
        end = time.thread_time() + work
        while time.thread_time() < end:
            pass
        await asyncio.sleep(wait)
        return PageContent("page", {"body": element("p", str(count))})

    async def busy() -> None:
        """Others use the processor meanwhile."""
        while True:
            end = time.thread_time() + 0.005
            while time.thread_time() < end:
                pass
            await asyncio.sleep(0.005)

    others = asyncio.create_task(busy())
    route = PageRoute("/", page, "", refresh=0.001)
    async with LivePages().page(("", "/"), route, lambda: asked):
        await asyncio.sleep(seconds)
    others.cancel()
    return count


def test_a_page_that_costs_more_is_rendered_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pages, "PACE", 0.02)
    assert asyncio.run(renders_within(1.0, 0.0, 0.0)) >= 8
    assert asyncio.run(renders_within(1.0, 0.02, 0.0)) == 1


def test_a_page_that_waits_costs_nothing_by_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pages, "PACE", 0.02)
    assert asyncio.run(renders_within(1.5, 0.0, 0.05)) >= 5


def test_a_page_is_no_longer_rendered_when_the_last_viewer_leaves() -> None:
    count = 0

    async def page(_: ViewRequest) -> PageContent:
        nonlocal count
        count += 1
        await asyncio.sleep(3600)
        raise AssertionError

    async def story() -> None:
        pages, asked = LivePages(), view_request("/")
        async with pages.page(("", "/"), PageRoute("/", page, ""), lambda: asked) as first:
            async with pages.page(("", "/"), PageRoute("/", page, ""), lambda: asked) as second:
                assert first is second
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            assert len(asyncio.all_tasks()) == 2
        await asyncio.sleep(0.01)
        assert len(asyncio.all_tasks()) == 1
        assert count == 1

    asyncio.run(story())


async def _empty(_: ViewRequest) -> PageContent:
    return PageContent("page", {})


def test_while_the_cluster_is_read_only_those_who_may_see_all_of_it_are_told_how_much_there_is() -> None:
    visible = Visibility({"pods": frozenset({"team"})})
    everything, limited = view_request("/"), view_request("/", visibility=visible)
    route = PageRoute("/", _empty, "")
    assert "reading the cluster: 0 queues" in html_of(asyncio.run(render(route, everything)))
    told = html_of(asyncio.run(render(route, limited)))
    assert "<p class=note>reading the cluster</p>" in told.replace('"', "")
    assert "You may list pods in team alone" in told


def test_what_is_hidden_is_named_without_being_counted() -> None:
    nothing = Visibility(
        dict.fromkeys(("pods", "jobs"), frozenset()), frozenset({"nodes", "queues", "hypernodes"})
    )
    asked = view_request("/", visibility=nothing)
    told = html_of(asyncio.run(render(PageRoute("/", _empty, ""), asked)))
    assert "You may not list hypernodes, nodes, queues, pods, jobs." in told
    assert "<details" not in told, "one sentence needs no opening"
    many = Visibility({"pods": frozenset(f"team-{number}" for number in range(500))})
    asked = replace(asked, viewer=replace(asked.viewer, visibility=many))
    assert len(html_of(asyncio.run(render(PageRoute("/", _empty, ""), asked)))) < 1500


def test_how_many_namespaces_are_hidden_is_not_told() -> None:
    some = Visibility({"pods": frozenset({"team"})}, is_partial=True)
    asked = view_request("/", visibility=some)
    told = html_of(asyncio.run(render(PageRoute("/", _empty, ""), asked)))
    assert "There are more namespaces than those about which your rights were asked for" in told


def test_several_limits_of_rights_are_one_line_that_can_be_opened() -> None:
    limited = Visibility({"pods": frozenset({"team"}), "events": frozenset()}, frozenset({"nodes"}))
    told = html_of(asyncio.run(render(PageRoute("/", _empty, ""), view_request("/", visibility=limited))))
    summary, _, details = told.partition("<details")[2].partition("</summary>")
    assert "Your rights show you a part of this cluster." in summary
    assert "You may not list nodes, events." in details
    assert "You may list pods in team alone" in details
