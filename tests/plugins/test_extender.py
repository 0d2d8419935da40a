"""A server of the user: what it is sent, what each answer does, and that no answer can do harm."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stromboli.engine.points import Vote
from stromboli.model.status import Status
from stromboli.plugins.extender import BUDGET, MAX_FAILURES, Extender, ExtenderClient, ExtenderFailed
from stromboli.testing import World
from stromboli.testing.world import NOON
from stromboli.transport import CallFailed, post
from tests.manifests import binds, group, job_named, node, phases, pod, policy
from tests.serving import BAD, Asked, Server, behaving, dead, serving

Says = Any
Post = Callable[[str, bytes, float], bytes]
VERBS = {
    "open": "onSessionOpenVerb",
    "close": "onSessionCloseVerb",
    "predicate": "predicateVerb",
    "prioritize": "prioritizeVerb",
    "preemptable": "preemptableVerb",
    "reclaimable": "reclaimableVerb",
    "overused": "queueOverusedVerb",
    "enqueueable": "jobEnqueueableVerb",
    "enqueued": "jobEnqueuedVerb",
    "ready": "jobReadyVerb",
    "allocate": "allocateFuncVerb",
    "deallocate": "deallocateFuncVerb",
}


def make_world(
    url: str, verbs: str, *others: str, actions: str = "allocate", calls: Post | None = post, **more: Any
) -> World:
    """Two nodes, and a job of one pod that waits; no `calls` in a rehearsal."""
    arguments = {"extender.urlPrefix": url, **{f"extender.{key}": value for key, value in more.items()}}
    arguments |= {f"extender.{VERBS[verb]}": verb for verb in verbs.split()}
    services = {"post": calls, "clock": time.monotonic} if calls else None
    world = World(policy=policy(actions, *others, ("extender", arguments)), services=services)
    return world.add(node("a", cpu="4"), node("b", cpu="4"), group("j", 1), pod("p", "j", cpu="1"))


def questions(server: Server, verb: str) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in server.asked if request.path == f"/{verb}"]


@contextmanager
def saying(**answers: Any) -> Iterator[Server]:
    """A server that answers each verb with a value, or with what a function makes of the question."""

    def answer(asked: Asked) -> bytes:
        answer = answers.get(asked.path.lstrip("/"), {})
        return json.dumps(answer(json.loads(asked.body)) if callable(answer) else answer).encode()

    with serving(answer) as server:
        yield server


# -- filters and scores


def only_b(question: dict[str, Any]) -> dict[str, Any]:
    return {} if question["node"]["Name"] == "b" else {"status": "not this one", "code": 3}


def test_a_node_that_the_server_refuses_takes_no_pod() -> None:
    with saying(predicate=only_b) as server:
        assert binds(make_world(server.url + "/", "predicate").step()) == {"p": "b"}
    first = questions(server, "predicate")[0]
    assert (server.asked[0].method, server.asked[0].headers["Content-Type"]) == ("POST", "application/json")
    assert first["task"]["Name"] == "p"
    assert first["task"]["Resreq"] == {"MilliCPU": 1000, "Memory": 0, "ScalarResources": {"pods": 1}}
    assert first["task"]["Status"] == 1
    assert first["node"]["Idle"]["MilliCPU"] == 4000


@pytest.mark.parametrize(
    ("answer", "curable"),
    [
        ({"status": "no", "code": 2}, True),
        ({"status": "no", "code": 3}, False),
        ({"status": "no", "code": 0}, False),
        ({"status": "no"}, False),
    ],
    ids=str,
)
def test_reasons_are_shown_and_code_2_may_be_cured(answer: Says, curable: bool) -> None:
    with saying(predicate=answer) as server:
        world = make_world(server.url, "predicate")
        result = world.step()
        task = world.task("p")
        verdict = result.outcome.session.attempts.verdicts[job_named(world.cluster, "j")][task]
    assert verdict.message == "0/2 nodes are unavailable: 2 no."
    assert [reason.curable for reason in verdict.reasons] == [curable]
    assert len(server.asked) == 2, "why no node would do is not asked once more"


def test_an_empty_message_passes_whatever_the_code() -> None:
    with saying(predicate={"status": "", "code": 3}) as server:
        assert binds(make_world(server.url, "predicate").step()) == {"p": "a"}


def test_the_server_scores_the_candidates_together() -> None:
    with saying(prioritize={"nodeScore": {"a": 1, "b": 2.5, "unknown": 99}}) as server:
        assert binds(make_world(server.url, "prioritize").step()) == {"p": "b"}
    [question] = questions(server, "prioritize")
    assert [node["Name"] for node in question["nodes"]] == ["a", "b"]


def test_one_candidate_is_not_scored() -> None:
    with saying(prioritize={"nodeScore": {}}, predicate=only_b) as server:
        assert binds(make_world(server.url, "predicate prioritize").step()) == {"p": "b"}
    assert questions(server, "prioritize") == []


@pytest.mark.parametrize(
    "answer", [{"nodeScore": None}, {"errorMessage": "no", "nodeScore": {"a": 1}}, {}], ids=str
)
def test_without_scores_no_node_is_chosen_even_if_ignorable(answer: Says) -> None:
    with saying(prioritize=answer) as server:
        result = make_world(server.url, "prioritize", ignorable=True).step()
    assert binds(result) == {}
    assert [decision.plugin for decision in result.outcome.session.failures] == ["extender"]


def test_only_tasks_with_a_managed_resource_are_asked_about() -> None:
    with saying(predicate={"status": "no"}) as server:
        world = make_world(server.url, "predicate", managedResources=["example.com/card"])
        assert binds(world.step()) == {"p": "a"}
        assert server.asked == []
        world.add(node("c", **{"example.com/card": "2"}), group("k", 1))
        world.add(pod("q", "k", cpu=0, **{"example.com/card": "1"}))
        assert binds(world.step()) == {}
        assert {question["task"]["Name"] for question in questions(server, "predicate")} == {"q"}


# -- jobs, queues, moves


def test_the_server_votes_at_the_gate() -> None:
    for status, phase in ((1, "Inqueue"), (0, "Inqueue"), (-1, "Pending"), (-(10**30), "Pending")):
        with saying(enqueueable={"status": status}) as server:
            world = make_world(server.url, "enqueueable enqueued", actions="enqueue")
            world.add(group("k", 1, phase="Pending", minResources={"cpu": "1"}))
            world.step()
            assert phases(world)["k"] == phase
        job_names = [question["job"]["Name"] for question in questions(server, "enqueued")]
        assert job_names == (["k"] if phase == "Inqueue" else [])
        assert questions(server, "enqueueable")[0]["job"]["MinAvailable"] == 1


def test_a_queue_may_be_overused_and_a_job_not_ready() -> None:
    with saying(overused=lambda question: {"overused": question["queue"]["Name"] == "default"}) as server:
        assert binds(make_world(server.url, "overused").step()) == {}
    with saying(ready={"status": False}) as server:
        assert binds(make_world(server.url, "ready").step()) == {}
    with saying(ready={"status": True}, overused={"overused": False}) as server:
        assert binds(make_world(server.url, "ready overused").step()) == {"p": "a"}


def test_a_move_may_be_refused() -> None:
    with saying(allocate={"errorMessage": "no licence"}) as server:
        world = make_world(server.url, "allocate deallocate")
        assert binds(world.step()) == {}
        assert world.task("p").status is Status.PENDING
    [question] = questions(server, "allocate")
    assert (question["task"]["NodeName"], question["task"]["Status"]) == ("a", 2)
    assert questions(server, "deallocate") == [], "a move that was refused has not been"


def test_the_undo_of_a_move_is_reported_and_cannot_be_refused() -> None:
    with saying(deallocate={"errorMessage": "never"}, ready={"status": False}) as server:
        world = make_world(server.url, "allocate deallocate ready")
        assert binds(world.step()) == {}
        assert world.task("p").status is Status.PENDING
    assert len(questions(server, "allocate")) == len(questions(server, "deallocate")) == 1


def test_the_server_hears_of_the_whole_cluster_and_of_the_end() -> None:
    with saying() as server:
        make_world(server.url, "open close").step()
    assert [request.path for request in server.asked] == ["/open", "/close"]
    [opened] = questions(server, "open")
    assert set(opened) == {"Jobs", "Nodes", "Queues", "NamespaceInfo", "RevocableNodes", "NodeList"}
    assert opened["NodeList"] == ["a", "b"]
    job = opened["Jobs"]["default/j"]
    assert (job["Queue"], job["MinAvailable"], len(job["Tasks"])) == ("default", 1, 1)
    assert opened["Queues"]["default"]["Weight"] == 1
    assert opened["Nodes"]["a"]["Node"]["metadata"]["name"] == "a"


def plugin(url: str, verbs: str, **more: Any) -> tuple[World, Extender]:
    """A plugin in a session that has run, for questions that no action of the test asks."""
    world = make_world(url, verbs, actions="backfill", **more)
    world.add(pod("v1", "j", on="a", cpu="1"), pod("v2", "j", on="a", cpu="1"))
    world.step()
    return world, world.plugin("extender")


def victims(question: dict[str, Any]) -> dict[str, Any]:
    named = [task for task in question["evictees"] if task["Name"] == "v2"]
    return {"status": 1, "victims": [*named, {"UID": "somebody", "Name": "else"}]}


@pytest.mark.parametrize("point", ["preemptable", "reclaimable"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (victims, ["v2"]),
        ({"status": 0, "victims": []}, None),
        ({"status": 1, "victims": None}, []),
        ({"status": -1}, []),
        ({"status": 1, "victims": [{"Name": "v1"}]}, []),  # a victim without UID is no answer
        ({"status": "yes"}, []),
    ],
    ids=range(6),
)
def test_the_server_names_victims_among_the_candidates(
    point: str, answer: Says, expected: list[str] | None
) -> None:
    with saying(**{point: answer}) as server:
        world, extender = plugin(server.url, point)
        named = getattr(extender, point)(world.task("p"), [world.task("v1"), world.task("v2")])
    assert (None if named is None else [task.name for task in named]) == expected


# -- a server that fails


def no_answer(asked: Asked) -> tuple[int, bytes]:
    return 500, b"{}"


@pytest.mark.parametrize("ignorable", [True, False])
def test_what_a_failing_server_means_at_each_point(ignorable: bool) -> None:
    every = "predicate preemptable reclaimable overused enqueueable enqueued ready"
    with serving(no_answer) as server:
        world, extender = plugin(server.url, every, ignorable=ignorable)
        job, queue, task = job_named(world.cluster, "j"), job_named(world.cluster, "j").queue, world.task("p")
        assert queue is not None
        assert extender.preemptable(task, [world.task("v1")]) == []
        assert extender.reclaimable(task, [world.task("v1")]) == []
        assert extender.overused(queue) is not ignorable
        assert extender.job_enqueueable(job) is (Vote.PERMIT if ignorable else Vote.REJECT)
        assert extender.job_ready(job) is not ignorable
        extender.job_enqueued(job)


def test_a_failing_filter_passes_or_gives_its_error_as_the_reason() -> None:
    with serving(no_answer) as server:
        assert binds(make_world(server.url, "predicate", ignorable=True).step()) == {"p": "a"}
        world = make_world(server.url, "predicate")
        result = world.step()
        [(_, verdict)] = result.outcome.session.attempts.verdicts[job_named(world.cluster, "j")].items()
    assert verdict.histogram() == {
        f"failed predicate with extender at URL {server.url}/predicate, code 500": 2
    }


def test_failing_scores_are_left_out_or_end_the_search() -> None:
    with serving(no_answer) as server:
        assert binds(make_world(server.url, "prioritize", ignorable=True).step()) == {"p": "a"}
        result = make_world(server.url, "prioritize").step()
        assert binds(result) == {}
        assert [(decision.plugin, decision.point) for decision in result.outcome.session.failures] == [
            ("extender", "node_scores")
        ]


def test_a_failing_listener_refuses_unless_ignorable() -> None:
    with serving(no_answer) as server:
        assert binds(make_world(server.url, "allocate", ignorable=True).step()) == {"p": "a"}
        assert binds(make_world(server.url, "allocate").step()) == {}


def test_a_server_that_does_not_hear_of_the_cluster_is_not_asked() -> None:
    def deaf(asked: Asked) -> Any:
        return (500, b"") if asked.path == "/open" else b'{"status": "no"}'

    with serving(deaf) as server:
        assert binds(make_world(server.url, "open predicate").step()) == {"p": "a"}
        assert [request.path for request in server.asked] == ["/open"]
        assert binds(make_world(server.url, "open predicate", ignorable=True).step()) == {}


RUBBISH = [
    b"",
    b"no",
    b"[]",
    b"null",
    b'{"status": 5, "code": "x", "nodeScore": [], "errorMessage": 1, "overused": "yes", "victims": {}}',
    b'{"status": null, "nodeScore": {"a": "much"}, "overused": null, "errorMessage": null}',
    b'{"status": {"a": [1]}, "nodeScore": {"a": 1e999}, "overused": 1, "errorMessage": []}',
    b"[" * 50_000,
    b"\xff\x00",
]


@pytest.mark.parametrize("body", RUBBISH, ids=range(len(RUBBISH)))
@pytest.mark.parametrize("verb", ["predicate", "prioritize", "overused", "ready", "allocate"])
def test_an_invalid_response_counts_as_none(verb: str, body: bytes) -> None:
    with serving(lambda asked: body) as server:
        result = make_world(server.url, verb, ignorable=True).step()
        assert result.lost == ""
        assert binds(result) == ({} if verb == "ready" else {"p": "a"})


@pytest.mark.parametrize("badly", BAD, ids=lambda answer: answer.__name__)
def test_a_bad_server_costs_a_cycle_no_more_than_three_calls(
    badly: Callable[[socket.socket, threading.Event], None],
) -> None:
    calls: list[float] = []

    def counted(url: str, body: bytes, timeout: float) -> bytes:
        calls.append(timeout)
        return post(url, body, timeout)

    with behaving(badly) as url:
        world = make_world(
            url, "predicate overused allocate", calls=counted, ignorable=True, httpTimeout="200ms"
        )
        for index in range(30):
            world.add(node(f"n{index}", cpu="4"))
        assert binds(world.step()) == {"p": "a"}
    assert calls == [0.2] * MAX_FAILURES


def test_a_dead_server_is_asked_again_in_the_next_cycle() -> None:
    world = make_world(dead(), "predicate", ignorable=True)
    assert binds(world.step()) == {"p": "a"}
    with saying(predicate=only_b) as server:
        world = make_world(server.url, "predicate", ignorable=True)
        server.answer, good = no_answer, server.answer
        assert binds(world.step()) == {"p": "a"}
        asked = len(server.asked)
        assert asked <= MAX_FAILURES
        server.answer = good
        world.add(group("k", 1), pod("q", "k", cpu="1"))
        assert binds(world.step())["q"] == "b"


def test_the_time_of_all_calls_of_a_cycle_is_bounded() -> None:
    now = [0.0]
    given: list[float] = []

    def slow(url: str, body: bytes, timeout: float) -> bytes:
        given.append(timeout)
        now[0] += timeout
        return b"{}"

    client = ExtenderClient("http://x", 8.0)
    client.begin(slow, lambda: now[0])
    for _ in range(100):
        try:
            client.notify("verb", {})
        except ExtenderFailed as error:
            assert "not called again in this cycle" in str(error)
    assert given == [8, 8, 8, 6]
    assert now[0] == BUDGET
    client.begin(slow, lambda: now[0])
    client.notify("verb", {})


def test_secrets_in_the_address_are_not_shown() -> None:
    def refused(url: str, body: bytes, timeout: float) -> bytes:
        raise CallFailed("x", 403)

    client = ExtenderClient("http://me:s3cret@host/base/", 1.0)
    client.begin(refused, time.monotonic)
    for _ in range(MAX_FAILURES + 1):
        with pytest.raises(ExtenderFailed) as failed:
            client.notify("verb", {})
        assert "s3cret" not in str(failed.value)


def test_a_timeout_that_is_none_is_a_second() -> None:
    timeouts: list[float] = []

    def answered(url: str, body: bytes, timeout: float) -> bytes:
        timeouts.append(timeout)
        return b"{}"

    make_world("http://x", "open", calls=answered, httpTimeout="soon").step(now=NOON)
    assert timeouts == [1.0]


def test_in_a_rehearsal_the_server_is_not_called() -> None:
    with saying(predicate={"status": "no"}) as server:
        world = make_world(server.url, " ".join(VERBS), calls=None)
        assert binds(world.step()) == {"p": "a"}
    assert server.asked == []
