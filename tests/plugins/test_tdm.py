"""Time division: revocable nodes, their hours, and the pods evicted after hours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from stromboli.engine.decisions import Evict
from stromboli.engine.points import Vote
from stromboli.engine.waiting.fixed_point import UnrepeatableReads
from stromboli.plugins.tdm import TdmArguments, _is_within
from stromboli.policy.arguments import parse_arguments
from stromboli.testing import Result, World
from stromboli.testing.world import NOON
from tests.manifests import Manifest, binds, group, node, pod, policy

ZONE = "volcano.sh/revocable-zone"
SOFT = {"volcano.sh/preemptable": "true"}
FIRM = {"volcano.sh/preemptable": "false"}
OPEN, CLOSED = "09:00-17:30", "18:00-19:00"


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _living_in("UTC", monkeypatch)


def _living_in(zone: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


def at(clock: str, day: int = 1) -> float:
    return datetime.fromisoformat(f"2026-11-{day:02}T{clock}+00:00").astimezone(UTC).timestamp()


def _world(*objects: Manifest, actions: str = "allocate", **zones: str) -> World:
    arguments = {f"tdm.revocable-zone.{name}": hours for name, hours in zones.items()}
    return World(policy=policy(actions, ("tdm", arguments))).add(*objects)


def _night(name: str = "night", zone: str = "night") -> Manifest:
    return node(name, labels={ZONE: zone}, cpu="8")


def _evicted(result: Result) -> str:
    return " ".join(sorted(decision.name for decision in result.decisions if isinstance(decision, Evict)))


# -- hours


@pytest.mark.parametrize(
    ("hours", "clock", "is_open"),
    [
        ("09:00-17:30", "08:59:59", False),
        ("09:00-17:30", "09:00:00", True),
        ("09:00-17:30", "17:30:00.900", True),
        ("09:00-17:30", "17:30:01", False),
        (" 9:00-17:30 ", "12:00:00", True),
        ("00:00-00:00", "00:00:00", True),
        ("00:00-00:00", "23:59:59", True),
        ("22:00-06:00", "23:00:00", True),
        ("22:00-06:00", "05:00:00", False),  # the quirk: its hours begin tonight
        ("10:00-10:00", "09:00:00", False),
    ],
)
def test_a_zone_is_open_within_its_hours_of_today(hours: str, clock: str, is_open: bool) -> None:
    world = _world(_night(), group("j", 1), pod("p", "j", annotations=SOFT, cpu=0), night=hours)
    closed = f"current time beyond revocable zone night:{hours}"
    assert _refusals(world, at(clock)) == {"night": "" if is_open else closed}


def _refusals(world: World, now: float = NOON, task: str = "p") -> dict[str, str]:
    world.step(now=now)
    return world.refusals("tdm", task)


def test_the_hours_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    world = _world(_night(), group("j", 1), pod("p", "j", annotations=SOFT, cpu=0), night=OPEN)
    assert _refusals(world, at("08:30:00"))["night"]
    for _ in _living_in("Europe/Rome", monkeypatch):
        assert not _refusals(world, at("08:30:00"))["night"]


def test_while_no_zone_opens_or_closes_cycles_are_skipped() -> None:
    world = _world(_night(), group("j", 1), pod("p", "j", annotations=SOFT, cpu=1), night=CLOSED)
    evicting, waiting, skipped = (world.step(now=at(f"17:00:{second:02}")) for second in (0, 1, 2))
    assert [evicting.outcome.repeated, waiting.outcome.repeated] == [False, False]
    assert skipped.outcome.repeated
    assert not world.step(now=at("17:01:00")).outcome.repeated, "a round of evictions is due"
    assert binds(world.step(now=at("18:00:00"))) == {"p": "night"}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Rome", "America/Havana", "Asia/Beirut"])
@pytest.mark.parametrize("hours", ["09:00-17:30", "22:00-06:00", "02:30-02:30", "00:00-00:00", "23:59-00:10"])
def test_the_answer_holds_until_the_moment_that_is_waited_for(
    hours: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on days on which the clock is put on or back."""
    for _ in _living_in(zone, monkeypatch):
        for day in (
            datetime(2026, month, day, tzinfo=UTC) for month, day in ((3, 7), (3, 28), (10, 24), (10, 31))
        ):
            moments = [day.timestamp() + 600 * step + second for step in range(3 * 144) for second in (0, 1)]
            answers, until = [_is_within(hours, UnrepeatableReads(moment)) for moment in moments], 0.0
            for before, after, moment in zip(answers, answers[1:], moments[1:], strict=False):
                if before != after:
                    assert moment >= until, (hours, zone, moment)
                if moment >= until:
                    clock = UnrepeatableReads(moment)
                    _is_within(hours, clock)
                    until = clock.until


