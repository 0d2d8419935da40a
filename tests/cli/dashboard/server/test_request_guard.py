"""Which requests the dashboard answers, and what its responses let a page of another site do: nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.cli.dashboard.server.request_guard import HEADERS
from tests.cli.dashboard.served_dashboard import Dashboard, dashboard
from tests.raw_http import exchange, status_of

ADDRESSES = ("/", "/queues", "/jobs", "/nodes", "/queues/none", "/no/such/page", "/assets/none", "/healthz")


def test_a_server_that_is_called_by_a_name_of_somebody_else_answers_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path, allowed_hosts=("board.example:8443",)) as board:
            browser = await board.admitted()
            ours = (f"127.0.0.1:{board.port}", f"localhost:{board.port}", f"LocalHost:{board.port}")
            for host in (*ours, "[::1]:1", "127.0.0.1:30000", "localhost", "board.example:8443"):
                assert (await browser.get("/queues", Host=host)).status == 200, host
            others = (
                f"evil.example:{board.port}",
                "board.example",
                "board.example:9",
                f"localhost.evil.example:{board.port}",
                f"evil.example:{board.port}@127.0.0.1:{board.port}",
                f"127.0.0.1.evil.example:{board.port}",
                f"localhost.:{board.port}",
                f"10.0.0.1:{board.port}",
                "0.0.0.0",
                "127.0.0.1:",
                "127.0.0.1:123456",
                "",
            )
            for host in others:
                for path in ("/", "/queues", "/assets/dashboard.js", "/live?view=/"):
                    refused = await browser.get(path, Host=host)
                    assert refused.status == 421, host
                    assert "default" not in refused.text
            assert "--allowed-host" in refused.text

    asyncio.run(story())


def test_a_request_without_a_host_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            for head in ("GET / HTTP/1.0\r\n", "GET / HTTP/1.1\r\nConnection: close\r\n"):
                assert status_of(await exchange(board.port, f"{head}\r\n".encode())) in (400, 421)
            absolute = f"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:{board.port}\r\nConnection: close\r\n\r\n"
            answer = await exchange(board.port, absolute.encode())
            assert status_of(answer) in (400, 401, 421)

    asyncio.run(story())


def test_what_changes_something_comes_from_a_page_of_ours(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser = await board.admitted()
            here = f"http://127.0.0.1:{board.port}"
            strangers: tuple[dict[str, str], ...] = (
                {},
                {"Sec-Fetch-Site": "cross-site"},
                {"Sec-Fetch-Site": "same-site"},
                {"Sec-Fetch-Site": "none"},
                {"Sec-Fetch-Site": "cross-site", "Origin": here},
                {"Origin": "null"},
                {"Origin": ""},
                {"Origin": "http://127.0.0.1:1"},
                {"Origin": "http://localhost:1"},
                {"Origin": f"http://localhost:{board.port}"},
                {"Origin": "http://evil.example"},
                {"Origin": f"http://evil.example@127.0.0.1:{board.port}"},
                {"Origin": f"{here}.evil.example"},
                {"Referer": here},
            )
            for address in ("/leave", "/login", "/jobs/default/a/suspend", "/healthz", "/"):
                for headers in strangers:
                    assert (await browser.request("POST", address, headers)).status == 403, (address, headers)
            for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
                assert (await browser.request(method, "/")).status == 403
            assert (await browser.get("/")).status == 200, "nobody has let it out"
            for headers in ({"Origin": here}, {"Sec-Fetch-Site": "same-origin", "Origin": here}):
                assert (await browser.request("POST", "/leave", headers)).status == 303

    asyncio.run(story())


def test_no_response_may_be_framed_kept_or_run_anything_of_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            browser, stranger = await board.admitted(), board.browser()
            responses = [await each.get(path) for each in (browser, stranger) for path in ADDRESSES]
            responses += [
                await stranger.get("/?code=wrong"),
                await browser.get("/", Host="evil.example"),
                await browser.request("POST", "/leave"),
                await browser.post("/leave"),
                await browser.post("/login"),
                await browser.request("PUT", "/", {"Sec-Fetch-Site": "same-origin"}),
                await browser.request("HEAD", "/"),
                await browser.get("/assets/dashboard.css"),
                await browser.get("/live?view=/"),
                await stranger.get("/live?view=/"),
            ]
            for response in responses:
                _check_headers(response.headers)
            await _check_stream(board)

    asyncio.run(story())


async def _check_stream(board: Dashboard) -> None:
    async with (await board.admitted()).events("/queues") as events:
        assert events.status == 200
        assert events.headers["Content-Type"].startswith("text/event-stream")
        _check_headers(events.headers)


def _check_headers(headers: dict[str, str]) -> None:
    for name, value in HEADERS.items():
        if name != "Cache-Control" or headers.get(name) != "no-cache":  # assets are asked for again
            assert headers.get(name) == value, (name, headers)
    policy = headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("address", ["/healthz", "/healthz?code=x"])
def test_a_probe_needs_no_name_and_learns_nothing(tmp_path: Path, address: str) -> None:
    async def story() -> None:
        async with dashboard(tmp_path) as board:
            answer = await board.browser().get(address, Host="10.1.2.3:7373")
            assert (answer.status, answer.text) == (200, "ok")

    asyncio.run(story())
