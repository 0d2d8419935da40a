"""The writer: what it asks, what it makes of refusals and lost answers, and what it never does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from stromboli.api.types.meta import Condition, ObjectMeta
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.scheduling import PodGroupStatus as GroupStatus
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    GateRemoval,
    GroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
    ShardStatus,
)
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.request import ApiError, Backoff, Request
from stromboli.scheduler.writes import decision_writer as writing
from stromboli.scheduler.writes.decision_writer import PATIENCE, DecisionWriter
from stromboli.scheduler.writes.write_orders import WriteFailure, WriteOrder
from tests.kube.fake_api import BROKEN, CONFLICT, GONE, LOST, Answer, Clock, FakeApi, body, pod

BIND = Bind("ns", "web-0", "u1", "n1", "ns/web")
EVICT = Evict("ns", "old-0", "u2", "n1", "ns/old", "preempt", "preempt", "ns/urgent")


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BACKOFF", Backoff(first=0.001, longest=0.05))


def condition(message: str, nominated: str = "") -> PodCondition:
    return PodCondition("ns", "web-0", "u1", "Unschedulable", message, nominated)


def status(phase: str, *types: str) -> PodGroupStatus:
    conditions = tuple(GroupCondition(type, "True", "why", phase, "7") for type in types)
    return PodGroupStatus("ns", "web", phase, 0, 0, 0, conditions)


class Outcome:
    def __init__(self) -> None:
        self.failures: list[WriteFailure] = []
        self.done: list[Decision] = []


def write(
    api: FakeApi,
    *orders: Decision | WriteOrder,
    workers: int = 8,
    write_time_left: Callable[[], float] = lambda: 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Let a writer carry orders out, all submitted at once."""
    outcome = Outcome()

    async def run() -> None:
        events = EventRecorder("volcano", "test", lambda: 1000.0)
        writer = DecisionWriter(
            api,
            events,
            write_time_left,
            outcome.failures.append,
            lambda order, _: outcome.done.append(order.decision),
            workers=workers,
            wall=lambda: 1000.0,
            clock=clock,
        )
        writer.outbox.submit(
            order if isinstance(order, WriteOrder) else WriteOrder(order) for order in orders
        )
        writer.start()
        assert await writer.finish(60.0)

    asyncio.run(run())
    return outcome


def test_a_bind_names_the_very_pod_and_is_told_in_an_event() -> None:
    api = FakeApi()
    write(api, BIND)
    assert [(request.method, request.path) for request in api.writes] == [
        ("POST", "/api/v1/namespaces/ns/pods/web-0/binding")
    ]
    assert body(api.writes[0])["metadata"]["uid"] == "u1"
    assert body(api.writes[0])["target"]["name"] == "n1"
    (event,) = api.events
    assert (event["reason"], event["message"]) == ("Scheduled", "Successfully assigned ns/web-0 to n1")
    assert event["involvedObject"]["uid"] == "u1"


def test_a_lost_answer_to_a_bind_is_resolved_by_reading_the_pod() -> None:
    api = FakeApi([LOST, CONFLICT, pod("u1", "n1")])
    outcome = write(api, BIND)
    assert [request.method for request in api.writes] == ["POST", "POST", "GET"]
    assert BIND in outcome.done
    assert not outcome.failures


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([GONE], "gone"),
        ([CONFLICT, pod("other")], "another one has its name"),
        ([CONFLICT, pod("u1", "n2")], "bound to n2 already"),
        ([CONFLICT, GONE], "gone"),
    ],
)
def test_a_bind_of_a_pod_that_is_no_longer_there_to_be_bound_fails_at_once(answers: Any, why: str) -> None:
    outcome = write(FakeApi(answers), BIND)
    assert [failure.gone for failure in outcome.failures] == [True]
    assert why in outcome.failures[0].why
    assert BIND not in outcome.done


def test_a_bind_that_is_refused_for_good_comes_back_with_the_reason() -> None:
    outcome = write(FakeApi([ApiError(403, "Forbidden", "not allowed")]), BIND)
    assert outcome.failures == [WriteFailure(BIND, "not allowed")]


