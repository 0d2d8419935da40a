"""fairshare: users with less recent usage come first, usage decays, and a restart keeps it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import Queue
from stromboli.engine.cycle import Engine
from stromboli.engine.decisions import Decision, Event, QueueAnnotation
from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.plugins.fairshare import (
    MAX_BYTES,
    MAX_GAP,
    MAX_USERS,
    Accounts,
    Decay,
    UsageRecord,
    bring_up_to_date,
    from_annotation,
    new_history,
    rounded,
    to_annotation,
)
from stromboli.policy.policy import PolicyError, load_policy
from stromboli.testing import Result, World
from stromboli.testing.world import NOON
from tests.properties.living import LivingWorld, binds, plain
from tests.properties.strategies import examples, worlds

CATALOG = load_catalog()
DAY = 86400.0


def policy(actions: str = "allocate", **arguments: Any) -> str:
    plugins = [{"name": "gang"}, {"name": "fairshare", "arguments": arguments}, {"name": "predicates"}]
    return json.dumps({"actions": actions, "tiers": [{"plugins": plugins}]})


def job(world: World, name: str, user: str, **terms: Any) -> None:
    terms = {"cpu": 1, "phase": "Inqueue", **terms}
    world.job(name, annotations={"stromboli.sh/user": user}, **terms)


def finish(world: World, name: str) -> None:
    """A job is done: its pod, and so its whole PodGroup, is gone."""
    task = world.task(f"{name}-0")
    group = task.job.group
    world.rehearsal.vanish(task)
    world.rehearsal.intake.drop(group)


def usages(world: World, queue: str = "default", half_life: float = DAY) -> dict[str, float]:
    decay, users = Decay(half_life), world.cluster.memory["fairshare"]["queues"][queue]["users"]
    return {user: decay.usage(past, world.rehearsal.now()) for user, past in sorted(users.items())}


def annotations(result: Result) -> list[QueueAnnotation]:
    return [decision for decision in result.decisions if isinstance(decision, QueueAnnotation)]


def one_slot(*users: str, **more: Any) -> World:
    """A machine for one job, and one waiting job of each user, the first user's the oldest."""
    world = World(nodes="n1 cpu=1", **more)
    for user in users:
        job(world, f"{user}-job", user)
    return world


def run_in_turns(world: World, users: dict[str, int], seconds: float, until: float, **arguments: Any) -> None:
    """Every user always has jobs waiting; a job runs from one cycle to the next."""
    count = 0
    text = policy(**arguments)
    result = None
    begin = world.rehearsal.now()
    while world.rehearsal.now() < begin + until:
        for user, most in users.items():
            for _ in range(most):
                job(world, f"{user}-{count}", user)
                count += 1
        result = world.run(policy=text) if result is None else world.step()
        bound = [pod_key.rpartition("-")[0].removeprefix("default/") for pod_key in result.binds]
        world.sleep(seconds - 1)
        for name in bound:
            finish(world, name)
        for task in list(world.cluster.tasks.values()):
            finish(world, task.job.name)


# -- who comes first


def test_who_had_less_lately_comes_first() -> None:
    world = World(nodes="n1 cpu=1")
    job(world, "first", "ann")
    world.run(policy=policy())
    world.sleep(300).step()
    finish(world, "first")
    job(world, "second", "ann")
    job(world, "other", "bob")
    assert world.step().binds == {"default/other-0": "n1"}


def test_without_a_name_the_namespace_is_the_user() -> None:
    world = World(nodes="n1 cpu=1").job("first", namespace="red", cpu=1, phase="Inqueue")
    world.run(policy=policy())
    world.sleep(300).step()
    assert usages(world).keys() == {"red"}
    finish(world, "first")
    world.job("second", namespace="red", cpu=1, phase="Inqueue")
    world.job("other", namespace="blue", cpu=1, phase="Inqueue")
    assert world.step().binds == {"blue/other-0": "n1"}


