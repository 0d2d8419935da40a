"""The dashboard as an application of aiohttp: who asks, for which page, and what is answered."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import web

from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
from stromboli.cli.dashboard.actions.action_routes import ACTIONS, ActionRoute
from stromboli.cli.dashboard.pages.page_content import PageContent, PageRoute, ViewRequest
from stromboli.cli.dashboard.pages.page_elements import card, notes
from stromboli.cli.dashboard.pages.page_routes import PAGES
from stromboli.cli.dashboard.server.assets import Assets
from stromboli.cli.dashboard.server.event_stream import send_updates
from stromboli.cli.dashboard.server.live_pages import (
    LONGEST_RENDER,
    LivePages,
    TooManyPages,
    problem_page,
    render,
)
from stromboli.cli.dashboard.server.page_addresses import LONGEST_ADDRESS, AddressBook, Destination
from stromboli.cli.dashboard.server.page_frame import framed
from stromboli.cli.dashboard.server.request_guard import HEADERS, SAFE_METHODS, RequestGuard
from stromboli.cli.dashboard.server.viewer_shares import TooManyStreams, ViewerShares
from stromboli.cli.dashboard.viewers.one_time_code import CODE
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.viewers.viewer_authentication import NotAdmitted, ViewerAuthentication
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.daemon.request_connection import prove
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.reports.page.markup import element

log = logging.getLogger(__name__)

FIRST_LOOK = 0.5
"""Seconds for which a first page waits until the cluster is read."""
HEALTH = "/healthz"
LARGEST_FORM = 64 * 1024
"""Bytes of a form."""
MOST_OWN_CONNECTIONS = 64
"""Of one viewer; the longest idle is closed for a new one."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class DashboardApp:
    """All routes, behind one guard."""

    def __init__(
        self, cluster: WatchedCluster, authentication: ViewerAuthentication, guard: RequestGuard, where: str
    ) -> None:
        self._cluster = cluster
        self._authentication = authentication
        self._guard = guard
        self._where = where
        self._pages: AddressBook[PageRoute] = AddressBook(PAGES)
        self._actions: AddressBook[ActionRoute] = AddressBook(ACTIONS)
        self._live = LivePages()
        self._shares = ViewerShares()
        self._assets = Assets()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_FORM, middlewares=[self._guarded])
        app.router.add_get(HEALTH, self._health)
        app.router.add_get("/assets/{name}", self._asset)
        app.router.add_get("/live", self._follow, allow_head=False)
        app.router.add_post("/login", self._login)
        app.router.add_post("/leave", self._leave)
        app.router.add_get("/{path:.*}", self._show)
        app.router.add_post("/{path:.*}", self._act)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what no page of ours sends, and let no response be used elsewhere."""
        is_probe = request.path == HEALTH and request.method in SAFE_METHODS  # it knows no name of ours
        refusal = None if is_probe else self._guard.refusal(request)
        response = refusal if refusal is not None else await self._response(request, handler)
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    async def _response(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """What a handler answers; a page that says so if it fails."""
        try:
            return await handler(request)
        except web.HTTPException as error:
            response = self._problem(error.reason, "", error.status)
            if allowed := error.headers.get("Allow"):
                response.headers["Allow"] = allowed
            return response
        except NotAdmitted as error:
            return self._login_page(str(error), 503)
        except ConnectionError:  # the client has left
            raise
        except Exception:
            log.exception("a request to the dashboard failed: %s", shown(request.path))
            return self._problem("This failed", "The log of the dashboard says more.", 500)

    async def _health(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        return self._assets.respond(request)

    # -- who looks

    async def _viewer(self, request: web.Request) -> Viewer | None:
        viewer = await self._authentication.viewer(request)
        if viewer is not None:
            prove(request, viewer.key, MOST_OWN_CONNECTIONS)
            await self._begin()
        return viewer

    async def _begin(self) -> None:
        """Watch from when somebody looks; a small cluster is read before its first page is shown."""
        await self._cluster.start()
        if not self._cluster.watches.is_listed:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_LOOK):
                    await self._cluster.watches.listed()

    async def _login(self, request: web.Request) -> web.StreamResponse:
        if not self._authentication.asks_for_token:
            raise web.HTTPNotFound
        form = await _form(request)
        address = _own_address(form.get("next", ""))
        response = _see_other(address)
        try:
            await self._authentication.admit(request, form.get("token", ""), response)
        except NotAdmitted as error:
            return self._login_page(str(error), 401, address)
        return response

    async def _leave(self, request: web.Request) -> web.StreamResponse:
        response = _see_other("/")
        await self._authentication.leave(request, response)
        return response

    def _login_page(self, problem: str, status: int, address: str = "/") -> web.Response:
        parts = [*([notes([problem], "warn")] if problem else []), notes([self._authentication.help])]
        if self._authentication.asks_for_token:
            field = element(
                "input", type="password", name="token", autocomplete="off", required="", autofocus=""
            )
            kept = element("input", type="hidden", name="next", value=address)
            button = element("button", "Look", type="submit")
            label = element("label", element("span", "Token"), field)
            parts.append(element("form", kept, label, button, method="post", action="/login", class_="login"))
        content = PageContent(
            "Who are you?", {"login": card("This dashboard does not know you", *parts, wide=True)}
        )
        return _html(framed(content, "", "", "", time.time(), live=False), status)

    # -- pages

    async def _show(self, request: web.Request) -> web.StreamResponse:
        code = request.query.get(CODE, "")
        if code and not self._authentication.asks_for_token and request.method == "GET":
            return await self._admit(request, code)
        viewer = await self._viewer(request)
        if viewer is None:
            return self._login_page("", 401, request.path_qs)
        destination: Destination[PageRoute] | Destination[ActionRoute] | None = self._pages.find(
            request.path_qs
        )
        if destination is None:
            destination = self._actions.find(request.path_qs)
        if destination is None:
            return self._problem("Not there", "This address leads to no page.", 404, viewer)
        return await self._respond(destination, viewer)

    async def _respond(
        self,
        destination: Destination[PageRoute] | Destination[ActionRoute],
        viewer: Viewer,
        problem: str = "",
    ) -> web.Response:
        route = destination.route
        if isinstance(route, ActionRoute):
            page, live, status = PageRoute(route.pattern, route.render, route.section), False, 400
        else:
            page, live, status = route, True, 200
        asked = self._request(destination, viewer)
        async with self._shares.renders.of(viewer.key):
            content = await render(page, asked)
        if problem:
            told = {"refused": notes([problem], "warn")}
            content = content._replace(regions={**told, **content.regions}, status=status)
        text = framed(content, page.section, self._where, viewer.name, asked.now, live)
        return _html(text, content.status)

    def _request(
        self, destination: Destination[PageRoute] | Destination[ActionRoute], viewer: Viewer
    ) -> ViewRequest:
        return ViewRequest(
            destination.path,
            destination.names,
            destination.query,
            viewer,
            self._cluster,
            self._cluster.view(viewer.visibility),
            time.time(),
        )

    async def _admit(self, request: web.Request, code: str) -> web.Response:
        """A browser that comes with the code: it is let in, and the code leaves its address."""
        kept = {name: value for name, value in request.query.items() if name != CODE}
        response = _see_other(_own_address(str(request.rel_url.with_query(kept))))
        try:
            await self._authentication.admit(request, code, response)
        except NotAdmitted as error:
            if await self._viewer(request) is None:
                return self._login_page(str(error), 401)
        return response

    def _problem(self, title: str, text: str, status: int, viewer: Viewer | None = None) -> web.Response:
        content = problem_page(title, text, status, "note")
        who, where = (viewer.name, self._where) if viewer is not None else ("", "")
        return _html(framed(content, "", where, who, time.time(), live=False), status)

    # -- what changes

    async def _follow(self, request: web.Request) -> web.StreamResponse:
        viewer = await self._viewer(request)
        if viewer is None:
            return web.Response(status=401, text="This dashboard does not know you.\n")
        destination = self._pages.find(request.query.get("view", ""))
        if destination is None:
            return web.Response(status=404, text="This address leads to no page.\n")
        route = destination.route
        seen_by = viewer.visibility.key
        if route.personal:
            seen_by = f"{viewer.key} {id(viewer.session)} {seen_by}"
        key = (seen_by, f"{destination.path}?{sorted(destination.query.items())}")
        known = request.query.get("digest", "")
        try:
            with self._shares.stream(viewer.key) as ended:
                async with self._live.page(key, route, lambda: self._request(destination, viewer)) as page:
                    return await send_updates(
                        request, page, known, lambda: self._has_same_rights(request, viewer), ended
                    )
        except (TooManyPages, TooManyStreams):
            return web.Response(status=429, text="Too many pages are open.\n")

    async def _has_same_rights(self, request: web.Request, viewer: Viewer) -> bool:
        try:
            known = await self._authentication.viewer(request)
        except NotAdmitted:
            return False
        return known is not None and known.visibility.key == viewer.visibility.key

    # -- actions

    async def _act(self, request: web.Request) -> web.StreamResponse:
        viewer = await self._viewer(request)
        if viewer is None:
            return self._login_page("", 401, request.path_qs)
        destination = self._actions.find(request.path_qs)
        if destination is None:
            return self._problem("Not there", "This address leads to no action.", 404, viewer)
        form = await _form(request)
        asked = self._request(destination, viewer)
        log.info("action", extra={"path": shown(asked.path), "user": shown(viewer.name)})
        try:
            async with asyncio.timeout(LONGEST_RENDER):
                target = await destination.route.perform(asked, form)
        except ApiError as error:
            return await self._respond(destination, viewer, refusal_text(error))
        except (ClusterError, NoResponse) as error:
            return await self._respond(destination, viewer, shown(str(error)))
        except TimeoutError:
            return await self._respond(destination, viewer, "The cluster did not answer in time.")
        return _see_other(target)


async def _form(request: web.Request) -> dict[str, str]:
    """The fields of a form; files are none."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType
    try:
        fields = await request.post()
    except (LookupError, ValueError):  # of an encoding that nobody knows, or not in it
        raise web.HTTPBadRequest from None
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def _own_address(address: str) -> str:
    """Where to go after a login: within this dashboard, whatever a form says."""
    is_plain = address.isascii() and address.isprintable()  # browsers leave out what is not: /<tab>/ is //
    is_path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_plain and is_path and len(address) <= LONGEST_ADDRESS else "/"


def _see_other(address: str) -> web.Response:
    return web.Response(status=303, headers={"Location": address})


def _html(text: str, status: int) -> web.Response:
    body = text.encode(errors="replace")
    return web.Response(body=body, status=status, headers={"Content-Type": "text/html; charset=utf-8"})
