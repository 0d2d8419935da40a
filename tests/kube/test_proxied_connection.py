"""Requests and watches by way of an HTTP proxy: the same responses and the same errors as without."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.serving import Asked, Reply, behaving, serving


def by_way_of(proxy: str, story: Any) -> Any:
    async def run() -> Any:
        async with Client(Access("http://api.test:1", proxy=proxy)) as client:
            return await story(client)

    return asyncio.run(run())


async def _watched(client: Client) -> bytes:
    async with client.stream("/watch", 5) as pieces:
        return b"".join([piece async for piece in pieces])


def test_a_proxy_is_asked_for_the_whole_address() -> None:
    def answer(asked: Asked) -> Reply:
        return (403, b'{"reason": "Forbidden"}') if asked.path.endswith("/secret") else b"{}"

    with serving(answer) as proxy:
        assert by_way_of(proxy.url, lambda client: client.send(Request("GET", "/x?a=b"))) == b"{}"
        assert by_way_of(proxy.url, _watched) == b"{}"
        with pytest.raises(ApiError, match="403"):
            by_way_of(proxy.url, lambda client: client.send(Request("GET", "/secret")))
    assert [asked.path for asked in proxy.asked[:2]] == ["http://api.test:1/x?a=b", "http://api.test:1/watch"]


def test_a_proxy_that_breaks_off_is_no_response() -> None:
    with behaving(lambda link, over: link.recv(65536)) as url:
        for story in (lambda client: client.send(Request("GET", "/x")), _watched):
            with pytest.raises(NoResponse):
                by_way_of(url, story)