@pytest.mark.parametrize(("key", "users"), [("team", {"red"}), ("", {"default"})])
def test_the_key_that_names_a_user_is_an_argument(key: str, users: set[str]) -> None:
    group = {
        "kind": "PodGroup",
        "metadata": {"name": "a", "labels": {"team": "red"}},
        "spec": {"minMember": 1},
        "status": {"phase": "Inqueue"},
    }
    world = World(nodes="n1 cpu=1").job("a", cpu=1)
    world.add(group).run(policy=policy(userKey=key))
    assert usages(world).keys() == users


def test_a_name_that_is_far_too_long_is_no_name() -> None:
    world = World(nodes="n1 cpu=1")
    job(world, "a", "x" * 300)
    world.run(policy=policy())
    assert usages(world).keys() == {"default"}


def test_users_take_turns_within_a_cycle() -> None:
    world = World(nodes="n1 cpu=4")
    for number in range(4):
        job(world, f"ann-{number}", "ann")
    for number in range(4):
        job(world, f"bob-{number}", "bob")
    assert list(world.run(policy=policy()).binds) == [
        "default/ann-0-0",
        "default/bob-0-0",
        "default/ann-1-0",
        "default/bob-1-0",
    ]


def test_users_take_turns_however_much_they_had() -> None:
    world = World(nodes="n1 cpu=10")
    saved = {"v": 1, "at": NOON, "queue": [1e5, 0], "users": {"ann": [5e4, 0], "bob": [5e4, 0]}}
    world.rehearsal.annotate("default", names.FAIR_SHARE, json.dumps(saved))
    for user in ("ann", "bob"):
        for number in range(10):
            job(world, f"{user}-{number}", user)
    assert sum("bob" in pod for pod in world.run(policy=policy()).binds) == 5


def test_the_tasks_of_elastic_jobs_take_turns() -> None:
    world = World(nodes="n1 cpu=6")
    job(world, "ann-job", "ann", pods=6, minimum=1)
    job(world, "bob-job", "bob", pods=6, minimum=1)
    assert world.run(policy=policy()).bound_per_job == {"default/ann-job": 3, "default/bob-job": 3}


def test_without_looking_ahead_the_past_alone_decides() -> None:
    world = World(nodes="n1 cpu=4")
    for number in range(4):
        job(world, f"ann-{number}", "ann")
    job(world, "bob-0", "bob")
    result = world.run(policy=policy(lookAhead="0s"))
    assert [name.split("-")[0] for name in result.binds] == ["default/ann"] * 4


def test_two_users_of_one_queue_come_to_equal_usage() -> None:
    world = World(nodes="n1 cpu=5")
    run_in_turns(world, {"ann": 5}, seconds=300, until=1800, lookAhead="10m")
    before = usages(world)["ann"]
    run_in_turns(world, {"ann": 5, "bob": 5}, seconds=300, until=5400, lookAhead="10m")
    after = usages(world)
    assert before > 1500
    assert after["ann"] == pytest.approx(after["bob"], rel=0.05)
    assert after["ann"] + after["bob"] == pytest.approx(7200, rel=0.1)


def test_a_user_of_twice_the_weight_comes_to_twice_the_usage() -> None:
    world = World(nodes="n1 cpu=3")
    run_in_turns(world, {"ann": 3, "bob": 3}, seconds=300, until=9000, weights={"bob": 2})
    usage = usages(world)
    assert usage["bob"] == pytest.approx(2 * usage["ann"], rel=0.1)


def test_usage_is_per_queue() -> None:
    world = World(nodes="n1 cpu=2", queues="red; blue")
    job(world, "ann-red", "ann", queue="red")
    job(world, "bob-blue", "bob", queue="blue")
    world.run(policy=policy())
    world.sleep(300).step()
    assert usages(world, "red").keys() == {"ann"}
    assert usages(world, "blue").keys() == {"bob"}


