"""The example of an action that places pods: gangs whole, on few nodes, by the rules of the policy."""

from pathlib import Path

import pytest

from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.task import Task
from stromboli.testing import Result, World

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_action"
PACK = load_catalog(EXAMPLE).actions["pack-gangs"]


def pack(world: World, *plugin_classes: type[Plugin], actions: str = "enqueue, pack-gangs") -> Result:
    names = " ".join(plugin.name for plugin in plugin_classes)
    return world.run(
        actions,
        f"gang {names} | predicates nodeorder",
        action_functions=[PACK],
        plugin_classes=list(plugin_classes),
    )


def test_a_gang_gets_the_one_node_that_holds_it():
    result = pack(World(nodes="n1 cpu=4; n2 cpu=8; n3 cpu=4").job("train", pods=4, cpu=2))
    assert set(result.binds.values()) == {"n2"}


def test_a_gang_that_no_node_holds_gets_the_fewest_nodes():
    result = pack(World(nodes="n1 cpu=2; n2 cpu=4; n3 cpu=6; n4 cpu=2").job("train", pods=5, cpu=2))
    assert sorted(result.binds.values()) == ["n2", "n2", "n3", "n3", "n3"]


def test_the_oldest_gang_comes_first():
    world = World(nodes="n1 cpu=4; n2 cpu=2").job("old", pods=2, cpu=2).job("young", pods=2, cpu=2)
    assert pack(world).bound_per_job == {"default/old": 2}


def test_of_a_gang_that_does_not_fit_nothing_is_left():
    result = pack(World(nodes="n1 cpu=4; n2 cpu=2").job("huge", pods=4, cpu=2).job("small", pods=2, cpu=2))
    assert result.bound_per_job == {"default/small": 2}


def test_allocate_places_pods_beyond_the_minimum_and_says_why_the_rest_waits():
    world = (
        World(nodes="n1 cpu=4; n2 cpu=4").job("elastic", pods=4, minimum=2, cpu=2).job("late", pods=2, cpu=3)
    )
    result = pack(world, actions="enqueue, pack-gangs, allocate")
    assert [result.binds[f"default/elastic-{n}"] for n in range(2)] == ["n1", "n1"]
    assert result.bound_per_job == {"default/elastic": 4}
    assert result.why("late-1") == "0/2 nodes are unavailable: 2 Insufficient cpu."


def test_a_queue_gets_no_more_than_the_policy_allows():
    class TwoPods(Plugin):
        """A queue may have two pods."""

        name = "two-pods"

        def allocatable(self, queue: Queue, task: Task) -> bool:
            return sum(job.allocated_count for job in queue.jobs) < 2

    world = World(nodes="n1 cpu=8").job("three", pods=3, cpu=1).job("two", pods=2, cpu=1)
    assert pack(world, TwoPods).bound_per_job == {"default/two": 2}


def test_a_plugin_that_fails_over_a_gang_leaves_out_that_gang_alone():
    class Fails(Plugin):
        """Cannot bear one job."""

        name = "fails"

        def job_ready(self, job: Job) -> bool:
            if job.name == "unlucky":
                raise RuntimeError("no luck")
            return True

    world = World(nodes="n1 cpu=8").job("unlucky", pods=2, cpu=1).job("lucky", pods=2, cpu=1)
    result = pack(world, Fails)
    assert result.bound_per_job == {"default/lucky": 2}
    assert "plugin 'fails' failed in job_ready" in result.why("unlucky-0")


@pytest.mark.parametrize("gpus", [1, 2])
def test_room_is_measured_by_what_the_gang_asks_for(gpus: int):
    world = World(nodes="n1 cpu=64,nvidia.com/gpu=2; n2 cpu=16,nvidia.com/gpu=8")
    world.job("train", pods=4, cpu=1, gpu=gpus)
    assert set(pack(world).binds.values()) == {"n2"}
