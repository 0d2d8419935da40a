"""gangreclaim: a starving queue takes back its share for a gang as a whole (spec 02 7)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.eviction import victim_bundles
from stromboli.testing import Result, World
from tests.eviction_policies import SHARES
from tests.manifests import pod, policy

ACTIONS = "enqueue, allocate, gangreclaim"


def world_of(queues: str = "mine; theirs", cpu: int = 4, minimum: int = 1, **terms: Any) -> World:
    world = World(nodes=f"n1 cpu={cpu}", queues=queues)
    on = " ".join(["n1"] * cpu)
    return world.job(
        "old", **{"pods": cpu, "minimum": minimum, "cpu": 1, "queue": "theirs", "running_on": on, **terms}
    )


def run(world: World, plugins: str = SHARES, **arguments: Any) -> Result:
    return world.run(policy=policy(ACTIONS, plugins, gangreclaim=arguments))


def test_a_gang_takes_back_what_its_queue_deserves_as_one_bundle() -> None:
    """quirk: spec 02 7.3: a bundle is never trimmed: all of the surplus goes, though two would do."""
    result = run(world_of().job("new", pods=2, cpu=1, queue="mine"))
    assert result.evicted == ["default/old-0", "default/old-1", "default/old-2"]
    assert result.pipelined == {"default/new-0": "n1", "default/new-1": "n1"}


def test_with_fewest_victims_just_as_many_go_as_are_needed() -> None:
    result = run(world_of().job("new", pods=2, cpu=1, queue="mine"), fewestVictims=True)
    assert len(result.evicted) == 2


def test_it_takes_nothing_beyond_its_share_nor_for_a_queue_that_has_it() -> None:
    assert run(world_of().job("new", pods=3, cpu=1, queue="mine")).evicted == []
    world = World(nodes="n1 cpu=2", queues="mine; theirs")
    world.job("have", cpu=1, queue="mine", running_on="n1").job(
        "old", minimum=0, cpu=1, queue="theirs", running_on="n1"
    )
    assert run(world.job("new", cpu=1, queue="mine")).evicted == []


def test_a_queue_may_refuse_to_give_back() -> None:
    assert run(world_of("mine; theirs reclaimable=false").job("new", cpu=1, queue="mine")).evicted == []


def test_priorities_do_not_matter_across_queues() -> None:
    assert len(run(world_of(priority=99).job("new", cpu=1, queue="mine")).evicted) == 3


def test_bound_pods_stay() -> None:
    world = World(nodes="n1 cpu=1", queues="mine; theirs").job("old", pods=0, minimum=0, queue="theirs")
    world.add(pod("old-0", "old", cpu=1, on="n1", status={"phase": "Pending"}))
    assert run(world.job("new", cpu=1, queue="mine"), "gang conformance").evicted == []


def test_of_whole_gangs_the_one_goes_that_helps_most_for_what_it_loses() -> None:
    """Both free what is needed here; the wide one would lose much more elsewhere."""
    world = World(nodes="n1 cpu=4; n2 cpu=4", queues="mine; theirs")
    world.job("wide", pods=5, cpu=1, queue="theirs", running_on="n1 n2 n2 n2 n2")
    world.job("slim", pods=3, cpu=1, queue="theirs", running_on="n1 n1 n1")
    world.job("new", pods=1, cpu=3, queue="mine")
    assert run(world, "gang conformance").evicted == ["default/slim-0", "default/slim-1", "default/slim-2"]


def test_no_queue_is_taken_below_its_guarantee_if_no_harm_shall_be_done() -> None:
    sure = "mine; theirs guarantee=cpu:3"
    new = {"pods": 1, "cpu": 1, "queue": "mine"}
    assert len(run(world_of(sure).job("new", **new), "gang conformance").evicted) == 3
    assert run(world_of(sure).job("new", **new), "gang conformance", doNoHarm=True).evicted == []


def test_starving_queues_list_once_what_other_queues_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundles of a job are made when a queue starves, and again only after a gang took from the job."""
    made: list[str] = []

    def counting(job: Any, *tasks: Any) -> Any:
        made.append(job.key)
        return bundles_of(job, *tasks)

    bundles_of = victim_bundles.bundles_of
    monkeypatch.setattr(victim_bundles, "bundles_of", counting)
    takers = [f"taker-{number}" for number in range(4)]
    world = World(nodes="n1 cpu=40", queues=f"theirs; {'; '.join(takers)}")
    for number in range(20):
        world.job(f"old-{number}", pods=2, minimum=1, cpu=1, queue="theirs", running_on="n1 n1")
    for queue in takers:
        world.job(f"new-{queue}", cpu=1, queue=queue)
    assert len(run(world).evicted) == 4
    assert len(made) <= 20 + 2 * 4