def test_queues_come_by_their_usage_if_asked() -> None:
    for between, winner in ((True, "blue"), (False, "red")):
        world = World(nodes="n1 cpu=1", queues="red; blue")
        job(world, "first", "ann", queue="red")
        world.run(policy=policy(betweenQueues=between))
        world.sleep(300).step()
        finish(world, "first")
        job(world, "red", "bob", queue="red")
        job(world, "blue", "cid", queue="blue")
        assert world.step().binds == {f"default/{winner}-0": "n1"}


def test_queues_of_more_weight_may_have_more() -> None:
    world = World(nodes="n1 cpu=6", queues="red; blue weight=2")
    for number in range(6):
        job(world, f"red-{number}", "ann", queue="red")
        job(world, f"blue-{number}", "ann", queue="blue")
    bound = world.run(policy=policy(betweenQueues=True)).binds
    assert sum("blue" in pod for pod in bound) == 4


# -- what counts, and for how long


def test_usage_is_the_dominant_share_times_seconds() -> None:
    world = World(nodes="n1 cpu=4,memory=4Gi")
    job(world, "a", "ann", cpu=1, memory="2Gi")
    world.run(policy=policy())
    world.sleep(99).step()
    assert usages(world)["ann"] == pytest.approx(50, rel=1e-3)


def test_a_job_shorter_than_a_cycle_counts_too() -> None:
    world = one_slot("ann")
    world.run(policy=policy())
    world.sleep(99)
    finish(world, "ann-job")
    world.step()
    assert usages(world)["ann"] == pytest.approx(100, rel=1e-3)


def test_half_is_forgotten_in_a_half_life() -> None:
    world = one_slot("ann")
    world.run(policy=policy(halfLife="1h"))
    for _ in range(6):
        world.sleep(499).step()
    finish(world, "ann-job")
    world.step()
    before = usages(world, half_life=3600)["ann"]
    world.sleep(3599).step()
    assert usages(world, half_life=3600)["ann"] == pytest.approx(before / 2, rel=1e-3)


def test_who_was_greedy_long_ago_is_no_longer_last() -> None:
    world = World(nodes="n1 cpu=1")
    job(world, "old", "ann")
    world.run(policy=policy(halfLife="1h"))
    world.sleep(598).step()
    finish(world, "old")
    world.step()
    world.sleep(10 * DAY)
    job(world, "recent", "bob")
    world.step()
    world.sleep(60).step()
    finish(world, "recent")
    job(world, "bob-again", "bob")
    job(world, "ann-again", "ann")
    assert world.step().binds == {"default/ann-again-0": "n1"}


def test_a_gap_counts_no_longer_than_ten_minutes() -> None:
    world = one_slot("ann")
    world.run(policy=policy(halfLife="240h"))
    world.sleep(5 * DAY).step()
    assert usages(world, half_life=10 * DAY)["ann"] == pytest.approx(MAX_GAP, rel=1e-3)


def test_time_that_runs_backwards_counts_nothing() -> None:
    world = one_slot("ann")
    world.run(policy=policy())
    world.sleep(99).step()
    before = usages(world)["ann"]
    world.sleep(-5001).step()
    assert usages(world)["ann"] == pytest.approx(before, rel=1e-6)
    world.sleep(99).step()
    assert usages(world)["ann"] == pytest.approx(before + 100, rel=1e-2)


def test_however_often_it_is_asked_usage_is_the_same() -> None:
    decay = Decay(DAY)
    once = past = UsageRecord(1000.0, 0.0, 0.25)
    for now in range(0, 3600, 7):
        past = decay.at(past, now, 0.25)
    assert past.usage == pytest.approx(decay.usage(once, past.at), rel=1e-6)


# -- memory


def rebuilt(world: World) -> World:
    """A cluster made of the same objects, and nothing remembered but what stands in them."""
    world.rehearsal.sync()
    fresh = World(nodes="n1 cpu=1", now=world.rehearsal.now())
    for queue in world.cluster.queues.values():
        fresh.rehearsal.intake.put(copy.deepcopy(queue.object))
    for known in world.cluster.jobs.values():
        user = known.group.metadata.annotations["stromboli.sh/user"]
        where = {"running_on": "n1"} if known.allocated else {}
        job(fresh, known.name, user, **where)
    return fresh.sleep(1)


