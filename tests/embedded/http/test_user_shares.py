"""Every user has a share of the server, and nobody can take those of the others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import ANONYMOUS
from stromboli.embedded.http import user_shares
from stromboli.embedded.http.user_shares import (
    COMPONENTS,
    SeatPool,
    Share,
    UserShares,
    is_privileged,
    share_of,
)
from stromboli.embedded.rbac.policy_rules import User
from tests.embedded.api_requests import PODS, ApiCaller, config_map, running

MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ADMIN = User("admin", ("system:masters",))
SHARE = Share("ann", seats=2, waiting=3, watches=1, connections=3)


async def viewer(api: ApiCaller, name: str = "viewer") -> str:
    """The token of a service account that may read."""
    await api.post(ACCOUNTS, {"metadata": {"name": name}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    await api.post(BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})
    answer = await api.post(f"{ACCOUNTS}/{name}/token", {})
    return str(answer["status"]["token"])


async def watch(stack: AsyncExitStack, session: aiohttp.ClientSession, api: ApiCaller, token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{api.server.url}{PODS}?watch=true"
    response = await stack.enter_async_context(session.get(url, headers=headers))
    stack.callback(response.close)
    return response


def test_a_user_has_so_many_watches_and_the_administrator_still_gets_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_shares, "USER_WATCHES", 3)
    monkeypatch.setattr(user_shares, "SHARED_WATCHES", 5)
    monkeypatch.setattr(user_shares, "MOST_WATCHES", 7)

    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api, AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
            )
            token, same_namespace = await viewer(api), await viewer(api, "second")
            opened = [await watch(stack, session, api, token) for _ in range(4)]
            assert [response.status for response in opened] == [200, 200, 200, 429]
            refusal = await opened[-1].json()
            assert opened[-1].headers["Retry-After"] == "5"
            together = 'the service accounts of namespace "default" together have'
            assert refusal["message"].startswith(f"{together} 3 watches open, and 3 are allowed")
            assert refusal["details"] == {"retryAfterSeconds": 5}
            assert (await watch(stack, session, api, same_namespace)).status == 429
            for _ in range(4):
                assert (await watch(stack, session, api, api.server.token)).status == 200
            assert (await watch(stack, session, api, api.server.token)).status == 429, (
                "the seventh was the last"
            )
            opened[0].close()
            for _ in range(200):
                if (await watch(stack, session, api, token)).status == 200:
                    return
                await asyncio.sleep(0.05)
            raise AssertionError("a watch that is closed makes room")

    asyncio.run(scenario())


def test_a_user_has_so_many_connections_and_the_administrator_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_shares, "USER_CONNECTIONS", 3)

    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api, AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
            )
            token = await viewer(api)
            opened = [await watch(stack, session, api, token) for _ in range(4)]
            assert [response.status for response in opened] == [200, 200, 200, 429]
            assert opened[-1].headers["Connection"] == "close"
            assert "together have 3 connections open" in (await opened[-1].json())["message"]
            for _ in range(4):
                assert (await watch(stack, session, api, api.server.token)).status == 200

    asyncio.run(scenario())


def test_all_users_together_leave_watches_to_administrators_and_components() -> None:
    shares = UserShares()
    with ExitStack() as held:
        for number in range(user_shares.SHARED_WATCHES):
            held.enter_context(shares.watch(User(f"user-{number}")))
        with pytest.raises(StatusError, match='user "late" has 0 watches open, and all users 1500 of 1500'):
            held.enter_context(shares.watch(User("late")))
        for user in (ADMIN, User("node", ("system:nodes",)), *map(User, COMPONENTS)):
            held.enter_context(shares.watch(user))


def test_our_own_components_are_those_of_the_manifests() -> None:
    accounts = set()
    for path in Path("deploy").glob("*/service-account.yaml"):
        account = yaml.safe_load(path.read_text())
        name = account["metadata"]["name"]
        accounts.add(f"system:serviceaccount:{account['metadata'].get('namespace', 'volcano-system')}:{name}")
    assert accounts - {"system:serviceaccount:volcano-system:stromboli-dashboard"} == COMPONENTS
    assert all(is_privileged(User(name)) for name in COMPONENTS)


def test_who_has_no_name_has_the_smallest_share_and_accounts_of_a_namespace_have_one() -> None:
    anonymous, user = share_of(ANONYMOUS), share_of(User("ann"))
    assert all(small < large for small, large in zip(anonymous[1:], user[1:], strict=True))
    accounts = [share_of(User(f"system:serviceaccount:{name}")) for name in ("a:x", "a:y", "b:x")]
    assert [share.owner for share in accounts] == [
        f"system:serviceaccount:{name}" for name in ("a", "a", "b")
    ]


# -- seats


def test_a_user_beyond_their_seats_waits_and_beyond_that_is_refused() -> None:
    async def scenario() -> None:
        pool = SeatPool(10)
        for _ in range(2):
            await pool.acquire(SHARE, 1)
        waiting = [asyncio.create_task(pool.acquire(SHARE, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(StatusError, match='user "ann" has 3 requests waiting, and 3 may wait') as refused:
            await pool.acquire(SHARE, 1)
        assert (refused.value.code, refused.value.retry_after) == (429, 1)
        assert not any(task.done() for task in waiting)
        pool.release(SHARE, 1)
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [True, False, False]
        waiting[1].cancel()
        await asyncio.gather(waiting[1], return_exceptions=True)
        pool.release(SHARE, 1)
        await asyncio.wait_for(waiting[2], 5)
        for _ in range(2):
            pool.release(SHARE, 1)
        assert not pool._lines
        assert not pool._turns

    asyncio.run(scenario())


def test_free_seats_go_to_the_users_in_turn() -> None:
    async def scenario() -> None:
        pool, order = SeatPool(1), list[str]()
        holder = Share("holder", 1, 1, 1, 3)
        await pool.acquire(holder, 1)

        async def request(name: str) -> None:
            share = Share(name, 1, 100, 1, 3)
            await pool.acquire(share, 1)
            order.append(name)
            pool.release(share, 1)

        async with asyncio.TaskGroup() as group:
            for name in ("greedy", "greedy", "greedy", "ann", "bob"):
                group.create_task(request(name))
            await asyncio.sleep(0)
            pool.release(holder, 1)
        assert order == ["greedy", "ann", "bob", "greedy", "greedy"]

    asyncio.run(scenario())


def test_a_large_request_takes_all_seats_of_its_user_and_is_not_overtaken_for_ever() -> None:
    async def scenario() -> None:
        pool = SeatPool(4)
        small, large = Share("small", 4, 9, 1, 3), Share("large", 4, 9, 1, 3)
        await pool.acquire(small, 1)
        wide = asyncio.create_task(pool.acquire(large, 4))
        await asyncio.sleep(0)
        late = asyncio.create_task(pool.acquire(small, 1))
        await asyncio.sleep(0)
        assert not wide.done()
        assert not late.done()
        pool.release(small, 1)
        await asyncio.sleep(0)
        assert wide.done()
        assert not late.done()
        pool.release(large, 4)
        await asyncio.wait_for(late, 5)

    asyncio.run(scenario())


def test_a_request_that_is_cancelled_as_its_turn_comes_gives_its_seat_back() -> None:
    async def scenario() -> None:
        pool, share = SeatPool(1), Share("ann", 1, 5, 1, 3)
        await pool.acquire(share, 1)
        late = asyncio.create_task(pool.acquire(share, 1))
        await asyncio.sleep(0)
        pool.release(share, 1)
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        await asyncio.wait_for(pool.acquire(share, 1), 5)

    asyncio.run(scenario())


def test_a_seat_that_is_free_when_the_next_request_was_cancelled_goes_to_the_one_after() -> None:
    async def scenario() -> None:
        pool = SeatPool(1)
        share = SHARE._replace(seats=1)
        await pool.acquire(share, 1)
        waiting = [asyncio.create_task(pool.acquire(share, 1)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # its future is cancelled at once, and its task hears of it later
        pool.release(share, 1)
        async with asyncio.timeout(5):
            await waiting[1]
        assert waiting[0].cancelled()
        last = asyncio.create_task(pool.acquire(share, 1))
        await asyncio.sleep(0)
        last.cancel()
        pool.release(share, 1)
        async with asyncio.timeout(5):
            await pool.acquire(share, 1)

    asyncio.run(scenario())


def test_in_one_round_of_the_loop_few_parts_of_a_user_are_encoded_and_some_of_each() -> None:
    async def scenario() -> None:
        shares, encoded, rounds = UserShares(), list[str](), list[list[str]]()

        async def stream(user: User) -> None:
            async with shares.turns(user):
                encoded.append(user.name)

        async with asyncio.TaskGroup() as group:
            for user in [User("greedy")] * 6 + [User("ann"), ADMIN]:
                group.create_task(stream(user))
            while len(encoded) < 8:
                before = len(encoded)
                await asyncio.sleep(0)
                rounds.append(encoded[before:])
        assert rounds[0] == ["greedy", "greedy", "ann", "admin"]
        assert all(len(names) <= user_shares.USER_TURNS for names in rounds[1:])

    asyncio.run(scenario())


def test_two_hundred_connections_of_a_user_do_not_delay_the_administrator(tmp_path: Path) -> None:
    """Without turns, all 200 requests of the user are served before each of the administrator's."""

    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api:
            for number in range(20):
                await api.post(MAPS, config_map(f"m{number}", {"a": "b" * 20_000}))
            token = await viewer(api)
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(
                connector=connector, headers={"Authorization": f"Bearer {token}"}
            ) as session:
                statuses: list[int] = []

                async def greedy() -> None:
                    while not stop.is_set():
                        async with session.get(api.server.url + MAPS, headers=TABLE) as answer:
                            await answer.read()
                            statuses.append(answer.status)

                stop = asyncio.Event()
                async with asyncio.TaskGroup() as group:
                    for _ in range(200):
                        group.create_task(greedy())
                    await asyncio.sleep(0.5)
                    count = len(statuses)
                    for _ in range(10):
                        await api.get(f"{MAPS}/m1")
                    served = len(statuses) - count
                    stop.set()
            assert set(statuses) <= {200, 429}
            assert served < 10 * 100, f"{served} requests of the user went before ten of the administrator's"

    asyncio.run(scenario())


TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