def test_hours_that_cannot_be_read_are_a_warning_and_the_zone_stays_closed() -> None:
    for text in ("always", "9-17", "24:00-25:00", "09:00", "09:00-17:60"):
        arguments, problems = parse_arguments(TdmArguments, {"tdm.revocable-zone.night": text})
        assert arguments.zones == {"night": ""}
        assert "must be hours such as 09:00-17:30" in problems[0].message


def test_a_period_that_cannot_be_read_is_a_warning_and_a_minute() -> None:
    arguments, problems = parse_arguments(TdmArguments, {"tdm.evict.period": "often"})
    assert arguments.evict_period == "1m"
    assert "must be a duration" in problems[0].message


# -- nodes


def test_a_revocable_node_is_for_pods_that_may_leave_it_again() -> None:
    plain, nameless = node("plain", cpu="8"), node("nameless", labels={ZONE: ""}, cpu="8")
    pods = {"soft": SOFT, "marked": {ZONE: "*"}, "other": {ZONE: "night", **SOFT}, "silent": {}, "firm": FIRM}
    world = _world(plain, nameless, _night(), group("j", 1), night=OPEN)
    world.add(*(pod(name, "j", annotations=annotations, cpu=0) for name, annotations in pods.items()))
    refused = {name: _refusals(world, task=name)["night"] for name in pods}
    no = "not allow to dispatch to revocable node"
    assert refused == {"soft": "", "marked": "", "other": no, "silent": no, "firm": no}
    assert {_refusals(world, task=name)[on] for name in pods for on in ("plain", "nameless")} == {""}


def test_a_zone_without_hours_is_closed_and_its_reason_comes_first() -> None:
    world = _world(
        _night(),
        _night("day", "day"),
        group("j", 1),
        pod("p", "j", annotations=FIRM, cpu=0),
        day=CLOSED,
    )
    assert _refusals(world) == {
        "night": "revocable zone night not support",
        "day": f"current time beyond revocable zone day:{CLOSED}",
    }


def test_who_may_use_revocable_nodes_prefers_them_while_they_are_open() -> None:
    world = _world(
        node("plain", cpu="8"),
        _night(),
        _night("day", "day"),
        group("j", 1),
        night=OPEN,
        day=CLOSED,
    )
    world.add(pod("soft", "j", annotations=SOFT, cpu=0), pod("firm", "j", annotations=FIRM, cpu=0)).step()
    assert world.scores("tdm", "soft") == {"plain": 0.0, "night": 100.0, "day": 0.0}
    assert world.scores("tdm", "firm") == {"plain": 0.0, "night": 0.0, "day": 0.0}


def test_what_is_remembered_of_nodes_is_not_used_after_hours() -> None:
    """The same shape of pod, cycle after cycle: on the revocable node in its hours, elsewhere before and after."""
    world = _world(node("plain", cpu="8"), _night(), night=OPEN)
    nodes = []
    for number, clock in enumerate(("08:59:59", "09:00:00", "17:30:00", "17:30:01")):
        world.add(group(f"j{number}", 1), pod(f"p{number}", f"j{number}", annotations=SOFT, cpu="1"))
        nodes.append(binds(world.step(now=at(clock)))[f"p{number}"])
    assert nodes == ["plain", "night", "night", "plain"]