def test_a_restart_forgets_nothing() -> None:
    text = policy(saveEvery="0s")
    world = World(nodes="n1 cpu=1")
    world.run(policy=text)
    for number, user in enumerate(("ann", "bob", "ann", "cid", "ann", "bob")):
        job(world, f"run-{number}", user)
        world.step()
        world.sleep(37 + 11 * number).step()
        finish(world, f"run-{number}")
        world.step()
    for user in ("ann", "bob", "dan", "cid"):
        job(world, f"{user}-next", user)
    fresh = rebuilt(world)
    order = []
    for _ in range(4):
        result, fresh_result = world.step(), fresh.run(policy=text)
        assert world.rehearsal.now() == fresh.rehearsal.now()
        assert result.binds == fresh_result.binds
        assert world.cluster.memory == fresh.cluster.memory
        order += result.binds
        for which in (world, fresh):
            which.sleep(10)
            finish(which, next(iter(result.binds)).removeprefix("default/").removesuffix("-0"))
    assert order == [f"default/{user}-next-0" for user in ("dan", "cid", "bob", "ann")]


def test_memory_is_plain_and_survives_a_dump() -> None:
    world = one_slot("ann", "bob")
    world.run(policy=policy(), cycles=5)
    world.sleep(200).step()
    before = world.cluster.memory["fairshare"]
    world.cluster.memory = json.loads(json.dumps(world.cluster.memory))
    world.step()
    after = world.cluster.memory["fairshare"]
    assert after is not before
    assert after["queues"] == before["queues"]


def test_a_broken_dump_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    world = one_slot("ann")
    world.cluster.memory["fairshare"] = {"at": "noon", "queues": []}
    assert world.run(policy=policy()).binds == {"default/ann-job-0": "n1"}
    assert "fairshare: its memory is ignored" in caplog.text


def test_a_lost_cycle_is_not_remembered() -> None:
    class Clumsy(Plugin):
        name = "clumsy"

        def closing(self, session: object) -> None:
            raise RuntimeError("oops")

    world = one_slot("ann")
    world.job("holder", cpu=0)
    text = policy(saveEvery="0s").replace('"predicates"', '"clumsy"')
    assert world.run(policy=text, plugin_classes=[Clumsy]).lost
    assert world.cluster.memory["fairshare"]["queues"] == {}


# -- the annotation


def test_a_change_is_saved_once_it_is_a_minute_old() -> None:
    world = one_slot("ann")
    result = world.run(policy=policy(), cycles=59)
    assert annotations(result) == []
    [saved] = annotations(world.step(3))
    assert (saved.name, saved.key) == ("default", names.FAIR_SHARE)
    assert json.loads(saved.value) == {
        "v": 1,
        "at": NOON + 60,
        "queue": [59.9855618, 1.0],
        "users": {"ann": [59.9855618, 1.0]},
    }
    world.rehearsal.sync()
    assert world.cluster.queues["default"].annotations[names.FAIR_SHARE] == saved.value


def test_nothing_is_saved_when_nothing_changed() -> None:
    world = one_slot("ann")
    world.run(policy=policy())
    finish(world, "ann-job")
    world.step(100)
    assert annotations(world.step(2000)) == []


def test_while_something_is_held_it_is_saved_every_ten_minutes() -> None:
    world = one_slot("ann")
    world.run(policy=policy(), cycles=70)
    assert len(annotations(world.step(1800))) == 3


def test_ten_thousand_users_fit() -> None:
    chance = random.Random(1)
    history = new_history(0.0)
    history["users"] = {
        f"user-{number}-{'ü' * (number % 90)}": UsageRecord(rounded(chance.random() * 1e6), 0.0, 0.0)
        for number in range(10_000)
    }
    bring_up_to_date(history, Decay(DAY), 60.0)
    text = to_annotation(history, 60.0)
    kept = from_annotation(text, Decay(DAY), 60.0)["users"]
    assert len(text.encode()) <= MAX_BYTES
    assert 50 < len(kept) <= MAX_USERS
    dropped = history["users"].keys() - kept.keys()
    assert min(past.usage for past in kept.values()) >= max(history["users"][user].usage for user in dropped)
    assert all(history["users"][user] == past for user, past in kept.items())


