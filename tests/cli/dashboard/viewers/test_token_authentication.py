"""Viewers by token: how they are known, for how long, and how many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from stromboli.cli.dashboard.viewers import token_authentication
from stromboli.cli.dashboard.viewers.browser_sessions import SESSION_SECONDS
from stromboli.cli.dashboard.viewers.token_authentication import (
    LONGEST_TOKEN,
    PROXIED_SECONDS,
    REVIEWED_SECONDS,
    TRUSTED_SECONDS,
    TokenAuthentication,
)
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.viewers.viewer_authentication import NotAdmitted
from stromboli.cli.dashboard.viewers.viewer_rights import REFUSED_SECONDS
from stromboli.kube.request import NoResponse
from tests.cli.dashboard.served_dashboard import Dashboard, dashboard
from tests.cli.dashboard.two_teams import OTHER_TEAM, TEAM, WORKLOADS, grant, populate, rule, token_of
from tests.kube.fake_api import Clock

COOKIE = "cookie"
ADDRESS = "https://10.9.8.7:6443"
Story = Callable[[Dashboard], Awaitable[None]]


def on_dashboard(folder: Path, story: Story) -> None:
    async def run() -> None:
        async with dashboard(folder, by_token=True) as board:
            await story(board)

    asyncio.run(run())


@asynccontextmanager
async def authentication(board: Dashboard, clock: Clock) -> AsyncIterator[TokenAuthentication]:
    """By a clock of the test."""
    tokens = TokenAuthentication(board.server.cluster, COOKIE, clock)
    yield tokens
    await tokens.close()


async def viewer_of(tokens: TokenAuthentication, token: str) -> Viewer | None:
    return await tokens.viewer(make_mocked_request("GET", "/", {"Authorization": f"Bearer {token}"}))


# -- over HTTP


def test_a_token_lets_its_user_in_and_stands_in_no_cookie(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        token = await token_of(board.api, "ann")
        login = await board.browser().get("/jobs?q=a")
        assert login.status == 401
        assert 'name="next" value="/jobs?q=a"' in login.text
        assert 'type="password"' in login.text
        browser = board.browser()
        response = await browser.post("/login", f"token=+{token}%0A&next=%2Fjobs%3Fq%3Da")
        assert (response.status, response.headers["Location"]) == (303, "/jobs?q=a")
        (cookie,) = response.cookies.values()
        assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
        assert token not in str(response)
        browser.accept(response)
        page = await browser.get("/jobs")
        assert page.status == 200
        assert "system:serviceaccount:default:ann" in page.text
        assert token not in page.text
        await browser.post("/leave")
        assert (await browser.get("/jobs")).status == 401

    on_dashboard(tmp_path, story)


def test_behind_a_proxy_that_speaks_tls_the_cookie_is_sent_over_tls_alone(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        token = await token_of(board.api, "ann")
        response = await board.browser().post("/login", f"token={token}", X_Forwarded_Proto="https")
        assert "Secure" in "".join(response.cookies.values())

    on_dashboard(tmp_path, story)


def test_a_proxy_may_send_the_token_with_every_request(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        token = await token_of(board.api, "ann")
        browser = board.browser()
        for scheme in ("Bearer", "bearer", "BEARER"):
            page = await browser.get("/", Authorization=f"{scheme} {token}")
            assert (page.status, page.cookies) == (200, {})
        async with browser.events("/jobs", Authorization=f"Bearer {token}") as events:
            assert events.status == 200
        known = await board.logged_in(token)
        assert (await known.get("/", Authorization="Bearer wrong")).status == 401, "the header is what counts"
        assert (await known.get("/", Authorization="Basic YTpi")).status == 200

    on_dashboard(tmp_path, story)


def test_a_wrong_token_lets_nobody_in(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        token = await token_of(board.api, "ann")
        for wrong in (
            "",
            "x",
            token[:-2],
            token + "x",
            "x" * (LONGEST_TOKEN + 1),
            "%00",
            "%F0%9F%92%A5",
            "a+b",
        ):
            refused = await board.browser().post("/login", f"token={wrong}&next=/jobs")
            assert (refused.status, refused.cookies) == (401, {}), wrong
            assert 'name="next" value="/jobs"' in refused.text, "he need not look for his page again"
            assert str(board.api.server.url) not in refused.text
        assert (await board.browser().get("/?code=x")).status == 401
        assert "Many others" not in refused.text

    on_dashboard(tmp_path, story)


def test_if_the_api_server_does_not_answer_nobody_is_let_in_and_nothing_is_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(*_: object) -> None:
        raise NoResponse(f"POST {ADDRESS}/tokenreviews: connection refused")

    async def story(board: Dashboard) -> None:
        browser = await board.logged_in(await token_of(board.api, "ann"))
        monkeypatch.setattr(token_authentication, "review_token", nobody)
        for page in (
            await browser.get("/", Authorization="Bearer another"),
            await browser.get("/live?view=/", Authorization="Bearer another"),
            await browser.post("/login", "token=another"),
        ):
            assert page.status in (401, 503)
            assert "The API server does not say who you are" in page.text
            assert ADDRESS not in page.text
        assert (await browser.get("/")).status == 200, "he was known a moment ago"

    on_dashboard(tmp_path, story)


# -- by a clock


def test_what_a_viewer_may_see_is_asked_for_again_after_a_while(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        await populate(board.api)
        token, clock = await token_of(board.api, "ann"), Clock()
        async with authentication(board, clock) as tokens:
            before = await viewer_of(tokens, token)
            assert before is not None
            assert before.visibility.namespaces["pods"] == frozenset()
            binding = await grant(board.api, "ann", rule("list", *WORKLOADS), namespace=TEAM)
            clock.now += REVIEWED_SECONDS - 1
            assert await viewer_of(tokens, token) is before
            clock.now += REFUSED_SECONDS
            after = await viewer_of(tokens, token)
            assert after is not None
            assert after.visibility.namespaces["pods"] == frozenset({TEAM})
            assert after.session is before.session
            await board.api.delete(binding)
            clock.now += REVIEWED_SECONDS + 1
            assert (await viewer_of(tokens, token) or before).visibility == before.visibility
            await board.api.delete("/api/v1/namespaces/default/serviceaccounts/ann")
            clock.now += REVIEWED_SECONDS - 2
            assert await viewer_of(tokens, token) is not None
            clock.now += 3
            assert await viewer_of(tokens, token) is None

    on_dashboard(tmp_path, story)


def test_who_logs_in_again_has_new_rights_at_once(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        await populate(board.api)
        token = await token_of(board.api, "ann")
        async with authentication(board, Clock()) as tokens:
            assert await viewer_of(tokens, token) is not None
            await grant(board.api, "ann", rule("list", *WORKLOADS), namespace=TEAM)
            await tokens.admit(make_mocked_request("POST", "/login"), token, web.Response())
            viewer = await viewer_of(tokens, token)
            assert viewer is not None
            assert viewer.visibility.namespaces["pods"] == frozenset({TEAM})

    on_dashboard(tmp_path, story)


def test_tokens_are_forgotten_with_their_last_browser(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        token, clock = await token_of(board.api, "ann"), Clock()
        async with authentication(board, clock) as tokens:
            browsers = [web.Response(), web.Response()]
            for response in browsers:
                await tokens.admit(make_mocked_request("POST", "/login"), token, response)
            cookies = [response.cookies[COOKIE].OutputString() for response in browsers]
            requests = [make_mocked_request("GET", "/", {"Cookie": cookie}) for cookie in cookies]
            await tokens.leave(requests[0], web.Response())
            assert tokens.token_count == 1
            await tokens.leave(requests[1], web.Response())
            assert tokens.token_count == 0
            await viewer_of(tokens, token)
            await tokens.sweep()
            assert tokens.token_count == 1, "a proxy sends it again soon"
            clock.now += PROXIED_SECONDS + 1
            await tokens.sweep()
            assert tokens.token_count == 0

    on_dashboard(tmp_path, story)


def test_a_viewer_has_no_files_of_this_machine(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        async with authentication(board, Clock()) as tokens:
            viewer = await viewer_of(tokens, await token_of(board.api, "ann"))
            assert viewer is not None
            assert viewer.session.running is None

    on_dashboard(tmp_path, story)


def test_who_was_known_a_moment_ago_stays_while_the_api_server_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(*_: object) -> None:
        raise NoResponse("refused")

    async def story(board: Dashboard) -> None:
        token, clock = await token_of(board.api, "ann"), Clock()
        async with authentication(board, clock) as tokens:
            viewer = await viewer_of(tokens, token)
            monkeypatch.setattr(token_authentication, "review_token", nobody)
            clock.now += TRUSTED_SECONDS - 1
            assert await viewer_of(tokens, token) is viewer
            clock.now += 2
            with pytest.raises(NotAdmitted):
                await viewer_of(tokens, token)

    on_dashboard(tmp_path, story)


def test_rights_are_by_kind_and_namespace(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        await populate(board.api)
        async with authentication(board, Clock()) as tokens:
            mixed = await token_of(board.api, "mixed")
            await grant(board.api, "mixed", rule("list", "pods"), namespace=OTHER_TEAM)
            await grant(board.api, "mixed", rule("list", "nodes", "jobs.batch.volcano.sh"))
            viewer = await viewer_of(tokens, mixed)
            assert viewer is not None
            seen = viewer.visibility
            assert seen.hidden == {"queues", "hypernodes"}
            assert seen.namespaces == {
                "pods": frozenset({OTHER_TEAM}),
                "podgroups": frozenset(),
                "events": frozenset(),
            }
            administrator = await viewer_of(tokens, board.api.server.token)
            assert administrator is not None
            assert administrator.visibility.is_complete

    on_dashboard(tmp_path, story)


def test_a_browser_that_asks_for_nothing_for_long_is_forgotten(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        token, clock = await token_of(board.api, "ann"), Clock()
        async with authentication(board, clock) as tokens:
            response = web.Response()
            await tokens.admit(make_mocked_request("POST", "/login"), token, response)
            request = make_mocked_request("GET", "/", {"Cookie": response.cookies[COOKIE].OutputString()})
            clock.now += SESSION_SECONDS - 1
            assert await tokens.viewer(request) is not None
            clock.now += SESSION_SECONDS - 1
            assert await tokens.viewer(request) is not None
            clock.now += SESSION_SECONDS + 1
            assert await tokens.viewer(request) is None
            clock.now -= SESSION_SECONDS
            assert await tokens.viewer(request) is None

    on_dashboard(tmp_path, story)


def test_viewers_are_bounded_and_wrong_tokens_push_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        good = [await token_of(board.api, name) for name in ("ann", "bob", "cid")]
        async with authentication(board, Clock()) as tokens:
            first = await viewer_of(tokens, good[0])
            for number in range(10):
                assert await viewer_of(tokens, f"wrong-{number}") is None
            assert await viewer_of(tokens, good[0]) is first
            assert len(tokens._holders) == 1
            for token in good[1:]:
                assert await viewer_of(tokens, token) is not None
            assert len(tokens._holders) == 2
            assert not tokens._reviewed
            again = await viewer_of(tokens, good[0])
            assert again is not None
            assert again is not first

    monkeypatch.setattr(token_authentication, "MOST_TOKENS", 2)
    on_dashboard(tmp_path, story)


def test_only_so_many_unknown_tokens_are_reviewed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(board: Dashboard) -> None:
        good = await token_of(board.api, "ann")
        async with authentication(board, Clock()) as tokens:
            known = await viewer_of(tokens, good)
            asking = [viewer_of(tokens, f"wrong-{number}") for number in range(20)]
            answers = await asyncio.gather(*asking, viewer_of(tokens, good), return_exceptions=True)
            assert answers[-1] is known
            refused = [each for each in answers if isinstance(each, NotAdmitted)]
            assert len(refused) == 16
            assert await viewer_of(tokens, "wrong-19") is None

    monkeypatch.setattr(token_authentication, "MOST_REVIEWED", 4)
    on_dashboard(tmp_path, story)


def test_many_requests_with_a_new_token_are_one_review(tmp_path: Path) -> None:
    async def story(board: Dashboard) -> None:
        good = await token_of(board.api, "ann")
        async with authentication(board, Clock()) as tokens:
            viewers = await asyncio.gather(*(viewer_of(tokens, good) for _ in range(20)))
            assert len({id(viewer) for viewer in viewers}) == 1

    on_dashboard(tmp_path, story)