# -- jobs


def test_jobs_that_are_not_preemptable_come_first() -> None:
    annotations = {"soft": SOFT, "firm": FIRM, "silent": {}, "garbled": {"volcano.sh/preemptable": "perhaps"}}
    world = _world(*(group(name, 1, annotations=of) for name, of in annotations.items()))
    labelled = group("labelled", 1)
    labelled["metadata"]["labels"] = SOFT
    world.add(labelled).step()
    keys = {job.name: world.plugin("tdm").job_order(job) for job in world.cluster.jobs.values()}
    assert keys == {"soft": True, "firm": False, "silent": False, "garbled": False, "labelled": True}


def test_only_a_firm_job_that_waits_for_pods_starves() -> None:
    world = _world(
        _night(),
        group("soft", 1, annotations=SOFT),
        group("firm", 1),
        group("done", 1),
        night=OPEN,
    )
    world.add(pod("s", "soft", cpu=0), pod("f", "firm", cpu=0), pod("d", "done", on="night", cpu=0)).step()
    starving = {job.name: world.plugin("tdm").job_starving(job) for job in world.cluster.jobs.values()}
    assert starving == {"soft": False, "firm": True, "done": False}


def test_a_job_is_pipelined_once_its_minimum_is_placed_or_promised() -> None:
    world = _world(_night(), group("one", 1), group("two", 2, phase=""))
    world.add(
        pod("a", "one", on="night", cpu=0), pod("b", "two", on="night", cpu=0), pod("c", "two", cpu="1")
    ).step()
    votes = {job.name: world.plugin("tdm").job_pipelined(job) for job in world.cluster.jobs.values()}
    assert votes == {"one": Vote.PERMIT, "two": Vote.REJECT}


# -- victims of firm pods


def _named(world: World, preemptor: str) -> str:
    world.step()
    tasks = sorted(world.cluster.tasks.values(), key=lambda task: task.name)
    victims = world.plugin("tdm").preemptable(world.task(preemptor), tasks)
    return " ".join(task.name for task in victims)


def test_a_firm_pod_may_take_from_soft_ones_on_ordinary_nodes() -> None:
    world = _world(
        node("plain", cpu="8"),
        _night(),
        group("j", 1, annotations={"volcano.sh/jdb-max-unavailable": "9"}),
    )
    world.add(pod("soft", "j", on="plain", annotations=SOFT, cpu=0), pod("silent", "j", on="plain", cpu=0))
    world.add(
        pod("firm", "j", on="plain", annotations=FIRM, cpu=0),
        pod("away", "j", on="night", annotations=SOFT, cpu=0),
    )
    bound = pod("bound", "j", on="plain", annotations=SOFT, cpu=0)
    bound["status"]["phase"] = "Pending"
    world.add(bound, group("asks", 1))
    world.add(
        *(
            pod(f"asks-{n}", "asks", annotations=annotations, cpu=0)
            for n, annotations in enumerate((FIRM, SOFT, {}))
        )
    )
    world.add(pod("asks-3", "asks", annotations={**FIRM, ZONE: "*"}, cpu=0))
    assert [_named(world, f"asks-{n}") for n in range(4)] == ["silent soft", "", "", ""]


