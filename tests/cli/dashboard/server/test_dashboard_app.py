"""The dashboard over HTTP: who gets in, where he is led, and what is too much or no address at all."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.dashboard.actions.action_routes import ActionRoute
from stromboli.cli.dashboard.pages.page_content import NotThere, PageContent, PageRoute, ViewRequest
from stromboli.cli.dashboard.server import dashboard_app, live_pages
from stromboli.cli.dashboard.server.page_addresses import LONGEST_ADDRESS, LONGEST_VALUE, MOST_PARAMETERS
from stromboli.kube.request import ApiError, NoResponse
from stromboli.simulator.reports.page.markup import Markup, element
from tests.cli.dashboard.served_dashboard import FORM, SAME_ORIGIN, Browser, Response, dashboard
from tests.raw_http import GARBAGE, exchange, status_of
from tests.serving import CERTIFICATE

MARKER = "sesame-queue"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


async def _title(request: ViewRequest) -> PageContent:
    return PageContent("A page", {"body": element("p", request.path, class_="path")})


async def _broken(request: ViewRequest) -> PageContent:
    failures: dict[str, Exception] = {
        "not-there": NotThere("job a/<b> does not exist"),
        "cluster": ClusterError("no such <thing>"),
        "forbidden": ApiError(403, "Forbidden", 'User "ann" cannot get resource "pods" in API group ""'),
        "conflict": ApiError(409, "Conflict", "the object <b> has changed"),
        "silent": NoResponse("nobody at <b>"),
        "bug": ZeroDivisionError("a secret of the server"),
    }
    raise failures[request.names["how"]]


async def _hang(_: ViewRequest) -> PageContent:
    await asyncio.sleep(60)
    raise AssertionError


async def _perform(request: ViewRequest, form: Mapping[str, str]) -> str:
    if "how" in form:
        await _broken(ViewRequest(**{**_fields(request), "names": {"how": form["how"]}}))
    return "/queues"


def _fields(request: ViewRequest) -> dict[str, object]:
    return {name: getattr(request, name) for name in ViewRequest.__slots__}


@pytest.fixture(autouse=True)
def _pages(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = (
        PageRoute("/", _title, "overview"),
        PageRoute("/queues", _title, "queues"),
        PageRoute("/queues/{queue}", _title, "queues"),
        PageRoute("/broken/{how}", _broken, ""),
        PageRoute("/hang", _hang, ""),
    )
    monkeypatch.setattr(dashboard_app, "PAGES", pages)
    monkeypatch.setattr(dashboard_app, "ACTIONS", (ActionRoute("/act/{name}", _title, _perform),))


# -- who gets in


def test_the_code_lets_one_browser_in_and_leaves_the_address(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            assert board.code is not None
            code, browser = board.code.current, board.browser()
            response = await browser.get(f"/queues/a?x=1&code={code}&y=%3Cb%3E")
            assert (response.status, response.headers["Location"]) == (303, "/queues/a?x=1&y=%3Cb%3E")
            (cookie,) = response.cookies.values()
            assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
            assert "Secure" not in cookie
            assert "Domain" not in cookie
            assert code not in cookie
            browser.accept(response)
            page = await browser.get("/queues/a?x=1")
            assert page.status == 200
            assert code not in page.text

            other = board.browser()
            again = await other.get(f"/?code={code}")
            assert (again.status, again.cookies) == (401, {})
            assert "used before" in again.text
            assert (await browser.get(f"/queues?code={code}")).headers["Location"] == "/queues"
            assert board.code.current != code
            assert (await other.get(f"/?code={board.code.current}")).status == 303

    asyncio.run(story())


def test_over_tls_the_cookie_is_sent_over_tls_alone(tmp_path: Path) -> None:
    async def story() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE)
        async with dashboard(tmp_path, tls=context) as board:
            assert board.code is not None
            response = await board.browser().get(f"/?code={board.code.current}")
            (cookie,) = response.cookies.values()
            assert {"HttpOnly", "Secure"} <= set(cookie.split("; "))

    asyncio.run(story())


def test_who_is_not_known_learns_nothing_of_the_cluster(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            await board.api.post(QUEUES, {"metadata": {"name": MARKER}, "spec": {"weight": 1}})
            browser = await board.admitted()
            name = browser.cookies.partition("=")[0]
            wrong = ("", f"{name}=", f"{name}=x", f"{name}={'x' * 4000}", f"{name}=\xff", f"other={name}")
            for cookies in (*wrong, browser.cookies[:-1], browser.cookies + "x"):
                for path in ("/", "/queues", f"/queues/{MARKER}", "/act/x", "/live?view=/", "/nonsense"):
                    answer = await board.browser(cookies).get(path)
                    assert answer.status == 401, (cookies, path)
                    assert str(board.api.server.url) not in answer.text
                    assert str(tmp_path) not in answer.text
                refused = await board.browser(cookies).post("/act/x", "a=b")
                assert refused.status == 401

    asyncio.run(story())


def test_who_leaves_is_not_known_any_more(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser, other = await board.admitted(), await board.admitted()
            left = await browser.post("/leave")
            assert (left.status, left.headers["Location"]) == (303, "/")
            assert "Max-Age=0" in "".join(left.cookies.values())
            assert (await browser.get("/")).status == 401
            assert (await other.get("/")).status == 200

    asyncio.run(story())


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/",
        "//evil.example",
        "/\\evil.example/",
        "/%5Cevil.example/",
        "/%09/evil.example/",
        "/%2F%2Fevil.example/",
        "///evil.example",
        "/@evil.example/",
        "/.//evil.example",
        "/%0d%0aLocation:%20http://evil.example/",
    ],
)
def test_nobody_is_led_to_another_host(tmp_path: Path, path: str) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            assert board.code is not None
            line = f"GET {path}?code={board.code.current} HTTP/1.1\r\n"
            rest = f"Host: 127.0.0.1:{board.port}\r\nConnection: close\r\n\r\n"
            answer = await exchange(board.port, (line + rest).encode())
            assert status_of(answer) in (303, 400, 404)
            for target in re.findall(rb"(?im)^location: *(.*?)\r$", answer):
                _check_own(target.decode())

    asyncio.run(story())


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "http://evil.example/",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n/evil.example",
        "/\r\nSet-Cookie: a=b",
        "\t//evil.example",
        " //evil.example",
        "/" + "x" * 70_000,
        "",
    ],
)
def test_a_form_leads_to_our_own_pages_alone(target: str) -> None:
    address = dashboard_app._own_address(target)
    _check_own(address)
    assert address == "/"


def test_where_somebody_wanted_to_go_is_kept() -> None:
    assert dashboard_app._own_address("/jobs?q=a%20b&page=2") == "/jobs?q=a%20b&page=2"


def _check_own(target: str) -> None:
    """As browsers read it: tabs and line ends are left out, a backslash is a slash."""
    read = re.sub(r"[\t\r\n]", "", target).replace("\\", "/")
    assert read.startswith("/"), target
    assert not read.startswith("//"), target


# -- addresses, methods and bodies


async def _statuses(browser: Browser, *addresses: str) -> set[int]:
    return {(await browser.get(address)).status for address in addresses}


def test_addresses_that_lead_nowhere_are_told_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            hostile = (
                "..",
                "%2e%2e",
                "a%2Fb",
                "a%252Fb",
                "%00",
                "%ff%fe",
                "A",
                "a_b",
                "-",
                "<script>",
                "%3Cscript%3E",
                "x" * 300,
                "%F0%9F%92%A5",
                "a%0d%0ab",
                "a;b",
                "a'b",
            )
            for name in hostile:
                answer = await browser.get(f"/queues/{name}")
                assert answer.status in (404, 200 if name in ("..", "%2e%2e") else 404), name
                assert "<script>" not in answer.text
            assert (await browser.get("/queues/a.b-c")).status == 200
            nowhere = (
                "/queues/",
                "/queues/a/b",
                "//queues/a/b",
                "/QUEUES",
                "/act",
                "/act/a/b",
                "/.git/config",
            )
            assert await _statuses(browser, *nowhere) == {404}

    asyncio.run(story())


def test_addresses_are_bounded(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            many = "&".join(f"p{number}=1" for number in range(MOST_PARAMETERS))
            assert (await browser.get(f"/queues?{many}")).status == 200
            assert (await browser.get(f"/queues?{many}&more=1")).status == 404
            assert (await browser.get(f"/queues?q={'x' * LONGEST_VALUE}")).status == 200
            assert (await browser.get(f"/queues?q={'x' * (LONGEST_VALUE + 1)}")).status == 404
            values = "&".join(f"p{number}={'x' * 400}" for number in range(1 + LONGEST_ADDRESS // 400))
            assert (await browser.get(f"/queues?{values}")).status == 404
            assert (
                await browser.get(f"/live?view={quote('/queues?' + many + '&more=1', safe='')}")
            ).status == 404
            assert (await browser.get(f"/queues?{'x' * 50_000}")).status == 400
            assert (await browser.get("/queues?q=%ff&%00=%0d%0a&=&a")).status == 200

    asyncio.run(story())


def test_head_says_what_get_would_and_never_follows(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            head, get = await browser.request("HEAD", "/queues"), await browser.get("/queues")
            assert (head.status, head.text) == (200, "")
            assert head.headers["Content-Type"] == get.headers["Content-Type"]
            async with asyncio.timeout(5):
                assert (await browser.request("HEAD", "/live?view=/")).status == 404

    asyncio.run(story())


def test_methods_that_nobody_uses_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
                for address in ("/", "/healthz", "/live", "/login"):
                    answer = await browser.request(method, address, SAME_ORIGIN)
                    assert answer.status == 405, (method, address)
                    assert "GET" in answer.headers["Allow"]

    asyncio.run(story())


def test_forms_are_bounded_and_of_one_kind(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x", "nonsense"):
                answer = await browser.post("/act/x", '{"a": 1}', Content_Type=kind)
                assert answer.status == 415, kind
            assert (await browser.post("/act/x", "a=" + "x" * 60_000)).status == 303
            assert (await browser.post("/act/x", "a=" + "x" * 70_000)).status == 413
            fields = "&".join(f"f{number}=1" for number in range(8000))
            assert (await browser.post("/act/x", fields)).status in (303, 413)
            for body in ("%ff=%fe", "=&=&==", "\x00", "a=%00"):
                assert (await browser.post("/act/x", body)).status == 303
            odd = "application/x-www-form-urlencoded; charset="
            for charset in ("nonsense", "utf-7", "rot13", "utf-16", "idna", "undefined", "base64"):
                answer = await browser.post("/act/x", "a=é%ff", Content_Type=odd + charset)
                assert answer.status in (303, 400), charset
            assert (await browser.request("POST", "/act/x", {**SAME_ORIGIN, **FORM})).status == 303

    asyncio.run(story())


def test_what_is_no_http_harms_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            for garbage in GARBAGE:
                answer = await exchange(board.port, garbage)
                assert status_of(answer) in (0, 200, 400, 413, 414, 431, 505), garbage
                assert b"text/html" not in answer
            assert (await browser.get("/queues")).status == 200

    asyncio.run(story())


# -- pages that cannot be shown


@pytest.mark.parametrize(
    ("how", "status", "told"),
    [
        ("not-there", 404, "job a/&lt;b> does not exist"),
        ("cluster", 404, "no such &lt;thing>"),
        ("forbidden", 403, "may not get pods"),
        ("conflict", 502, "the object &lt;b> has changed"),
        ("silent", 502, "nobody at &lt;b>"),
        ("bug", 500, "The log of the dashboard says more"),
    ],
)
def test_a_page_that_fails_says_why_and_the_next_is_shown(
    tmp_path: Path, how: str, status: int, told: str
) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            page = await browser.get(f"/broken/{how}")
            assert page.status == status
            assert told in page.text.replace("&gt;", ">")
            assert "secret of the server" not in page.text
            assert 'aria-label="pages of the dashboard"' in page.text
            refused = await browser.post("/act/x", f"how={how}")
            assert refused.status in (400, 404, 500)
            assert told.partition(" ")[0] in refused.text or refused.status == 500
            assert "secret of the server" not in refused.text
            assert (await browser.get("/queues")).status == 200

    asyncio.run(story())


def test_a_page_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> Response:
        async with dashboard(tmp_path) as board:
            return await (await board.admitted()).get("/hang")

    monkeypatch.setattr(live_pages, "LONGEST_RENDER", 0.1)
    page = asyncio.run(story())
    assert page.status == 504
    assert "does not answer" in page.text


def test_a_page_that_is_more_than_text_is_sent_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def odd(_: ViewRequest) -> PageContent:
        return PageContent("\ud800 odd", {"a": element("p", "\udcff \x00 </p>"), "b": Markup("")})

    async def story() -> Response:
        async with dashboard(tmp_path) as board:
            return await (await board.admitted()).get("/")

    monkeypatch.setattr(dashboard_app, "PAGES", (PageRoute("/", odd, "overview"),))
    page = asyncio.run(story())
    assert page.status == 200
    assert "&lt;/p" in page.text