def test_a_bind_that_is_always_answered_with_500_fails_after_a_while() -> None:
    clock = Clock()

    def answer(request: Request) -> bytes | Exception:
        clock.now += PATIENCE / 3
        return BROKEN if "binding" in request.path else b"{}"

    api = FakeApi(answer=answer)
    outcome = write(api, BIND, clock=clock)
    assert len(api.writes) == 3
    assert outcome.failures == [WriteFailure(BIND, "etcd is on fire")]


def test_a_bind_whose_answer_was_lost_is_asked_about_until_the_truth_is_known() -> None:
    clock = Clock()
    answers = [LOST, *[BROKEN] * 60, CONFLICT, pod("u1", "n1")]

    def answer(request: Request) -> Answer:
        clock.now += PATIENCE / 3
        return answers.pop(0) if answers else b"{}"

    outcome = write(FakeApi(answer=answer), BIND, clock=clock)
    assert not outcome.failures
    assert BIND in outcome.done


def test_an_eviction_marks_the_pod_and_then_deletes_it_by_its_uid() -> None:
    api = FakeApi()
    write(api, EVICT)
    mark, delete = api.writes
    assert (mark.method, mark.path) == ("PATCH", "/api/v1/namespaces/ns/pods/old-0/status")
    ready, target = body(mark)["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "Evict")
    assert (target["type"], target["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    assert target["message"] == "volcano: preempting to accommodate a higher priority pod"
    assert (delete.method, body(delete)["preconditions"]) == ("DELETE", {"uid": "u2"})


def test_an_eviction_whose_mark_stands_already_still_deletes() -> None:
    api = FakeApi([b"{}", BROKEN, b"{}"])
    outcome = write(api, EVICT)
    assert [request.method for request in api.writes] == ["PATCH", "DELETE", "DELETE"]
    assert EVICT in outcome.done


def test_evicting_a_pod_that_is_gone_is_done() -> None:
    assert EVICT in write(FakeApi([GONE]), EVICT).done
    another = ApiError(
        409, "Conflict", "Precondition failed: UID in precondition: u2, UID in object meta: u3"
    )
    assert EVICT in write(FakeApi([b"{}", another]), EVICT).done
    immutable = ApiError(
        422, "Invalid", 'Pod "old-0" is invalid: metadata.uid: Invalid value: "u2": field is immutable'
    )
    api = FakeApi([immutable])
    assert EVICT in write(api, EVICT).done
    assert len(api.writes) == 1


def test_an_eviction_is_not_done_because_something_else_is_wrong_with_it() -> None:
    """A policy of the cluster refuses with 422, too: the pod is still there."""
    denied = ApiError(422, "Invalid", "ValidatingAdmissionPolicy 'calm' denied request: not at night")
    assert [failure.why for failure in write(FakeApi([denied]), EVICT).failures] == [str(denied)]
    api = FakeApi([b"{}", CONFLICT, b"{}"])
    assert EVICT in write(api, EVICT).done
    assert [request.method for request in api.writes] == ["PATCH", "DELETE", "DELETE"]


def test_an_eviction_that_fails_comes_back() -> None:
    assert write(FakeApi([b"{}", ApiError(403, message="no")]), EVICT).failures == [WriteFailure(EVICT, "no")]


def test_orders_about_one_object_are_carried_out_in_turn() -> None:
    api = FakeApi()
    api.delay = 0.01
    again = Evict("ns", "web-0", "u1", "n1", "ns/web", "preempt")
    write(api, BIND, again)
    assert [request.method for request in api.writes] == ["POST", "PATCH", "DELETE"]


def test_of_conditions_that_wait_only_the_last_is_written_and_none_if_the_pod_is_bound() -> None:
    api = FakeApi()
    write(api, condition("a"), condition("b", "n9"), condition("c", "n9"))
    (patch,) = api.writes
    assert body(patch)["status"]["conditions"][0]["message"] == "c"
    assert body(patch)["status"]["nominatedNodeName"] == "n9"
    api = FakeApi()
    write(api, condition("a"), BIND)
    assert [request.method for request in api.writes] == ["POST"]


def test_a_condition_keeps_its_time_when_only_its_words_change() -> None:
    api = FakeApi([b"{}", b"{}"])

    async def run() -> None:
        writer = DecisionWriter(
            api, EventRecorder("v", "t", lambda: 0.0), lambda: True, lambda _: None, wall=lambda: 1_000.0
        )
        writer.start()
        writer.outbox.submit([WriteOrder(condition("a"))])
        await writer.flush()
        writer.outbox.submit([WriteOrder(condition("b"))])
        await writer.finish(5.0)

    asyncio.run(run())
    first, second = (body(request)["status"]["conditions"][0] for request in api.writes)
    assert first["lastTransitionTime"] == "1970-01-01T00:16:40Z"
    assert "lastTransitionTime" not in second


MINE = Condition("Mine", "True", "r", "m", datetime(2026, 1, 1, tzinfo=UTC), "3")


def seen(version: str, *conditions: Condition, uid: str = "gu") -> PodGroup:
    return PodGroup(
        ObjectMeta(name="web", namespace="ns", uid=uid, resource_version=version),
        status=GroupStatus(conditions=conditions),
    )


class GroupServer:
    """A PodGroup, whose status may have been written by others."""

    def __init__(self, version: int = 1, uid: str = "gu") -> None:
        self.version = version
        self.uid = uid
        self.status: dict[str, Any] = {}
        self.conflicts = 0

    def others_write(self, **condition: Any) -> None:
        self.version += 1
        self.status["conditions"] = [*self.status.get("conditions", ()), condition]

    def answer(self, request: Request) -> Answer:
        if "/events" in request.path:
            return b"{}"
        metadata = {"name": "web", "uid": self.uid}
        if request.method == "PATCH":
            patch = body(request)
            if patch["metadata"].get("resourceVersion", str(self.version)) != str(self.version):
                self.conflicts += 1
                return CONFLICT
            if patch["metadata"]["uid"] != self.uid:
                return CONFLICT
            self.version += 1
            self.status |= patch["status"]
        group = {"metadata": metadata | {"resourceVersion": str(self.version)}, "status": self.status}
        return msgspec.json.encode(group if request.method == "PATCH" else {"items": [group]})

    @property
    def types(self) -> list[str]:
        return [condition["type"] for condition in self.status["conditions"]]


def test_a_group_is_patched_with_its_other_conditions_kept() -> None:
    api = FakeApi()
    write(api, WriteOrder(status("Inqueue", "Unschedulable"), "gu", newest_group=lambda: seen("5", MINE)))
    (patch,) = api.writes
    assert patch.path == "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/web"
    written = body(patch)
    assert written["metadata"] == {"uid": "gu", "resourceVersion": "5"}
    assert "spec" not in written
    assert [condition["type"] for condition in written["status"]["conditions"]] == ["Mine", "Unschedulable"]
    assert written["status"]["conditions"][1]["transitionID"] == "7"


def test_the_conditions_of_a_group_are_those_that_it_has_when_its_status_is_sent() -> None:
    versions = iter([seen("6", MINE)])
    server = GroupServer(6)
    server.others_write(type="Mine", status="True", extra="kept")
    server.version = 6
    api = FakeApi(answer=server.answer)
    write(
        api, WriteOrder(status("Inqueue", "Unschedulable"), "gu", newest_group=lambda: next(versions, None))
    )
    assert len(api.writes) == 1
    assert server.types == ["Mine", "Unschedulable"]


def test_a_condition_that_others_wrote_unseen_is_kept() -> None:
    server = GroupServer()
    server.others_write(type="Theirs", status="True", message="a while ago", observedGeneration=3)
    api = FakeApi(answer=server.answer)
    write(api, WriteOrder(status("Inqueue", "Unschedulable"), "gu", newest_group=lambda: seen("1")))
    assert [request.method for request in api.writes] == ["PATCH", "GET", "PATCH"]
    assert api.writes[1].path.endswith("/namespaces/ns/podgroups?fieldSelector=metadata.name%3Dweb")
    assert server.types == ["Theirs", "Unschedulable"]
    assert server.status["conditions"][0]["observedGeneration"] == 3


def test_a_group_that_others_write_all_the_time_is_patched_in_the_end() -> None:
    server = GroupServer()
    restless = 3

    def answer(request: Request) -> Answer:
        nonlocal restless
        response = server.answer(request)
        if request.method == "GET" and restless:
            restless -= 1
            server.others_write(type=f"Theirs{restless}", status="True")
        return response

    server.others_write(type="Theirs", status="True")
    write(
        FakeApi(answer=answer),
        WriteOrder(status("Inqueue", "Unschedulable"), "gu", newest_group=lambda: seen("1")),
    )
    assert set(server.types) == {"Theirs", "Theirs0", "Theirs1", "Theirs2", "Unschedulable"}


def test_the_status_of_a_group_that_was_created_anew_is_not_written() -> None:
    server = GroupServer(9, uid="another")
    api = FakeApi(answer=server.answer)
    outcome = write(api, WriteOrder(status("Inqueue", "Unschedulable"), "gu", newest_group=lambda: seen("1")))
    assert [request.method for request in api.writes] == ["PATCH", "GET"]
    assert server.status == {}
    assert outcome.failures == []


def test_what_was_written_of_a_group_and_has_not_come_back_yet_is_not_lost() -> None:
    server = GroupServer()
    api = FakeApi(answer=server.answer)

    async def run() -> None:
        writer = DecisionWriter(api, EventRecorder("v", "t", lambda: 0.0), lambda: True, lambda _: None)
        writer.start()
        writer.outbox.submit(
            [WriteOrder(status("Inqueue", "Unschedulable"), "gu", newest_group=lambda: seen("1"))]
        )
        await writer.flush()
        writer.outbox.submit(
            [WriteOrder(status("Running", "Scheduled"), "gu", newest_group=lambda: seen("1"))]
        )
        await writer.finish(5.0)

    asyncio.run(run())
    assert len(api.writes) == 2
    assert {condition["type"]: condition["message"] for condition in server.status["conditions"]} == {
        "Unschedulable": "Inqueue",
        "Scheduled": "Running",
    }


def test_statuses_of_a_group_that_wait_become_one() -> None:
    api = FakeApi()
    write(api, status("Inqueue", "Scheduled"), status("Unknown", "Unschedulable"))
    (patch,) = api.writes
    assert body(patch)["status"]["phase"] == "Unknown"
    assert len(body(patch)["status"]["conditions"]) == 2


def test_a_group_that_was_scheduled_meanwhile_is_not_told_that_it_could_not_be() -> None:
    api = FakeApi()
    write(api, status("Inqueue", "Unschedulable"), status("Running", "Scheduled"))
    (patch,) = api.writes
    assert [entry["type"] for entry in body(patch)["status"]["conditions"]] == ["Scheduled"]


def test_a_queue_no_longer_shows_what_it_no_longer_holds() -> None:
    api = FakeApi()
    write(
        api,
        WriteOrder(QueueStatus("q", {"cpu": "1", "memory": "0"}), shown=frozenset({"cpu", "nvidia.com/gpu"})),
    )
    (patch,) = api.writes
    assert patch.path.endswith("/queues/q/status")
    assert body(patch) == {"status": {"allocated": {"nvidia.com/gpu": None, "cpu": "1", "memory": "0"}}}


def test_a_status_is_tried_again_until_it_stands_or_a_newer_one_takes_its_place() -> None:
    api = FakeApi([BROKEN] * 40)
    write(api, status("Inqueue"))
    assert len(api.writes) == 41
    refused = [True] * 3

    def answer(request: Request) -> bytes | Exception:
        return BROKEN if refused and refused.pop() else b"{}"

    api = FakeApi(answer=answer)
    sent, superseded = asyncio.Event(), asyncio.Event()
    send = api.send

    async def slow(request: Request, timeout: float) -> bytes:
        sent.set()
        await superseded.wait()
        return await send(request, timeout)

    api.send = slow  # type: ignore[method-assign]

    async def run() -> None:
        writer = DecisionWriter(api, EventRecorder("v", "t", lambda: 0.0), lambda: 60.0, lambda _: None)
        writer.start()
        writer.outbox.submit([WriteOrder(status("Inqueue"))])
        writer.outbox.flush()
        await asyncio.wait_for(sent.wait(), 60)
        writer.outbox.submit([WriteOrder(status("Running"))])
        writer.outbox.flush()
        superseded.set()
        assert await writer.finish(60.0)

    asyncio.run(run())
    phases = [body(request)["status"]["phase"] for request in api.writes]
    assert phases == ["Inqueue", "Running", "Running", "Running"]


def test_a_server_that_asks_to_wait_is_waited_for() -> None:
    api = FakeApi([ApiError(429, retry_after=0.08), b"{}"])
    loop_times: list[float] = []
    original = api.send

    async def send(request: Request, timeout: float) -> bytes:
        loop_times.append(asyncio.get_running_loop().time())
        return await original(request, timeout)

    api.send = send  # type: ignore[method-assign]
    write(api, status("Inqueue"))
    assert loop_times[1] - loop_times[0] >= 0.08


def test_a_server_cannot_ask_for_more_than_a_while() -> None:
    api = FakeApi([ApiError(429, retry_after=1e8), b"{}"])
    write(api, status("Inqueue"))
    assert len(api.writes) == 2


def test_no_more_requests_are_in_flight_than_allowed_and_binds_go_first() -> None:
    api = FakeApi()
    api.delay = 0.001
    waiting = [PodCondition("ns", f"w-{n}", f"w{n}", "Unschedulable", "m") for n in range(20)]
    binds = [Bind("ns", f"b-{n}", f"b{n}", "n1", "ns/b") for n in range(20)]
    write(api, *waiting, *binds, workers=4)
    assert api.most_at_once == 4
    assert {request.method for request in api.writes[:20]} == {"POST"}


def test_a_bind_that_replaces_a_waiting_condition_goes_before_other_conditions() -> None:
    api = FakeApi()
    waiting = [PodCondition("ns", f"w-{n}", f"w{n}", "Unschedulable", "m") for n in range(3)]
    write(api, *waiting, condition("no room"), BIND, workers=1)
    assert [request.method for request in api.writes] == ["POST", "PATCH", "PATCH", "PATCH"]


def test_who_may_no_longer_write_writes_nothing_and_reports_nothing() -> None:
    api = FakeApi()
    outcome = write(api, BIND, EVICT, status("Running"), write_time_left=lambda: 0.0)
    assert not api.requests
    assert not outcome.failures
    assert not outcome.done


def test_a_leader_deposed_between_two_requests_sends_no_second() -> None:
    leads = [True]

    def answer(request: Request) -> bytes:
        leads.clear()
        return b"{}"

    api = FakeApi(answer=answer)
    outcome = write(api, EVICT, write_time_left=lambda: 60.0 * bool(leads))
    assert [request.method for request in api.requests] == ["PATCH"]
    assert not outcome.failures


def test_an_event_that_says_the_same_again_raises_a_count() -> None:
    api = FakeApi()
    again = Event("PodGroup", "ns", "web", "Normal", "Evict", "1/3 tasks")
    write(api, WriteOrder(again, "gu"), WriteOrder(again, "gu"))
    first, second = (request for request in api.requests if "/events" in request.path)
    assert (first.method, second.method) == ("POST", "PATCH")
    assert body(second)["count"] == 2
    assert body(first)["involvedObject"]["apiVersion"] == "scheduling.volcano.sh/v1beta1"


def test_an_event_whose_answer_was_lost_is_not_written_twice() -> None:
    api = FakeApi([LOST, CONFLICT])
    write(api, Event("Pod", "ns", "web-0", "Warning", "FailedScheduling", "m"))
    assert len({body(request)["metadata"]["name"] for request in api.requests}) == 1


def test_an_answer_that_makes_no_sense_fails_the_bind_and_nothing_else() -> None:
    outcome = write(FakeApi([CONFLICT, b"<html>"]), BIND)
    assert [failure.gone for failure in outcome.failures] == [False]


def test_of_shard_statuses_that_wait_the_last_is_written() -> None:
    api = FakeApi()
    write(api, ShardStatus("mine", ("n1",), (), ()), ShardStatus("mine", ("n2",), ("n3",), ("n1",)))
    (patch,) = api.writes
    assert (patch.method, patch.path) == ("PATCH", "/apis/shard.volcano.sh/v1alpha1/nodeshards/mine/status")
    assert body(patch)["status"] == {"nodesInUse": ["n2"], "nodesToAdd": ["n3"], "nodesToRemove": ["n1"]}


def test_one_gate_of_one_pod_is_taken_away() -> None:
    api = FakeApi()
    write(api, GateRemoval("ns", "web-0", "u1"))
    (patch,) = api.writes
    assert (patch.method, patch.path) == ("PATCH", "/api/v1/namespaces/ns/pods/web-0")
    gate = {"name": "scheduling.volcano.sh/queue-allocation-gate", "$patch": "delete"}
    assert body(patch) == {"metadata": {"uid": "u1"}, "spec": {"schedulingGates": [gate]}}