@pytest.mark.parametrize(
    ("annotations", "others", "budget"),
    [
        ({}, "", 1),
        ({"max-unavailable": "2"}, "", 2),
        ({"max-unavailable": "2"}, "Pending", 1),
        ({"max-unavailable": "1"}, "Pending", 0),
        ({"max-unavailable": "1"}, "Failed", 1),
        ({"max-unavailable": "30%"}, "", 2),
        ({"max-unavailable": "-1"}, "", 0),
        ({"max-unavailable": "many"}, "", 0),
        ({"max-unavailable": "1.5"}, "", 0),
        ({"max-unavailable": ""}, "", 1),
        ({"min-available": "1"}, "", 3),
        ({"min-available": "50%"}, "Pending", 1),
        ({"min-available": "4"}, "", 0),
        ({"min-available": "5"}, "", 1),  # the quirk: too few are running, and still one may go
        ({"min-available": "few"}, "", 4),
        ({"min-available": "9999999999"}, "", 4),
        ({"min-available": "3", "max-unavailable": "4"}, "", 1),
        ({"min-available": "", "max-unavailable": "4"}, "", 1),
    ],
)
def test_a_job_gives_as_many_as_its_budget_says(
    annotations: dict[str, str], others: str, budget: int
) -> None:
    """Four pods of it are running, and one more is as said."""
    budgets = {f"volcano.sh/jdb-{name}": text for name, text in annotations.items()}
    world = _world(node("plain", cpu="8"), group("j", 1, annotations=budgets), group("asks", 1, phase=""))
    world.add(
        *(pod(f"p{n}", "j", on="plain", cpu=0) for n in range(4)),
        pod("asks", "asks", annotations=FIRM, cpu=0),
    )
    if others:
        more = pod("other", "j", gates=["wait"], cpu=0)
        more["status"]["phase"] = others
        world.add(more)
    assert _named(world, "asks").split() == [f"p{n}" for n in range(budget)]


# -- victims after hours


def _after_hours(*objects: Manifest, **zones: str) -> World:
    return _world(
        _night(), node("plain", cpu="8"), *objects, actions="shuffle", **(zones or {"night": CLOSED})
    )


ANY = {"volcano.sh/jdb-max-unavailable": "100%"}


def test_after_hours_preemptable_pods_leave() -> None:
    world = _after_hours(
        group("j", 1, annotations=ANY),
        pod("a", "j", on="night", cpu=0),
        pod("b", "j", on="plain", cpu=0),
    )
    world.add(pod("c", "j", on="night", annotations=FIRM, cpu=0), pod("free", on="night", cpu=0))
    outcome = world.step()
    assert _evicted(outcome) == "a"
    (eviction,) = [decision for decision in outcome.decisions if isinstance(decision, Evict)]
    assert (eviction.reason, eviction.chosen_by) == ("shuffle", "tier 1 (tdm)")


def test_no_pod_is_evicted_from_an_open_zone_or_one_without_hours() -> None:
    objects = (group("j", 1, annotations=ANY), pod("a", "j", on="night", cpu=0))
    assert _evicted(_after_hours(*objects, night=OPEN).step()) == ""
    assert _evicted(_after_hours(*objects, day=CLOSED).step()) == ""


def test_of_each_job_so_many_leave_as_its_budget_says_the_last_first() -> None:
    world = _after_hours(
        group("j", 1), group("k", 1, annotations={"volcano.sh/jdb-min-available": "1"}, phase="")
    )
    world.add(*(pod(f"{job}-x-{n}", job, on="night", cpu=0) for job in "jk" for n in range(3)))
    assert _evicted(world.step()) == "j-x-2 k-x-1 k-x-2"


def test_rounds_of_evictions_are_a_period_apart_even_without_victims() -> None:
    world = _after_hours(group("j", 1))
    assert _evicted(world.step(now=NOON)) == ""
    world.add(*(pod(f"j-x-{n}", "j", on="night", cpu=0) for n in range(3)))
    assert [_evicted(world.step(now=NOON + after)) for after in (1, 59.9, 60, 61)] == ["", "", "j-x-2", ""]
    assert world.cluster.memory == {"tdm": {"evicted_at": NOON + 60}}


def test_a_round_that_was_lost_is_made_up_for() -> None:
    world = _after_hours(group("j", 1), pod("a", "j", on="night", cpu=0))
    world.engine.cycle(world.cluster, NOON - 3600)
    before: dict[str, Any] = dict(world.cluster.memory)
    plugin = world.plugin("tdm")
    plugin.closing = lambda session: 1 / 0
    world.add(pod("b", "j", on="night", cpu=0))
    assert world.engine.cycle(world.cluster, NOON).lost
    assert world.cluster.memory == before
    assert _evicted(world.step(now=NOON + 1)) == "b"
