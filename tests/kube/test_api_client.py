"""Requests over real connections on 127.0.0.1: answered, refused, repeated where that helps and does no harm."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.pod import Pod
from stromboli.kube.api_client import ATTEMPTS, Client, SharedTimeouts, Timeout, TooLarge
from stromboli.kube.api_resources import RESOURCES, discover
from stromboli.kube.cluster_access import Access, Trust
from stromboli.kube.credentials import Certificate, Identity, NoCredentials, StaticCredentials, bearer
from stromboli.kube.request import ApiError, Backoff, NoResponse, Request
from tests.serving import BAD, CERTIFICATE, LONG, Asked, Reply, behaving, dead, serving

PODS = RESOURCES[Pod]
GET = Request("GET", "/x")
Result = TypeVar("Result")


def refused(status: int, reason: str = "", message: str = "") -> tuple[int, bytes]:
    body = {"kind": "Status", "code": status, "reason": reason, "message": message}
    return status, json.dumps(body).encode()


def talk(
    access: Access | str, story: Callable[[Client], Awaitable[Result]], pauses: list[float] | None = None
) -> Result:
    """Let a story happen with a client that does not really sleep."""
    where = access if isinstance(access, Access) else Access(access)

    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    async def run() -> Result:
        backoff = Backoff(first=1, longest=8, jitter=lambda: 1.0)
        async with Client(where, backoff=backoff, sleep=sleep) as client:
            return await story(client)

    return asyncio.run(run())


def replies(*given: Reply) -> Callable[[Asked], Reply]:
    """One after the other; the last for good."""
    left = list(given)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


def test_who_we_are_and_what_we_want_goes_along() -> None:
    with serving(lambda asked: b"{}") as server:
        access = Access(server.url, credentials=StaticCredentials(Identity((bearer("abc"),))))
        talk(access, lambda client: client.create(PODS, {"target": {"name": "n1"}}, "ns", "web", "binding"))
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/ns/pods/web/binding")
    assert asked.headers["Authorization"] == "Bearer abc"
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["User-Agent"].startswith("stromboli/")
    assert json.loads(asked.body) == {"target": {"name": "n1"}}


def test_a_list_is_asked_for_by_page() -> None:
    with serving(lambda asked: b"{}") as server:
        talk(server.url, lambda client: client.list(PODS, limit=500, **{"continue": "a/b="}))
    assert server.asked[0].path == "/api/v1/pods?limit=500&continue=a%2Fb%3D"


def test_requests_are_counted_by_method_and_status() -> None:
    counted: list[tuple[str, str]] = []

    async def run(url: str) -> None:
        count = lambda method, status: counted.append((method, status))  # noqa: E731
        async with Client(Access(url), count=count) as client:
            await client.send(GET)
            await client.create(PODS, {}, "ns")
            with pytest.raises(ApiError):
                await client.send(GET)
        async with Client(Access("http://127.0.0.1:1"), count=count) as client:
            with pytest.raises(NoResponse):
                await client.send(GET)

    with serving(replies(b"{}", b"{}", refused(404, "NotFound", "no"))) as server:
        asyncio.run(run(server.url))
    assert counted == [("GET", "200"), ("POST", "201"), ("GET", "404"), ("GET", "<error>")]


def test_a_refusal_says_why() -> None:
    missing = serving(lambda asked: refused(404, "NotFound", 'pods "web" not found'))
    with missing as server, pytest.raises(ApiError, match='pods "web" not found') as failed:
        talk(server.url, lambda client: client.get(PODS, "web", "ns"))
    assert (failed.value.status, failed.value.reason) == (404, "NotFound")
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_what_passes_is_waited_for(status: int) -> None:
    pauses: list[float] = []
    with serving(replies(refused(status), refused(status), b"done")) as server:
        assert talk(server.url, lambda client: client.send_with_retries(GET), pauses) == b"done"
    assert pauses == [1, 2]


def test_the_server_says_how_long_to_wait() -> None:
    pauses: list[float] = []
    with serving(replies(refused(429), b"done"), headers={"Retry-After": "6"}) as server:
        talk(server.url, lambda client: client.send_with_retries(GET), pauses)
    assert pauses == [6]


@pytest.mark.parametrize(
    "message",
    [
        "etcdserver: request is too large",
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2233402 vs. 2097152)",
    ],
)
def test_an_object_that_etcd_does_not_take_is_sent_once(message: str) -> None:
    with serving(lambda asked: refused(500, "", message)) as server, pytest.raises(ApiError) as failed:
        talk(server.url, lambda client: client.send_with_retries(GET))
    assert (failed.value.status, str(failed.value)) == (413, message)
    assert len(server.asked) == 1


def test_patience_ends() -> None:
    with serving(lambda asked: refused(503)) as server, pytest.raises(ApiError):
        talk(server.url, lambda client: client.send_with_retries(GET))
    assert len(server.asked) == ATTEMPTS


@pytest.mark.parametrize(("status", "times"), [(500, 1), (429, 2), (409, 1)])
def test_what_makes_something_new_is_repeated_only_if_it_surely_was_not_done(status: int, times: int) -> None:
    with serving(replies(refused(status), b"done")) as server:
        try:
            talk(server.url, lambda client: client.create(PODS, {}, "ns"))
        except ApiError as error:
            assert error.status == status
    assert len(server.asked) == times


@pytest.mark.parametrize("badly", BAD, ids=lambda behaviour: behaviour.__name__)
def test_whatever_a_server_does_an_answer_is_found_missing_in_time(badly: Any) -> None:
    with behaving(badly) as url, pytest.raises((NoResponse, TooLarge)):
        talk(url, lambda client: client.send(GET, timeout=0.4, max_bytes=1_000_000))


def test_nobody_there_is_unanswered() -> None:
    with pytest.raises(NoResponse, match="GET http://127"):
        talk(dead(), lambda client: client.send(GET, timeout=2))


def test_an_answer_has_a_bound() -> None:
    with serving(lambda asked: b"x" * 2000) as server:
        assert len(talk(server.url, lambda client: client.send(GET, max_bytes=2000))) == 2000
        with pytest.raises(TooLarge, match="more than 1999 bytes"):
            talk(server.url, lambda client: client.send(GET, max_bytes=1999))


def test_a_redirect_is_not_followed() -> None:
    with serving(lambda asked: b"reached") as elsewhere:
        moved = serving(lambda asked: (307, b""), {"Location": elsewhere.url})
        with moved as server, pytest.raises(ApiError):
            talk(server.url, lambda client: client.send(GET))
    assert elsewhere.asked == []


def test_a_server_that_nobody_vouches_for_is_not_believed() -> None:
    with serving(lambda asked: b"{}", secure=True) as server:
        with pytest.raises(NoResponse, match="not believed to be the API server"):
            talk(server.url, lambda client: client.send(GET))
        assert server.asked == []
        vouched = Trust(CERTIFICATE.read_bytes())
        assert talk(Access(server.url, vouched), lambda client: client.send(GET)) == b"{}"
        assert talk(Access(server.url, Trust(verify=False)), lambda client: client.send(GET)) == b"{}"


class Renewed:
    """Credentials of which the first are stale."""

    def __init__(self) -> None:
        self.token = "old"

    async def identity(self) -> Identity:
        return Identity((bearer(self.token),))

    def rejected(self) -> bool:
        before, self.token = self.token, "new"
        return before != "new"


def test_a_stale_token_is_renewed_and_used_at_once() -> None:
    def answer(asked: Asked) -> Reply:
        return b"in" if asked.headers["Authorization"] == "Bearer new" else refused(401, "Unauthorized")

    with serving(answer) as server:
        access = Access(server.url, credentials=Renewed())
        assert talk(access, lambda client: client.send(GET)) == b"in"
    assert len(server.asked) == 2


def test_a_token_that_stays_wrong_is_refused() -> None:
    with serving(lambda asked: refused(401, "Unauthorized")) as server, pytest.raises(ApiError):
        talk(Access(server.url, credentials=Renewed()), lambda client: client.send(GET))
    assert len(server.asked) == 2


class HalfRenewed(StaticCredentials):
    """A certificate that does not fit its key, after the first `good` requests."""

    def __init__(self, good: int) -> None:
        super().__init__()
        self._good = good

    async def identity(self) -> Identity:
        self._good -= 1
        half = Certificate(b"a chain", b"not its key")
        return await super().identity() if self._good >= 0 else Identity(certificate=half)


def test_a_certificate_that_cannot_be_used_leaves_the_last_one_in_use() -> None:
    async def twice(client: Client) -> list[bytes]:
        return [await client.send(GET), await client.send(GET)]

    with serving(lambda asked: b"{}") as server:
        assert talk(Access(server.url, credentials=HalfRenewed(1)), twice) == [b"{}"] * 2
        with pytest.raises(NoResponse, match="client-certificate"):
            talk(Access(server.url, credentials=HalfRenewed(0)), twice)


class Nobody:
    async def identity(self) -> Identity:
        raise NoCredentials("aws: please log in")

    def rejected(self) -> bool:
        return True


def test_without_credentials_nothing_is_sent() -> None:
    with serving(lambda asked: b"{}") as server, pytest.raises(NoResponse, match="please log in"):
        talk(Access(server.url, credentials=Nobody()), lambda client: client.send(GET))
    assert server.asked == []


def test_a_stream_comes_in_pieces_and_its_silence_is_noticed() -> None:
    def half(link: Any, over: Any) -> None:
        link.recv(65536)
        link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        over.wait(LONG)

    got: list[bytes] = []

    async def story(client: Client) -> None:
        async with client.stream("/x?watch=true", idle_timeout=3) as pieces:
            async for piece in pieces:
                got.append(piece)

    begin = time.monotonic()
    with behaving(half) as url, pytest.raises(NoResponse):
        talk(url, story)
    assert got == [b"one\n"]
    assert time.monotonic() - begin < LONG / 2, "the server did not end it"


def test_a_stream_that_is_refused_says_why() -> None:
    async def story(client: Client) -> None:
        async with client.stream("/x", idle_timeout=LONG):
            raise AssertionError

    with serving(lambda asked: refused(410, "Gone", "too old")) as server, pytest.raises(ApiError) as failed:
        talk(server.url, story)
    assert failed.value.status == 410


def test_a_refusal_that_comes_in_several_packets_is_read_to_its_end() -> None:
    status, body = refused(410, "Expired", "too old resource version")

    def pieces(link: Any, over: Any) -> None:
        link.recv(65536)
        link.sendall(b"HTTP/1.1 %d Gone\r\nContent-Length: %d\r\n\r\n" % (status, len(body)))
        for piece in (body[:10], body[10:40], body[40:]):
            link.sendall(piece)
            over.wait(0.05)

    async def story(client: Client) -> None:
        async with client.stream("/x", idle_timeout=LONG):
            raise AssertionError

    with behaving(pieces) as url, pytest.raises(ApiError, match="too old resource version") as failed:
        talk(url, story)
    assert failed.value.reason == "Expired"


def test_what_the_server_has_is_discovered() -> None:
    def answer(asked: Asked) -> Reply:
        if asked.path == "/api/v1":
            return b'{"resources": [{"name": "pods", "kind": "Pod"}, {"name": "pods/binding", "kind": "Binding"}]}'
        if asked.path == "/apis/scheduling.k8s.io":
            return b'{"versions": [{"version": "v1"}, {"version": "v1alpha2"}, {"version": "v1beta1"}]}'
        if asked.path in ("/apis/scheduling.k8s.io/v1beta1", "/apis/scheduling.k8s.io/v1alpha2"):
            return b'{"resources": [{"name": "podgroups", "kind": "PodGroup"}]}'
        return refused(404, "NotFound")

    with serving(answer) as server:
        discovered = talk(server.url, discover)
        assert set(discovered) == {Pod, NativePodGroup}
        assert discovered[NativePodGroup].api_version == "scheduling.k8s.io/v1beta1"


# -- timeouts that share a timer


def ended(*seconds: float) -> list[str]:
    """In which order waits of so many seconds end, all in blocks that last for ever."""

    async def run() -> list[str]:
        timeouts = SharedTimeouts()
        order: list[str] = []

        async def wait(limit: float, timeout: Timeout) -> None:
            try:
                with timeout:
                    await asyncio.Event().wait()
            except TimeoutError:
                order.append(f"{limit:g}")

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for limit, timeout in [(limit, timeouts(limit)) for limit in seconds]:
                group.create_task(wait(limit, timeout))
        return order

    return asyncio.run(run())


def test_timeouts_that_share_a_timer_end_in_their_own_time() -> None:
    assert ended(0.2, 0.01, 0.1, 0.0) == ["0", "0.01", "0.1", "0.2"]


def test_a_block_that_ends_in_time_is_not_cancelled_and_a_later_one_is() -> None:
    async def run() -> None:
        timeouts = SharedTimeouts()
        with timeouts(0.01):
            await asyncio.sleep(0)
        await asyncio.sleep(0.03)
        with pytest.raises(TimeoutError), timeouts(0.01):
            await asyncio.sleep(30)
        await asyncio.sleep(0)  # nothing of it is left in the task
        timeouts.close()

    asyncio.run(run())


def test_a_task_that_is_cancelled_by_somebody_else_does_not_time_out() -> None:
    async def run() -> None:
        timeouts = SharedTimeouts()

        async def wait() -> None:
            with timeouts(30):
                await asyncio.sleep(30)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
