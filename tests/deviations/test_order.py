"""Where queues, jobs, tasks and victims come in another order than in Volcano: docs/deviations.md."""

from collections.abc import Callable

import pytest

from stromboli.engine.plugin import Plugin
from stromboli.engine.points import depends, tier_intersection
from stromboli.model.job import Job
from stromboli.testing import World

PLACE = "enqueue, allocate"


def test_an_order_that_depends_on_everything_is_asked_again_before_each_pop() -> None:
    """Volcano does not sort a heap again when keys change under it (spec 02 0.2)."""

    class Alternate(Plugin):
        """Whoever's namesake holds least."""

        name = "alternate"

        @depends("everything")
        def job_order(self, job: Job) -> int:
            label_set = [namesake for namesake in self.session.jobs() if namesake.name[0] == job.name[0]]
            return sum(namesake.ready_count for namesake in label_set)

    world = World(nodes="n1 cpu=2").job("a1", cpu=1).job("a2", cpu=1).job("b1", cpu=1)
    result = world.run(PLACE, "alternate", plugin_classes=[Alternate])
    assert result.bound_per_job == {"default/a1": 1, "default/b1": 1}


@pytest.mark.parametrize("names", [["j-w-1", "j-w-0", "plain"], ["plain", "j-w-0", "j-w-1"]])
def test_pods_with_a_number_come_first_by_number_then_the_others_by_age(names: list[str]) -> None:
    """Volcano compares numbers or ages pair by pair, which is no order where names are mixed (spec 02 D16)."""
    world = World(nodes="n1 cpu=1")
    world.add({"kind": "PodGroup", "metadata": {"name": "j"}, "spec": {"minMember": 1}})
    for name in names:
        world.add(
            {
                "kind": "Pod",
                "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": "j"}},
                "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]},
            }
        )
    assert world.run(PLACE, "gang").binds == {"default/j-w-0": "n1"}


def test_the_same_objects_in_another_order_give_the_same_decisions() -> None:
    """Volcano keeps them in maps, and serves equals in any order."""

    def decide(names: list[str]) -> dict[str, str]:
        world = World(nodes="n1 cpu=2")
        for name in names:
            metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
            world.add({"kind": "PodGroup", "metadata": metadata, "spec": {"minMember": 1}})
            world.add(
                {
                    "kind": "Pod",
                    "metadata": {**metadata, "annotations": {"scheduling.k8s.io/group-name": name}},
                    "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": 1}}}]},
                }
            )
        return world.run(PLACE, "gang").binds

    assert decide(["a", "b", "c"]) == decide(["c", "b", "a"]) == {"default/a": "n1", "default/b": "n1"}


def test_an_empty_intersection_within_a_tier_stays_empty() -> None:
    """In Volcano the third plugin of the tier starts anew with its own list (spec 02 D4)."""
    empty = tier_intersection([[_names(1, 2), _names(3), _names(1, 2, 3)]])
    assert empty("somebody", [1, 2, 3]).victims == []


def test_an_empty_tier_still_hands_on_to_the_next_as_in_volcano() -> None:
    handed_on = tier_intersection([[_names(1), _names(2)], [_names(3)]])
    assert handed_on("somebody", [1, 2, 3]).victims == [3]


def _names(*victims: int) -> Callable[[object, list[int]], list[int]]:
    return lambda beneficiary, candidates: list(victims)
