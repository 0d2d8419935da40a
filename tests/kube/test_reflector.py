"""One kind, followed through everything that may go wrong: nothing is lost, nothing is changes twice."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import unquote

import pytest

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.kube.api_client import TooLarge
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.reflector import EVERYTHING, Reflector, UnusableObject, WatchScope, list_pages
from stromboli.kube.request import ApiError, Backoff, NoResponse, Request


class ScriptEnded(BaseException):
    """The script has come to its end."""


class Script:
    """Plays the API server: answers to lists and watches, in order; an exception is raised, bytes are sent."""

    def __init__(self, *responses: Any) -> None:
        self.responses = list(responses)
        self.requests: list[str] = []

    def _next(self) -> Any:
        if not self.responses:
            raise ScriptEnded
        return self.responses.pop(0)

    async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
        self.requests.append(f"list {query.get('limit')} {query.get('continue', '')}".strip())
        response = self._next()
        if isinstance(response, Exception):
            raise response
        assert isinstance(response, bytes), f"expected a list, the script has {response}"
        return response

    async def send_with_retries(self, request: Request) -> bytes:
        self.requests.append(f"{request.method} {request.path}")
        response = self._next()
        assert isinstance(response, bytes), f"expected an answer, the script has {response}"
        return response

    @asynccontextmanager
    async def stream(self, path: str, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        query = dict(part.split("=") for part in path.partition("?")[2].split("&"))
        self.requests.append(f"watch {query['resourceVersion']}")
        response = self._next()
        if isinstance(response, Exception):
            raise response
        assert isinstance(response, list), f"expected a watch, the script has {response}"
        yield self._pieces(response)

    async def _pieces(self, response: list[Any]) -> AsyncIterator[bytes]:
        for piece in response:
            if isinstance(piece, BaseException):
                raise piece
            yield piece


class Sink:
    """Records all changes."""

    def __init__(self) -> None:
        self.changes: list[str] = []

    def put(self, object: Object, new: bool) -> None:
        meta = object.metadata
        self.changes.append(f"{'new' if new else 'put'} {meta.name} {meta.uid}@{meta.resource_version}")

    def drop(self, object: Object) -> None:
        self.changes.append(f"drop {object.name} {object.metadata.uid}")

    def unusable(self, problem: UnusableObject) -> None:
        self.changes.append(f"bad {problem.name}: {problem.text}")

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)


def pod(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": uid or f"u{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def page(version: int, *items: Any, more: str = "") -> bytes:
    return json.dumps(
        {"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}
    ).encode()


def event(type: str, object: Any) -> bytes:
    return json.dumps({"type": type, "object": object}).encode() + b"\n"


def mark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


GONE = event("ERROR", {"code": 410, "reason": "Expired", "message": "too old resource version"})
CUT = NoResponse("connection reset")


class Followed:
    def __init__(
        self,
        script: Script,
        wanted: Callable[[Object], bool] = lambda _: True,
        scope: WatchScope = EVERYTHING,
    ) -> None:
        self.sink, self.pauses = Sink(), []
        self.script = script
        self.reflector = Reflector(
            script,
            RESOURCES[Pod],
            Pod,
            self.sink,
            wanted,
            scope,
            page_size=100,
            backoff=Backoff(first=1, longest=8, jitter=lambda: 1.0),
            sleep=self._sleep,
            clock=lambda: 0.0,
            jitter=lambda: 1.0,
        )
        with pytest.raises(ScriptEnded):
            asyncio.run(self.reflector.run())

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def follow(*responses: Any) -> Followed:
    return Followed(Script(*responses))


def test_a_list_in_pages_and_then_what_happens_since() -> None:
    end = follow(
        page(10, pod("a", 1), more="x"),
        page(10, pod("b", 2)),
        [event("ADDED", pod("c", 11)), event("MODIFIED", pod("a", 12)), event("DELETED", pod("b", 13))],
    )
    assert end.script.requests == ["list 100", "list 100 x", "watch 10", "watch 13"]
    assert end.sink.changes == ["new a ua@1", "new b ub@2", "new c uc@11", "put a ua@12", "drop b ub"]
    assert end.reflector.synced.is_set()


def test_a_watch_that_is_cut_resumes_after_the_last_event_or_bookmark() -> None:
    end = follow(
        page(10),
        [event("ADDED", pod("a", 11)), CUT],
        [mark(20), CUT],
        CUT,
        [event("ADDED", pod("b", 21))],
    )
    assert end.script.requests == ["list 100", "watch 10", "watch 11", "watch 20", "watch 20", "watch 21"]
    assert end.sink.changes == ["new a ua@11", "new b ub@21"]


def test_a_line_that_is_cut_in_two_by_a_lost_connection_is_asked_for_again() -> None:
    whole = event("ADDED", pod("a", 11))
    end = follow(page(10), [whole[:30], CUT], [whole[:50], whole[50:]])
    assert end.script.requests[1:3] == ["watch 10", "watch 10"]
    assert end.sink.changes == ["new a ua@11"]


@pytest.mark.parametrize("gone", [[GONE], ApiError(410, "Gone", "too old")])
def test_after_410_a_new_list_tells_only_what_differs(gone: Any) -> None:
    end = follow(
        page(10, pod("same", 1), pod("changed", 2), pod("gone", 3), pod("replaced", 4, "u1")),
        gone,
        page(50, pod("same", 1), pod("changed", 40), pod("replaced", 41, "u2"), pod("fresh", 42)),
    )
    assert end.script.requests == ["list 100", "watch 10", "list 100", "watch 50"]
    assert end.sink.changes[4:] == [
        "put changed uchanged@40",
        "drop replaced u1",
        "new replaced u2@41",
        "new fresh ufresh@42",
        "drop gone ugone",
    ]


def test_a_list_that_expires_between_its_pages_begins_again_without_repeating() -> None:
    end = follow(
        page(10, pod("a", 1), more="x"),
        ApiError(410, "Expired", "continue token expired"),
        page(20, pod("a", 1), more="y"),
        page(20, pod("b", 2)),
    )
    assert end.sink.changes == ["new a ua@1", "new b ub@2"]


def test_what_is_told_twice_by_the_server_is_told_once() -> None:
    end = follow(page(10, pod("a", 1)), [event("ADDED", pod("a", 1)), event("DELETED", pod("x", 11))])
    assert end.sink.changes == ["new a ua@1"]


def test_the_end_of_an_older_object_of_that_name_does_not_remove_the_newer() -> None:
    end = follow(page(10, pod("a", 9, "u2")), [event("DELETED", pod("a", 11, "u1"))])
    assert end.sink.changes == ["new a u2@9"]


def test_a_bad_object_is_told_once_and_stops_nothing() -> None:
    bad = pod("bad", 3, priority="high")
    end = follow(
        page(10, pod("a", 1), bad, pod("b", 2)),
        [event("MODIFIED", pod("a", 11, priority="x")), event("ADDED", pod("c", 12)), GONE],
        page(20, pod("a", 11, priority="x"), bad, pod("b", 2), pod("c", 12)),
        [event("DELETED", bad | {"metadata": bad["metadata"] | {"resourceVersion": "21"}})],
    )
    assert end.sink.changes == [
        "new a ua@1",
        'bad bad: spec.priority: expected int | null, got str "high"',
        "new b ub@2",
        'bad a: spec.priority: expected int | null, got str "x"',
        "new c uc@12",
        "drop bad ubad",
    ]


def test_rubbish_in_a_watch_leads_to_a_new_list() -> None:
    end = follow(page(10, pod("a", 1)), [b"{{{\n"], page(20, pod("a", 1)), [mark(30)])
    assert end.script.requests == ["list 100", "watch 10", "list 100", "watch 20", "watch 30"]
    assert end.sink.changes == ["new a ua@1"]


def test_a_page_that_is_too_large_is_asked_for_in_halves() -> None:
    end = follow(page(10, pod("a", 1), more="x"), TooLarge(413), TooLarge(413), page(10, pod("b", 2)))
    assert end.script.requests[:4] == ["list 100", "list 100 x", "list 50 x", "list 25 x"]
    assert end.sink.changes == ["new a ua@1", "new b ub@2"]


def test_pauses_grow_while_it_fails_and_end_with_success() -> None:
    end = follow(CUT, CUT, CUT, page(10), CUT, [event("ADDED", pod("a", 11)), CUT])
    assert end.pauses == [1, 2, 4, 1, 1]


def test_a_server_that_asks_for_patience_gets_it() -> None:
    assert follow(ApiError(429, "TooManyRequests", "", retry_after=5), page(10)).pauses == [5]


def test_a_watch_that_ends_at_once_is_not_asked_for_in_a_hurry() -> None:
    assert follow(page(10), [], [], []).pauses == [1, 2, 4]


def test_a_kind_that_is_not_installed_is_told_once_and_found_when_it_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    absent = ApiError(404, "NotFound", "the server could not find the requested resource")
    with caplog.at_level(logging.WARNING):
        end = follow(absent, absent, page(10, pod("a", 1)))
    assert caplog.text.count("is not installed") == 1
    assert end.sink.changes == ["new a ua@1"]
    assert end.reflector.installed is True


def test_when_a_kind_is_taken_away_its_objects_are_gone() -> None:
    end = follow(page(10, pod("a", 1)), ApiError(404, "NotFound", ""))
    assert end.sink.changes == ["new a ua@1", "drop a ua"]
    assert end.reflector.installed is False


def test_without_the_right_to_look_it_says_so_and_is_not_in_step(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        end = follow(*[ApiError(403, "Forbidden", 'pods is forbidden: User "x" cannot list')] * 3)
    assert not end.reflector.synced.is_set()
    assert "not permitted to list and watch it" in end.reflector.problem
    assert caplog.text.count("forbidden") == 1


def test_what_is_not_wanted_is_left_out_and_leaves_when_it_changes() -> None:
    script = Script(
        page(10, pod("a", 1, schedulerName="ours"), pod("b", 2)),
        [
            event("MODIFIED", pod("a", 11)),
            event("MODIFIED", pod("b", 12, schedulerName="ours")),
            event("DELETED", pod("b", 13)),
        ],
    )
    end = Followed(script, lambda object: isinstance(object, Pod) and object.spec.scheduler_name == "ours")
    assert end.sink.changes == ["new a ua@1", "drop a ua", "put b ub@12", "drop b ub"]


def test_a_scope_is_part_of_every_list_and_watch() -> None:
    requests: list[str] = []

    class Recording(Script):
        async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
            requests.append(f"{resource.path(namespace)} {query['fieldSelector']}")
            return await super().list(resource, namespace, **query)

        def stream(self, path: str, idle_timeout: float) -> Any:
            requests.append(unquote(path))
            return super().stream(path, idle_timeout)

    Followed(Recording(page(1), []), scope=WatchScope.of_one("system", "settings"))
    where = "/api/v1/namespaces/system/pods"
    assert requests[0] == f"{where} metadata.name=settings"
    assert requests[1].startswith(f"{where}?watch=true&fieldSelector=metadata.name=settings&")


def test_the_next_page_is_requested_before_the_last_is_taken_in() -> None:
    """While we decode, the server works. No more than one page is requested ahead."""
    order: list[str] = []

    class Recording(Script):
        async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
            order.append(f"request {query.get('continue') or 'first'}")
            return await super().list(resource, namespace, **query)

    async def story() -> None:
        script = Recording(
            page(10, pod("a", 1), more="x"), page(10, pod("b", 2), more="y"), page(10, pod("c", 3))
        )
        async for listed in list_pages(script, RESOURCES[Pod], Pod):  # type: ignore[arg-type]
            order.append(f"page of {listed.objects[0].metadata.name}")

    asyncio.run(story())
    assert order == ["request first", "request x", "page of a", "request y", "page of b", "page of c"]


def test_a_list_that_is_given_up_withdraws_its_next_request() -> None:
    async def story() -> int:
        class Waiting(Script):
            async def list(self, resource: Resource, namespace: str = "", **query: str | int) -> bytes:
                if query.get("continue"):
                    await asyncio.Event().wait()
                return await super().list(resource, namespace, **query)

        pages = list_pages(Waiting(page(10, pod("a", 1), more="x")), RESOURCES[Pod], Pod)  # type: ignore[arg-type]
        async with aclosing(pages):  # type: ignore[type-var]
            await anext(pages)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(story()) == 1
