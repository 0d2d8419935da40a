"""The search for victims: on which nodes it is worth asking, and what plugins vote (spec 02 0.4, 0.5)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.eviction.node_clearing import has_enough
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.eviction.victim_selection import VictimSelection
from stromboli.engine.plugin import Bound, Plugin
from stromboli.engine.rules import Rules
from stromboli.engine.transaction import EvictionReason
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.eviction_policies import STOCK
from tests.manifests import group, node, pod, queue, task_named
from tests.properties.strategies import contest, examples


class Anybody(Plugin):
    """Lets everybody go."""

    name = "anybody"

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return candidates


@given(st.integers(0, 2**32))
@examples(30)
def test_a_node_that_is_not_asked_could_not_have_served(seed: int) -> None:
    """The bound against the truth, while victims go, come back and are undone."""
    chance = random.Random(seed)
    session = World().add(*contest(chance, nodes=chance.randint(1, 4))).session(Anybody)
    cluster = session.cluster
    candidates = VictimCandidates(
        "preemptable",
        (Status.RUNNING, Status.BOUND),
        lambda task, job: job is not task.job and job.queue is task.job.queue,
        accepts=lambda task, victim: victim.best_effort or not task.best_effort,
    )
    if chance.random() < 0.5:
        candidates = replace(candidates, scope=session.queue_of)
    search = VictimSelection(session, candidates, EvictionOptions())
    takers = [task for task in cluster.tasks.values() if task.status is Status.PENDING and task.job]

    def check() -> None:
        for task in takers:
            asked = set(search.nodes_in_order(task))
            for place in cluster.columns.nodes:
                if has_enough(session, task, place, candidates.on_node(task, place)):
                    assert place in asked, (task, place)
            afresh = VictimSelection(session, candidates, EvictionOptions())
            assert asked == set(afresh.nodes_in_order(task))

    check()
    for _ in range(3):
        with session.statement() as trial:
            for _ in range(chance.randint(1, 3)):
                task = chance.choice(takers) if takers else None
                victims = [
                    victim
                    for place in cluster.columns.nodes
                    for victim in (candidates.on_node(task, place) if task else ())
                ]
                if victims:
                    victim = chance.choice(victims)
                    trial.evict(victim, EvictionReason("test"))
                    search.note_evicted([victim])
                check()
            if trial.evicted() and chance.random() < 0.5:
                victim = trial.evicted()[-1]
                trial.restore(victim)
                check()
            if chance.random() < 0.5:
                trial.keep()
        check()


def test_victims_that_were_never_offered_to_a_task_are_not_missed_by_it() -> None:
    """A best-effort pod is offered its like only; that others go elsewhere on the node does not hide its like."""
    world = World(nodes="n1 cpu=1,pods=1; n2 cpu=1,pods=2")
    world.job("idle", pods=2, minimum=0, priority=5, running_on="n1 n2")
    world.job("busy", pods=1, minimum=0, cpu=1, priority=1, running_on="n2")
    world.job("new", pods=0, minimum=3, priority=9)
    on = {name: {"nodeSelector": {"kubernetes.io/hostname": name}, "priority": 9} for name in ("n1", "n2")}
    world.add(pod("new-x-0", "new", spec=on["n1"], cpu=0))
    world.add(pod("new-x-1", "new", cpu=1, spec=on["n2"]))
    world.add(pod("new-x-2", "new", spec=on["n2"], cpu=0))
    result = world.run("enqueue, preempt", STOCK)
    assert result.evicted == ["default/busy-0", "default/idle-0", "default/idle-1"]


class Nobody(Anybody):
    """Spares everybody, and says so beforehand."""

    name = "nobody"

    def victim_bound(self, point: str, task: Task) -> Bound:
        return Bound(None, lambda job: False)


def test_with_do_no_harm_nodes_with_only_victims_that_the_first_tier_spares_are_skipped() -> None:
    objects = [node("n0", cpu=1), group("old"), pod("a", "old", on="n0", cpu=1)]
    session = World().add(*objects, group("new"), pod("t", "new", cpu=1)).session()
    session.rules = Rules([[Nobody(None, {})], [Anybody(None, {})]])
    candidates = VictimCandidates("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)

    def asked(no_harm: bool) -> list[str]:
        nodes = VictimSelection(session, candidates, EvictionOptions(no_harm=no_harm)).nodes_in_order(
            task_named(session.cluster, "t")
        )
        return [place.name for place in nodes]

    assert (asked(no_harm=False), asked(no_harm=True)) == (["n0"], [])


def test_a_queue_that_starves_costs_what_changed_since_another_one_did() -> None:
    """Each running pod is looked at once, not once for each queue that takes from others."""
    looked_at: list[Task] = []

    def accepts(task: Task, victim: Task) -> bool:
        looked_at.append(victim)
        return True

    world = World(nodes="n1 cpu=40,pods=80; n2 cpu=40,pods=80")
    for number in range(8):
        world.add(queue(f"holder-{number}"), queue(f"taker-{number}"))
        world.job(f"old-{number}", pods=5, minimum=0, cpu=2, queue=f"holder-{number}", running_on="n1 n2")
        world.add(
            group(f"new-{number}", queue=f"taker-{number}"), pod(f"new-{number}", f"new-{number}", cpu=20)
        )
    session = world.session(Anybody)
    candidates = VictimCandidates(
        "preemptable", (Status.RUNNING,), lambda task, job: job.queue is not task.job.queue, accepts=accepts
    )
    search = VictimSelection(session, candidates, EvictionOptions())
    for number in range(8):
        asked = search.nodes_in_order(world.task(f"new-{number}"))
        assert [place.name for place in asked] == ["n1", "n2"]
        with session.statement() as trial:
            victim = world.task(f"old-{number}-0")
            trial.evict(victim, EvictionReason("test"))
            trial.keep()
        search.note_evicted([victim])
    assert len(looked_at) <= 2 * 40


class FailsOnce(Anybody):
    """Fails when it is asked about a job for the second time."""

    name = "fails-once"
    asked = 0

    def victim_bound(self, point: str, task: Task) -> Bound:
        return Bound(None, self._may)

    def _may(self, job: Job) -> bool:
        FailsOnce.asked += 1
        if FailsOnce.asked == 2:
            raise ValueError("not now")
        return True


def test_a_plugin_that_fails_while_victims_are_listed_hides_none_from_the_next_job() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4").job("old", pods=2, minimum=0, cpu=4, running_on="n1 n2")
    world.job("new", pods=1, cpu=4)
    session = world.session(FailsOnce)
    candidates = VictimCandidates("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)
    search = VictimSelection(session, candidates, EvictionOptions())
    assert len(list(search.nodes_in_order(world.task("new-0")))) == 2
    with session.statement() as trial:
        trial.evict(world.task("old-0"), EvictionReason("test"))
        search.note_evicted([world.task("old-0")])
    with pytest.raises(ValueError, match="not now"):
        list(search.nodes_in_order(world.task("new-0")))
    assert len(list(search.nodes_in_order(world.task("new-0")))) == 2


# -- votes


def test_within_a_tier_only_victims_that_all_name_count_and_an_empty_intersection_stays_empty() -> None:
    class Left(Anybody):
        name = "left"

        def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
            return candidates[:1]

    class Right(Anybody):
        name = "right"

        def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
            return candidates[1:]

    objects = [
        node("n0", cpu=9),
        group("j"),
        pod("a-x-0", "j", on="n0"),
        pod("a-x-1", "j", on="n0"),
    ]
    world = World().add(*objects, group("taker"), pod("t", "taker"))
    candidates = VictimCandidates("preemptable", (Status.RUNNING,), lambda task, job: job is not task.job)

    def chosen(*plugins: type[Plugin], fewest_victims: bool = False) -> list[str]:
        search = VictimSelection(
            world.session(*plugins), candidates, EvictionOptions(fewest_victims=fewest_victims)
        )
        choice = search.choose(world.task("t"), world.cluster.nodes["n0"])
        return [victim.name for victim in choice.victims] if choice else []

    assert chosen(Left) == ["a-x-1"]
    assert chosen(Left, Right) == []
    assert chosen(Left, Right, Anybody) == [], "spec 02 D4"