def test_short_names_are_kept_up_to_the_number() -> None:
    history = new_history(0.0)
    history["users"] = {f"u{number}": UsageRecord(float(number + 1), 0.0, 0.0) for number in range(1000)}
    assert len(from_annotation(to_annotation(history, 0.0), Decay(DAY), 0.0)["users"]) == MAX_USERS


def test_who_is_as_good_as_forgotten_is_forgotten() -> None:
    history = new_history(0.0)
    history["users"] = {
        "ann": UsageRecord(1.0, 0.0, 0.0),
        "bob": UsageRecord(1.0, 0.0, 0.5),
        "cid": UsageRecord(1e9, 0.0, 0.0),
    }
    bring_up_to_date(history, Decay(DAY), 30 * DAY)
    assert history["users"].keys() == {"bob", "cid"}


BAD = {
    "no JSON": "{",
    "another version": '{"v":2,"at":0,"queue":[0,0],"users":{}}',
    "below zero": '{"v":1,"at":0,"queue":[0,0],"users":{"ann":[-1,0]}}',
    "beyond all numbers": '{"v":1,"at":0,"queue":[0,0],"users":{"ann":[1e999,0]}}',
    "no number": '{"v":1,"at":0,"queue":[0,0],"users":{"ann":[NaN,0]}}',
    "a text": '{"v":1,"at":0,"queue":[0,0],"users":{"ann":["1",0]}}',
    "too few": '{"v":1,"at":0,"queue":[0,0],"users":{"ann":[1]}}',
    "no users": '{"v":1,"at":0,"queue":[0,0]}',
    "more": '{"v":1,"at":0,"queue":[0,0],"users":{},"evil":1}',
    "deep": "[" * 16000,
    "deep inside": '{"v":1,"at":0,"queue":[0,0],"users":' + '{"a":' * 3000,
    "long": '{"v":1,"at":0,"queue":[0,0],"users":{"' + "x" * 20000 + '":[1,0]}}',
    "half a character": '{"v":1,"at":0,"queue":[0,0],"users":{"\ud800":[1,0]}}',
    "empty": "",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_annotation_is_ignored_with_one_warning(text: str, caplog: pytest.LogCaptureFixture) -> None:
    world = one_slot("ann")
    world.rehearsal.annotate("default", names.FAIR_SHARE, text)
    result = world.run(policy=policy(), cycles=3)
    assert result.binds == {"default/ann-job-0": "n1"}
    assert result.lost == ""
    assert caplog.text.count('queue "default": annotation stromboli.sh/fair-share is ignored') == 1


@pytest.mark.parametrize("at", [0, NOON - 3600, NOON + 3600, 1e17])
def test_an_annotation_of_any_age_is_understood(at: float) -> None:
    world = one_slot("ann", "bob")
    saved = {"v": 1, "at": at, "queue": [1e18, 1e18], "users": {"ann": [1e18, 0], "bob": [1e18, 1e18]}}
    world.rehearsal.annotate("default", names.FAIR_SHARE, json.dumps(saved))
    result = world.run(policy=policy(saveEvery="0s"), cycles=3)
    assert result.binds == {"default/ann-job-0": "n1"}
    assert result.lost == ""
    assert result.failures == []


def test_a_queue_that_is_gone_is_forgotten() -> None:
    world = World(nodes="n1 cpu=1", queues="red")
    job(world, "a", "ann", queue="red")
    world.run(policy=policy(), cycles=3)
    assert "red" in world.cluster.memory["fairshare"]["queues"]
    world.rehearsal.intake.drop(world.cluster.queues["red"].object)
    world.step()
    assert world.cluster.memory["fairshare"]["queues"] == {}


# -- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"halfLife": "0s"}, "halfLife: must be a duration above zero"),
        ({"halfLife": "a day"}, "halfLife: must be a duration above zero"),
        ({"saveEvery": "-1m"}, "saveEvery: must be a duration"),
        ({"weights": {"ann": 0}}, "weights: every weight must be above zero"),
    ],
)
def test_a_value_that_makes_no_sense_is_a_warning(arguments: dict[str, Any], message: str) -> None:
    warnings = load_policy(policy(**arguments), CATALOG).warnings
    assert any(message in warning for warning in warnings)


