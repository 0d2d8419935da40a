"""Pages that are kept live: rendered once for all who look at the same, at a pace that bounds what they cost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
from stromboli.cli.dashboard.pages.page_content import NotThere, PageContent, PageRoute, ViewRequest
from stromboli.cli.dashboard.pages.page_elements import card, notes
from stromboli.cli.dashboard.server.page_frame import lasting
from stromboli.cli.dashboard.server.processor_time import ProcessorTime
from stromboli.cli.live.visible_records import Visibility
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

log = logging.getLogger(__name__)

PACE = 1.0
"""Seconds between two renderings of a page, at least."""
RENDERING_PART = 150
"""Of the time of a processor, one part in so many is spent on a page, however many look at it."""
LONGEST_RENDER = 30.0
"""Seconds for a page, with what it reads of the API server."""
FAILED = 500
"""Statuses from which on a page may succeed when it is tried again."""
LARGEST_PAGE = 1024 * 1024
"""Characters of a page."""
MOST_PAGES = 256
"""Different pages that are kept live at once."""


class TooManyPages(Exception):
    """So many pages are kept live that there is no room for another."""


async def render(route: PageRoute, request: ViewRequest) -> PageContent:
    """A page, below what is wrong with the view of the cluster."""
    page = await _page(route, request)
    size = sum(map(len, page.regions.values()))
    if size > LARGEST_PAGE:
        text = f"It would have {size / 2**20:.1f} MiB. Filters in its address make it smaller."
        page = problem_page("This page is too large", text, 500)
    return page._replace(regions={"notices": _notices(request), **page.regions})


def _notices(request: ViewRequest) -> Markup:
    watches, visibility = request.cluster.watches, request.viewer.visibility
    told = [element("p", problem, class_="warn") for problem in watches.problems()]
    if not watches.is_listed:
        progress = watches.progress() if visibility.is_complete else "reading the cluster"  # it has counts
        told.append(element("p", progress, class_="note"))
    return joined([*told, *_rights(visibility)])


def _rights(visibility: Visibility) -> list[Markup]:
    """What a viewer may not see, in one line; where there is more to say, that can be opened."""
    texts = list(_hidden(visibility))
    if len(texts) < 2:
        return [element("p", text, class_="note") for text in texts]
    line = element("summary", "Your rights show you a part of this cluster.")
    return [element("details", line, notes(texts), class_="note")]


def _hidden(visibility: Visibility) -> Iterator[str]:
    """What a viewer may not see, by his rights."""
    if visibility.unlisted:
        yield f"You may not list {', '.join(visibility.unlisted)}."
    if visibility.is_partial:
        yield "There are more namespaces than those about which your rights were asked for; they are not shown."
    limited: dict[frozenset[str], list[str]] = {}
    for kind, namespaces in visibility.namespaces.items():
        if namespaces:
            limited.setdefault(namespaces, []).append(kind)
    for namespaces, kinds in limited.items():
        where = ", ".join(sorted(namespaces))
        yield shortened(
            f"You may list {', '.join(kinds)} in {where} alone; others are not shown or counted.", 500
        )


async def _page(route: PageRoute, request: ViewRequest) -> PageContent:
    """A page; where it cannot be shown, one that says why."""
    try:
        async with asyncio.timeout(LONGEST_RENDER):
            return await route.render(request)
    except NotThere as error:
        return problem_page("Not there", shown(str(error)), 404)
    except ClusterError as error:
        return problem_page("This cannot be shown", shown(str(error)), 404)
    except ApiError as error:
        return problem_page(
            "The cluster refuses this", refusal_text(error), 403 if error.status == 403 else 502
        )
    except NoResponse as error:
        return problem_page("The cluster does not answer", shown(str(error)), 502)
    except TimeoutError:
        return problem_page("The cluster does not answer", f"for {LONGEST_RENDER:g} seconds", 504)
    except Exception:
        log.exception("a page of the dashboard failed: %s", shown(request.path))
        return problem_page("This page failed", "The log of the dashboard says more.", 500)


def problem_page(title: str, text: str, status: int, class_: str = "warn") -> PageContent:
    """A page that says why another cannot be shown."""
    told = notes([text] if text else [], class_)
    return PageContent(title, {"problem": card(title, told, wide=True)}, status)


def _kept(last: PageContent, failed: PageContent) -> PageContent:
    """The last content of a page that cannot be renewed for now, below what is wrong."""
    if last.status >= FAILED:
        return failed
    problem = joined([failed.regions["notices"], failed.regions["problem"]])
    return last._replace(regions={**last.regions, "notices": problem})


class PageState(NamedTuple):
    """A page as it was rendered."""

    content: PageContent
    lasting: dict[str, str]
    """Its regions without what browsers keep up to date by themselves."""


@dataclass(slots=True)
class LivePage:
    """A page that somebody looks at."""

    route: PageRoute
    request: Callable[[], ViewRequest]
    """What is asked for, now."""
    state: PageState | None = None
    changes: int = 0
    """How often its regions have changed."""
    viewers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep(self) -> None:
        """Render it again and again, when there may be something new."""
        stamp, rendered_at = None, 0.0
        while True:
            cost = 0.0
            try:
                request = self.request()
                now, current = time.monotonic(), (request.records.version, request.cluster.watches.condition)
                is_due = bool(self.route.refresh) and now - rendered_at >= self.route.refresh
                if current != stamp or is_due:
                    rendering = ProcessorTime(self._render(request))
                    self._show(await rendering)
                    stamp, rendered_at, cost = current, now, rendering.seconds
            except Exception:
                log.exception("a live page of the dashboard failed: %s", self.route.pattern)
            await asyncio.sleep(max(PACE, cost * RENDERING_PART))

    async def _render(self, request: ViewRequest) -> PageState:
        content = await render(self.route, request)
        if content.status >= FAILED and self.state is not None:
            content = _kept(self.state.content, content)
        return PageState(content, {name: lasting(markup) for name, markup in content.regions.items()})

    def _show(self, state: PageState) -> None:
        is_new = self.state is None or state.lasting != self.state.lasting
        self.state = state
        if is_new:
            self.changes += 1
            self.changed.set()
            self.changed = asyncio.Event()

    async def updates(self) -> AsyncIterator[PageState]:
        """Each state, from the present one on; those that come while the last is being sent are skipped."""
        seen = 0
        while True:
            if self.state is None or self.changes == seen:
                await self.changed.wait()
                continue
            seen = self.changes
            yield self.state


class LivePages:
    """The pages that are looked at now."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, str], LivePage] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    @asynccontextmanager
    async def page(
        self, key: tuple[str, str], route: PageRoute, request: Callable[[], ViewRequest]
    ) -> AsyncIterator[LivePage]:
        """A page for as long as somebody looks; the same for all with the same key."""
        page = self._pages.get(key)
        if page is None:
            if len(self._pages) >= MOST_PAGES:
                raise TooManyPages
            page = self._pages[key] = LivePage(route, request)
            self._tasks[key] = asyncio.create_task(page.keep())
        page.viewers += 1
        try:
            yield page
        finally:
            page.viewers -= 1
            if not page.viewers:
                del self._pages[key]
                self._tasks.pop(key).cancel()
