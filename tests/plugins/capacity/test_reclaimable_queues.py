"""capacity: queues that may reclaim, queues that may lose, and the levels that count (spec 03 7.2, 7.3)."""

import pytest

from stromboli.engine.plugin import Eviction
from stromboli.testing import Result, World
from tests.plugins.capacity.policies import policy

FULL = "n1 cpu=4,memory=40Gi"


def reclaim(world: World, *, tree: bool = False, levels: int = 0) -> Result:
    return world.run(policy=policy("reclaim", tree=tree, levels=levels, first="priority"))


def test_a_queue_is_taken_from_down_to_what_it_deserves_and_no_further() -> None:
    world = World(nodes=FULL, queues="rich deserved=cpu:2; poor deserved=cpu:4")
    world.job("r", queue="rich", pods=4, minimum=1, cpu=1, running_on="n1 n1 n1 n1")
    for number in range(4):
        world.job(f"p{number}", queue="poor", cpu=1, phase="Inqueue")
    assert len(reclaim(world).evicted) == 2


def test_no_queue_claims_beyond_what_it_deserves() -> None:
    world = World(nodes=FULL, queues="rich deserved=cpu:1; poor deserved=cpu:1")
    world.job("r", queue="rich", pods=4, minimum=1, cpu=1, running_on="n1 n1 n1 n1")
    for number in range(3):
        world.job(f"p{number}", queue="poor", cpu=1, phase="Inqueue")
    assert len(reclaim(world).evicted) == 1


def test_one_resource_below_its_share_is_enough_to_claim() -> None:
    world = World(nodes=FULL, queues="rich deserved=cpu:1; poor deserved=cpu:0,memory:8Gi")
    world.job("r", queue="rich", pods=4, minimum=1, cpu=1, memory="10Gi", running_on="n1 n1 n1 n1")
    world.job("p", queue="poor", cpu=1, memory="4Gi", phase="Inqueue")
    assert len(reclaim(world).evicted) == 1


def test_no_queue_claims_beyond_its_capability() -> None:
    world = World(nodes=FULL, queues="rich deserved=cpu:1; poor deserved=cpu:4 capability=cpu:1")
    world.job("r", queue="rich", pods=4, minimum=1, cpu=1, running_on="n1 n1 n1 n1")
    world.job("p", queue="poor", cpu=2, phase="Inqueue")
    assert reclaim(world).evicted == []


def test_a_guarantee_is_never_touched() -> None:
    world = World(nodes=FULL, queues="rich deserved=cpu:1 guarantee=memory:15Gi; poor deserved=cpu:4")
    world.job("r", queue="rich", pods=2, minimum=1, cpu=2, memory="10Gi", running_on="n1 n1")
    world.job("p", queue="poor", cpu=1, phase="Inqueue")
    assert reclaim(world).evicted == []


def test_a_guarantee_of_devices_keeps_everything_of_its_queue() -> None:
    """# quirk: spec 03 9: nothing ever holds `deviceclass/` amounts, so the guarantee is never met."""
    world = World(nodes=FULL, queues="rich deserved=cpu:1 guarantee=deviceclass/gpu:1; poor deserved=cpu:4")
    world.job("r", queue="rich", pods=4, minimum=1, cpu=1, running_on="n1 n1 n1 n1")
    world.job("p", queue="poor", cpu=1, phase="Inqueue")
    assert reclaim(world).evicted == []


def test_who_holds_nothing_that_its_queue_deserves_goes_first() -> None:
    world = World(nodes=FULL, queues="bare; content deserved=cpu:2; poor deserved=cpu:4")
    world.job("c", queue="content", pods=2, minimum=1, cpu=1, running_on="n1 n1")
    world.job("b", queue="bare", pods=2, minimum=1, cpu=1, running_on="n1 n1")
    world.job("p", queue="poor", pods=2, cpu=1, phase="Inqueue")
    assert reclaim(world).evicted == ["default/b-0", "default/b-1"]


def test_deserved_pods_make_no_queue_a_bystander() -> None:
    world = World(nodes=FULL, queues="rich deserved=pods:9; poor deserved=cpu:4")
    world.job("r", queue="rich", pods=4, minimum=1, cpu=1, running_on="n1 n1 n1 n1")
    world.job("p", queue="poor", cpu=1, phase="Inqueue")
    assert reclaim(world).evicted == []


