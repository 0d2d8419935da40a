"""Endpoints that ask for rights: the API server knows the user of a token, and what the user may do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from stromboli.daemon.delegated_authorization import (
    MOST_REMEMBERED,
    MOST_REVIEWS,
    REMEMBERED_FOR,
    DelegatedAuthorization,
)
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access, find_access
from stromboli.kube.request import ApiError
from tests.embedded.api_requests import ApiCaller, running
from tests.kube.fake_api import Clock, FakeApi

KNOWN = b'{"status": {"authenticated": true, "user": {"username": "ann", "groups": ["g"], "uid": ""}}}'
ALLOWED = b'{"status": {"allowed": true}}'
ROLES = "/apis/rbac.authorization.k8s.io/v1"


async def _work(_: web.Request) -> web.Response:
    return web.Response(text="dumped")


@asynccontextmanager
async def guarded(api: Any, clock: Clock | None = None) -> AsyncIterator[TestClient[web.Request, Any]]:
    """A server whose one endpoint asks for rights."""
    authorization = DelegatedAuthorization(api, clock or Clock())
    app = web.Application()
    app.router.add_post("/debug/dump", authorization.required(_work))
    async with TestClient(TestServer(app)) as client:
        yield client


async def ask(client: TestClient[web.Request, Any], token: str | None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with client.post("/debug/dump", headers=headers) as response:
        return response.status, await response.text()


def _access(api: ApiCaller, folder: Path, token: str = "") -> Access:
    """As the administrator, or with a token."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(api.server.kubeconfig(token)))
    return find_access(str(kubeconfig))


async def _account(api: ApiCaller, name: str) -> str:
    """A new service account's token."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await api.post(accounts, {"metadata": {"name": name}})
    token: str = (await api.post(f"{accounts}/{name}/token", {"spec": {}}))["status"]["token"]
    return token


async def _grant(api: ApiCaller, account: str, verb: str) -> None:
    rules = [{"nonResourceURLs": ["/debug/*"], "verbs": [verb]}]
    await api.post(f"{ROLES}/clusterroles", {"metadata": {"name": account}, "rules": rules})
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": account}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    binding = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
    await api.post(f"{ROLES}/clusterrolebindings", binding)


def test_who_has_no_right_on_the_path_is_refused_by_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as api:
            nobody, reader, debugger = [
                await _account(api, name) for name in ("nobody", "reader", "debugger")
            ]
            await _grant(api, "reader", "get")
            await _grant(api, "debugger", "post")
            async with Client(_access(api, tmp_path)) as client, guarded(client) as endpoint:
                assert (await ask(endpoint, None))[0] == 401
                assert (await ask(endpoint, ""))[0] == 401
                assert (await ask(endpoint, "unknown"))[0] == 401
                for token in (nobody, reader):
                    status, text = await ask(endpoint, token)
                    assert status == 403
                    assert 'cannot post path \\"/debug/dump\\"' in text
                assert "system:serviceaccount:default:nobody" in (await ask(endpoint, nobody))[1]
                assert await ask(endpoint, debugger) == (200, "dumped")
                assert await ask(endpoint, api.server.token) == (200, "dumped")

    asyncio.run(story())


def test_without_the_right_to_ask_the_way_out_is_said(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as api:
            access = _access(api, tmp_path, await _account(api, "powerless"))
            async with Client(access) as client, guarded(client) as endpoint:
                status, text = await ask(endpoint, api.server.token)
                assert status == 503
                assert "deploy/components/debug-endpoints" in text

    asyncio.run(story())


def test_an_answer_is_used_again_for_a_while() -> None:
    async def story() -> None:
        api, clock = FakeApi([KNOWN, ALLOWED, KNOWN, b'{"status": {}}']), Clock()
        async with guarded(api, clock) as endpoint:
            assert [(await ask(endpoint, "t"))[0] for _ in range(3)] == [200] * 3
            assert len(api.requests) == 2
            clock.now += REMEMBERED_FOR + 1
            assert [(await ask(endpoint, "t"))[0] for _ in range(3)] == [403] * 3
            assert len(api.requests) == 4

    asyncio.run(story())


def test_few_answers_are_remembered() -> None:
    async def story() -> None:
        api = FakeApi()
        authorization = DelegatedAuthorization(api)  # type: ignore[arg-type]
        for number in range(MOST_REMEMBERED + 10):
            request = _request({"Authorization": f"Bearer {number}"})
            refusal = await authorization.refusal(request)
            assert refusal is not None
            assert refusal.status == 401
        assert len(authorization._remembered) == MOST_REMEMBERED

    asyncio.run(story())


def test_many_unknown_tokens_at_once_are_not_all_passed_on() -> None:
    async def story() -> None:
        api = FakeApi()
        api.delay = 0.2
        async with guarded(api) as endpoint:
            asked = [ask(endpoint, f"guess-{number}") for number in range(MOST_REVIEWS + 6)]
            statuses = [status for status, _ in await asyncio.gather(*asked)]
        assert sorted(statuses) == [401] * MOST_REVIEWS + [429] * 6
        assert api.most_at_once == MOST_REVIEWS

    asyncio.run(story())


@pytest.mark.parametrize("answer", [ApiError(403, message="forbidden"), b"no JSON"])
def test_an_answer_that_does_not_come_is_no_right_and_is_not_remembered(answer: bytes | Exception) -> None:
    async def story() -> None:
        async with guarded(FakeApi([answer, KNOWN, ALLOWED])) as endpoint:
            assert (await ask(endpoint, "t"))[0] == 503
            assert (await ask(endpoint, "t"))[0] == 200

    asyncio.run(story())


def test_the_review_carries_all_that_the_user_is() -> None:
    async def story() -> None:
        api = FakeApi([KNOWN, ALLOWED])
        async with guarded(api) as endpoint:
            assert (await ask(endpoint, "t"))[0] == 200
        assert api.requests[0].body is not None
        assert b'"spec":{"token":"t"}' in api.requests[0].body
        assert api.requests[1].body is not None
        assert (
            b'"spec":{"user":"ann","groups":["g"],"nonResourceAttributes":{"path":"/debug/dump","verb":"post"}}'
            in api.requests[1].body
        )

    asyncio.run(story())


@pytest.mark.parametrize("token", [b"t\x80", "té".encode()])
def test_a_token_that_is_no_text_is_none(token: bytes) -> None:
    async def story() -> None:
        async with guarded(FakeApi()) as endpoint:
            reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
            writer.write(b"POST /debug/dump HTTP/1.0\r\nAuthorization: Bearer " + token + b"\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.0 401")
            writer.close()

    asyncio.run(story())


@pytest.mark.parametrize(("address", "status"), [("10.0.0.1", 403), ("2001:db8::1", 403), ("::1", 401)])
def test_tokens_are_taken_over_loopback_alone(address: str, status: int) -> None:
    async def story() -> None:
        refusal = await DelegatedAuthorization(FakeApi()).refusal(_request({}, address))  # type: ignore[arg-type]
        assert refusal is not None
        assert refusal.status == status

    asyncio.run(story())


def _request(headers: dict[str, str], address: str = "127.0.0.1") -> web.Request:
    transport = SimpleNamespace(get_extra_info=lambda key, default=None: {"peername": (address, 1)}.get(key))
    return make_mocked_request("POST", "/debug/dump", headers=headers, transport=transport)
