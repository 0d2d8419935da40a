"""Browsers that were let in, and codes that let in once."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from stromboli.cli.dashboard.viewers import browser_sessions
from stromboli.cli.dashboard.viewers.browser_sessions import SESSION_SECONDS, BrowserSessions
from stromboli.cli.dashboard.viewers.one_time_code import OneTimeCode
from tests.kube.fake_api import Clock


class Story:
    """Sessions, and browsers as the cookies that they were given."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.sessions: BrowserSessions[str] = BrowserSessions("cookie", self.clock)

    def admit(self, name: str, peer: str = "10.0.0.7", secure: bool = False) -> web.Request:
        response = web.Response()
        self.sessions.begin(_request(peer), name, name, response, secure)
        (cookie,) = response.cookies.values()
        return _request(peer, cookie.OutputString())


def _request(peer: str, cookie: str = "") -> web.Request:
    transport = Mock()
    transport.get_extra_info = lambda name, default=None: (peer, 1234) if name == "peername" else default
    return make_mocked_request("GET", "/", {"Cookie": cookie}, transport=transport)


def test_a_browser_is_known_by_its_cookie_alone() -> None:
    story = Story()
    ann, bob = story.admit("ann"), story.admit("bob")
    assert (story.sessions.find(ann), story.sessions.find(bob)) == ("ann", "bob")
    assert story.sessions.find(make_mocked_request("GET", "/")) is None
    assert story.sessions.find(make_mocked_request("GET", "/", {"Cookie": "cookie="})) is None
    assert story.sessions.find(make_mocked_request("GET", "/?cookie=x", {"Cookie": "cookie=x"})) is None


def test_cookies_cannot_be_guessed() -> None:
    story = Story()
    given = {story.admit("ann").cookies["cookie"] for _ in range(100)}
    assert len(given) == 100
    assert min(map(len, given)) >= 43


def test_the_browser_that_was_used_least_recently_goes_for_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_sessions, "MOST_SESSIONS", 2)
    story = Story()
    ann, bob = story.admit("ann"), story.admit("bob")
    story.sessions.find(ann)
    story.admit("cid")
    assert story.sessions.holders == {"ann", "cid"}
    assert story.sessions.find(bob) is None
    assert story.sessions.find(ann) == "ann"


def test_a_session_ends_when_it_is_left_or_not_used() -> None:
    story = Story()
    ann, bob = story.admit("ann"), story.admit("bob")
    response = web.Response()
    story.sessions.end(ann, response)
    assert (story.sessions.find(ann), story.sessions.holders) == (None, {"bob"})
    assert response.cookies["cookie"]["max-age"] in (0, "0")
    story.sessions.end(ann, web.Response())
    assert story.sessions.find(bob) == "bob"
    story.clock.now += SESSION_SECONDS + 1
    assert story.sessions.find(bob) is None


def test_the_sessions_of_one_owner_take_no_room_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_sessions, "MOST_OWN_SESSIONS", 2)
    monkeypatch.setattr(browser_sessions, "MOST_SESSIONS", 3)
    story = Story()
    ann = story.admit("ann")
    greedy = [story.admit("greedy") for _ in range(5)]
    assert story.sessions.find(ann) == "ann"
    assert [story.sessions.find(each) for each in greedy] == [None, None, None, "greedy", "greedy"]


def test_a_cookie_that_was_given_over_loopback_is_worth_nothing_over_a_network() -> None:
    story = Story()
    cookie = story.admit("ann", "127.0.0.1").headers["Cookie"]
    assert story.sessions.find(_request("10.0.0.7", cookie)) is None
    assert story.sessions.find(_request("127.0.0.1", cookie)) == "ann"
    assert story.sessions.find(_request("::1", cookie)) == "ann"


def test_over_tls_nobody_but_this_host_can_set_the_cookie() -> None:
    story = Story()
    request = story.admit("ann", secure=True)
    assert request.headers["Cookie"].startswith("__Host-cookie=")
    assert {"Secure", "Path=/", "HttpOnly"} <= set(request.headers["Cookie"].split("; "))
    assert "Domain" not in request.headers["Cookie"]
    assert story.sessions.find(request) == "ann"


def test_sessions_that_nobody_uses_are_swept_though_nobody_asks() -> None:
    story = Story()
    story.admit("ann")
    story.clock.now += SESSION_SECONDS - 1
    bob = story.admit("bob")
    story.clock.now += 2
    story.sessions.sweep()
    assert story.sessions.holders == {"bob"}
    assert story.sessions.find(bob) == "bob"


def test_a_code_lets_in_once_and_then_there_is_another() -> None:
    told: list[str] = []
    code = OneTimeCode(told.append)
    first = code.current
    for wrong in ("", first[:-1], first + "x", first.upper(), "\udcff", "ü"):
        assert not code.use(wrong)
    assert (code.current, told) == (first, [])
    assert code.use(first)
    assert not code.use(first)
    assert told == [code.current]
    assert code.current != first
    assert len(first) >= 32