def test_who_asks_for_something_else_is_no_victim() -> None:
    world = World(nodes=f"{FULL},nvidia.com/gpu=1", queues="rich deserved=cpu:1; poor deserved=cpu:4")
    world.job("g", queue="rich", gpu=1, running_on="n1")
    world.job("r", queue="rich", cpu=4, running_on="n1")
    world.job("p", queue="poor", cpu=1, phase="Inqueue")
    assert reclaim(world).evicted == ["default/r-0"]


# -- in a tree

BRANCH_ONE = "one deserved=cpu:2; a parent=one deserved=cpu:1; b parent=one"
BRANCH_TWO = "two deserved=cpu:2; c parent=two deserved=cpu:2"


@pytest.mark.parametrize(("levels", "victims"), [(0, 1), (1, 0), (5, 0)])
def test_with_levels_the_branch_must_be_above_its_share_too(levels: int, victims: int) -> None:
    world = World(nodes="n1 cpu=2", queues=f"{BRANCH_ONE}; {BRANCH_TWO}")
    world.job("r", queue="a", pods=2, minimum=1, cpu=1, running_on="n1 n1")
    world.job("p", queue="c", cpu=1, phase="Inqueue")
    assert len(reclaim(world, tree=True, levels=levels).evicted) == victims


@pytest.mark.parametrize(("levels", "victims"), [(0, 0), (1, 1)])
def test_with_levels_a_branch_below_its_share_may_claim_for_a_leaf_that_has_its_own(
    levels: int, victims: int
) -> None:
    world = World(nodes="n1 cpu=4", queues=f"{BRANCH_ONE}; {BRANCH_TWO}")
    world.job("has", queue="a", cpu=1, running_on="n1")
    world.job("r", queue="c", pods=3, minimum=1, cpu=1, running_on="n1 n1 n1")
    world.job("p", queue="a", cpu=1, phase="Inqueue")
    assert len(reclaim(world, tree=True, levels=levels).evicted) == victims


@pytest.mark.parametrize(("levels", "victims"), [(0, 1), (1, 0)])
def test_with_levels_bystanders_of_relatives_are_safe_from_queues_that_deserve_nothing(
    levels: int, victims: int
) -> None:
    queues = "one deserved=cpu:4; a parent=one deserved=memory:8Gi; b parent=one deserved=memory:8Gi"
    world = World(nodes="n1 cpu=1,memory=8Gi", queues=queues)
    world.job("r", queue="b", cpu=1, running_on="n1")
    world.job("p", queue="a", cpu=1, phase="Inqueue")
    result = reclaim(world, tree=True, levels=levels)
    choice = result.outcome.session.rules.reclaimable(world.task("p-0"), [world.task("r-0")])
    assert len(choice.victims) == victims


def test_near_relatives_lose_first() -> None:
    queues = "one; a parent=one deserved=cpu:4; b parent=one deserved=cpu:1; two; c parent=two deserved=cpu:1"
    world = World(nodes="n1 cpu=5", queues=queues)
    world.job("near", queue="b", pods=2, minimum=1, cpu=1, running_on="n1 n1")
    world.job("far", queue="c", pods=3, minimum=1, cpu=1, running_on="n1 n1 n1")  # and has the larger share
    world.job("p", queue="a", cpu=1, phase="Inqueue")
    assert reclaim(world, tree=True).evicted == ["default/near-1"]


def test_no_job_in_an_inner_queue_claims() -> None:
    world = World(nodes="n1 cpu=2", queues="top deserved=cpu:4; kid parent=top; rich deserved=cpu:1")
    world.job("r", queue="rich", pods=2, minimum=1, cpu=1, running_on="n1 n1")
    world.job("p", queue="top", cpu=1, phase="Inqueue")
    assert reclaim(world, tree=True).evicted == []


def test_a_gang_that_preempts_is_free_to_choose_and_one_that_reclaims_is_not() -> None:
    world = World(nodes=FULL, queues="rich deserved=cpu:3; poor deserved=cpu:4; lost parent=nowhere")
    world.job("r", queue="rich", pods=4, minimum=1, cpu=1, running_on="n1 n1 n1 n1")
    world.job("p", queue="poor", cpu=1).job("l", queue="lost", cpu=1)
    rules = world.run(policy=policy("enqueue", first="nodeorder")).outcome.session.rules
    candidates = [world.task(f"r-{number}") for number in (3, 2, 1, 0)]

    def victims(kind: str, pod: str) -> list[str]:
        choice = rules.unified_evictable(Eviction(kind, world.task(pod).job), candidates)
        return [task.name for task in choice.victims]

    assert victims("preempt", "p-0") == ["r-3", "r-2", "r-1", "r-0"]
    assert victims("reclaim", "p-0") == ["r-3"]
    assert victims("reclaim", "l-0") == []