def test_a_misspelt_argument_is_an_error() -> None:
    with pytest.raises(PolicyError, match="halfLife"):
        load_policy(policy(halflife="1h"), CATALOG)


# -- kept across cycles, it equals one built afresh


class Living(LivingWorld):
    """A living world in which queues keep what they are given."""

    def _annotate(self, decision: QueueAnnotation) -> None:
        queue = self.objects[Queue, decision.name]
        meta = queue.metadata
        meta = msgspec.structs.replace(meta, annotations={**meta.annotations, decision.key: decision.value})
        self.put(msgspec.structs.replace(queue, metadata=meta))

    _EFFECTS: ClassVar[dict[type[Decision], Callable[..., None]]] = {
        **LivingWorld._EFFECTS,
        QueueAnnotation: _annotate,
    }


def make_engine() -> Engine:
    text = policy("enqueue, allocate, backfill", saveEvery="0s", betweenQueues=True)
    return Engine(load_policy(text, CATALOG), CATALOG)


def with_users(objects: list[Object], seed: int) -> list[Object]:
    chance = random.Random(seed)
    for obj in objects:
        if type(obj).__name__ == "PodGroup":
            obj.metadata.annotations["stromboli.sh/user"] = chance.choice(("ann", "bob", ""))
    return objects


def held(engine: Engine) -> dict[tuple[str, str | None], dict[int, float]]:
    plugin = next(plugin for plugin in engine.rules.plugins if plugin.name == "fairshare")
    accounts: Accounts = plugin._accounts
    return {(account.queue, account.user): account.held for account in accounts}


@given(
    objects=worlds(most_pods=12, mostly_pending=True),
    later=worlds(most_pods=18, mostly_pending=True),
    seed=st.integers(0, 2**32),
)
@examples(30)
def test_kept_across_cycles_it_equals_one_built_afresh(
    objects: list[Object], later: list[Object], seed: int
) -> None:
    """One engine lives on, one is made for each cycle, one has a cluster made of the same objects each time."""
    with_users([*objects, *later], seed)
    old, new = Living(objects, make_engine), Living(objects, make_engine)
    later = [obj for obj in later if not isinstance(obj, Queue)]  # they would lose their annotations
    for number in range(4):
        fresh = Living(old.objects.values(), make_engine)
        fresh.now = old.now
        new.engine = new.make_engine()
        first, second, third = old.step(), new.step(), fresh.step()
        assert first.lost is second.lost is third.lost is None
        assert plain(first.decisions) == plain(second.decisions)
        assert old.intake.cluster.memory == new.intake.cluster.memory
        assert held(old.engine) == held(new.engine)
        silent = [decision for decision in first.decisions if not isinstance(decision, Event)]
        assert plain(silent) == plain(
            decision for decision in third.decisions if not isinstance(decision, Event)
        )
        assert binds(first.decisions) == binds(third.decisions)
        assert old.intake.cluster.memory == fresh.intake.cluster.memory
        for world in (old, new):
            world.surprise(later, random.Random(seed + number))
            world.now += 13.7


def test_a_quiet_cycle_touches_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(nodes="n1 cpu=100")
    for number in range(50):
        job(world, f"job-{number}", f"user-{number}")
    world.run(policy=policy(), cycles=5)
    asked: list[object] = []
    monkeypatch.setattr(Decay, "usage", lambda *given: asked.append(given) or 0.0)
    monkeypatch.setattr(Accounts, "update", lambda *given: asked.append(given))
    world.step(3)
    assert asked == []
