"""The writer: patient, exact, and still once somebody else leads."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.controllers.api_writer import ATTEMPTS, FOREGROUND, ApiWriter
from stromboli.controllers.watched_kinds import Pod
from stromboli.kube.request import ApiError, LeaseLost
from tests.kube.fake_api import BROKEN, GONE, LOST, Clock, FakeApi, body

POD = Pod(metadata=ObjectMeta("a", namespace="ns", uid="u1", resource_version="7"))
ANSWER = msgspec.json.encode(
    {"metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "8"}}
)
EXISTS = ApiError(409, "AlreadyExists", "there is one")
CONFLICT = ApiError(409, "Conflict", "it has changed")
ANOTHER = ApiError(409, "Conflict", "Precondition failed: UID in precondition: u1, UID in object meta: u2")
BUSY = ApiError(429, "TooManyRequests", "later", retry_after=3)


def write(
    api: FakeApi, how: Callable[[ApiWriter], Awaitable[object]], left: Callable[[], float] = lambda: math.inf
) -> object:
    async def run() -> object:
        return await how(ApiWriter(api, left, sleep=Clock().sleep))

    return asyncio.run(run())


def test_what_exists_is_not_made_again() -> None:
    api = FakeApi([EXISTS])
    made = write(api, lambda writer: writer.create(Pod, {"metadata": {"name": "a"}}, "ns"))
    assert made is None
    assert body(api.requests[0]) == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    assert api.requests[0].path == "/api/v1/namespaces/ns/pods"


@pytest.mark.parametrize("trouble", [LOST, BROKEN, BUSY])
def test_lost_answers_and_passing_troubles_are_asked_again(trouble: Exception) -> None:
    api = FakeApi([trouble, trouble, b"{}"])
    write(api, lambda writer: writer.create(Pod, {"metadata": {"name": "a"}}, "ns"))
    assert len(api.requests) == 3


def test_patience_has_an_end() -> None:
    api = FakeApi(answer=lambda _: BROKEN)
    with pytest.raises(ApiError):
        write(api, lambda writer: writer.delete(POD))
    assert len(api.requests) == ATTEMPTS


def test_a_patch_holds_for_what_was_looked_at() -> None:
    api = FakeApi([ANSWER, ANSWER])
    now = write(api, lambda writer: writer.patch(POD, {"metadata": {"labels": {"x": "y"}}}))
    assert isinstance(now, Pod)
    assert now.metadata.resource_version == "8"
    write(api, lambda writer: writer.patch(POD, {"status": {}}, "status", exact=False))
    assert body(api.requests[0])["metadata"] == {"labels": {"x": "y"}, "uid": "u1", "resourceVersion": "7"}
    assert api.requests[1].path.endswith("/pods/a/status")
    assert body(api.requests[1])["metadata"] == {"uid": "u1"}


def test_a_patch_of_what_is_gone_is_no_trouble() -> None:
    assert write(FakeApi([GONE]), lambda writer: writer.patch(POD, {})) is None
    immutable = ApiError(422, "Invalid", 'metadata.uid: Invalid value: "u1": field is immutable')
    for refusal in (ANOTHER, immutable):
        assert write(FakeApi([refusal]), lambda writer: writer.patch(POD, {})) is None


def test_a_conflict_is_thought_over_not_repeated() -> None:
    api = FakeApi([CONFLICT])
    with pytest.raises(ApiError, match="it has changed"):
        write(api, lambda writer: writer.patch(POD, {}))
    assert len(api.requests) == 1


@pytest.mark.parametrize(("answer", "was_there"), [(b"{}", True), (GONE, False), (ANOTHER, False)])
def test_what_is_gone_needs_no_deletion(answer: bytes | Exception, was_there: bool) -> None:
    api = FakeApi([answer])
    assert write(api, lambda writer: writer.delete(POD, FOREGROUND)) is was_there
    asked = body(api.requests[0])
    assert (asked["preconditions"], asked["propagationPolicy"]) == ({"uid": "u1"}, "Foreground")


def test_a_deletion_that_conflicts_for_another_reason_has_failed() -> None:
    with pytest.raises(ApiError, match="it has changed"):
        write(FakeApi([CONFLICT]), lambda writer: writer.delete(POD))


def test_a_deposed_leader_writes_nothing_and_stops_trying() -> None:
    api = FakeApi([LOST])
    left = iter([15.0, 0.0])
    with pytest.raises(LeaseLost):
        write(api, lambda writer: writer.delete(POD), lambda: next(left))
    assert len(api.requests) == 1
    assert write(FakeApi([ANSWER]), lambda writer: writer.read(Pod, "a", "ns"), lambda: 0.0) is not None


@pytest.mark.parametrize(("left", "timeout"), [(math.inf, 30.0), (4.0, 4.0)])
def test_a_write_ends_before_another_replica_can_lead(left: float, timeout: float) -> None:
    api = FakeApi()
    write(api, lambda writer: writer.delete(POD), lambda: left)
    assert api.timeouts == [timeout]
