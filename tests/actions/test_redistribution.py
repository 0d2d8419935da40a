"""backfill's second stage: what gangs that did not get ready hold goes to who can start with it (spec 02 4.2)."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Change
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import Result, World
from tests.manifests import pod, policy
from tests.properties.rebuild import fingerprint

ACTIONS = "enqueue, allocate, backfill"


def holding(nodes: str = "n1 cpu=2; n2 cpu=2", queues: str = "", **terms: Any) -> World:
    """A gang of two pods of two cpus: one has room on n1, the other is promised what is leaving n2."""
    world = World(nodes=nodes, queues=queues).job("old", pods=0, phase="Running")
    world.add(pod("old-0", "old", cpu=2, on="n2", terminating=True))
    return world.job("gang", **{"pods": 2, "cpu": 2, **terms})


def run(world: World, plugins: str = "gang", actions: str = ACTIONS, on: bool = True, **more: Any) -> Result:
    text = policy(actions, plugins, backfill={"enableBackFillNonBestEffortPods": on})
    return world.run(policy=text, **more)


def test_a_small_job_starts_on_what_a_waiting_gang_holds() -> None:
    result = run(holding().job("small", cpu=2))
    assert result.binds == {"default/small-0": "n1"}
    assert result.pipelined == {}, "the gang cannot start any more and lets go of its promise"


def test_it_is_off_unless_asked_for() -> None:
    result = run(holding().job("small", cpu=2), on=False)
    assert (result.binds, result.pipelined) == ({}, {"default/gang-1": "n2"})


def test_the_donor_sees_which_job_took_its_capacity() -> None:
    result = run(holding().job("small", cpu=2))
    assert result.why("gang-0") == (
        "Resources on node n1 were redistributed to job default/small by backfill: gang not ready"
    )


def test_priority_does_not_matter_in_either_direction() -> None:
    for gang, small in ((9, 1), (1, 9)):
        world = holding(priority=gang).job("small", cpu=1, priority=small)
        assert run(world, "priority gang").bound_per_job["default/small"] == 1


def test_nothing_is_taken_from_another_queue() -> None:
    assert run(holding(queues="other").job("small", cpu=2, queue="other")).binds == {}


def test_a_node_that_needs_no_release_is_taken_first() -> None:
    """n1 would be the better one by age."""
    result = run(
        holding("n1 cpu=2; n2 cpu=2; n3 cpu=1").job("small", cpu=1), actions="enqueue, allocate, backfill"
    )
    assert result.binds == {"default/small-0": "n3"}
    assert result.pipelined == {"default/gang-1": "n2"}


def test_what_is_idle_beside_counts_together_with_what_is_released() -> None:
    result = run(holding("n1 cpu=3; n2 cpu=2").job("small", cpu=3))
    assert result.binds == {"default/small-0": "n1"}


def test_a_job_that_does_not_get_ready_gives_everything_back() -> None:
    """Two pods of two cpus: the first takes n1 from the gang, the second finds nothing."""
    result = run(holding().job("pair", pods=2, cpu=2))
    assert (result.binds, result.pipelined) == ({}, {"default/gang-1": "n2"})
    assert "redistributed" not in result.why("gang-0")


class Witness(Plugin):
    """Takes fingerprints around the second stage, and keeps a job from starting with what it gets."""

    name = "witness"
    prints: ClassVar[list[Any]] = []

    def backfill_beneficiary(self, job: Job) -> bool:
        type(self).prints.append(fingerprint(self.session.cluster))
        return True

    def closing(self, session: Session) -> None:
        type(self).prints.append(fingerprint(session.cluster))


def test_giving_back_restores_every_number() -> None:
    Witness.prints = []
    run(holding().job("pair", pods=2, cpu=2), "gang witness", plugin_classes=[Witness])
    assert len(Witness.prints) >= 2
    assert Witness.prints[0] == Witness.prints[-1]


def test_what_was_cleared_for_a_gang_by_eviction_stays_its_own() -> None:
    """preempt before backfill: somebody left for the gang's second pod."""
    world = World(nodes="n1 cpu=2; n2 cpu=2").job("old", minimum=0, cpu=2, priority=1, running_on="n2")
    world.job("gang", pods=2, cpu=2, priority=9).job("small", cpu=2, priority=1)
    result = run(world, "priority gang", "enqueue, preempt, allocate, backfill")
    assert result.evicted == ["default/old-0"]
    assert "default/small-0" not in result.binds


def test_a_job_past_its_agreed_waiting_time_keeps_what_it_holds() -> None:
    late = {"annotations": {"sla-waiting-time": "1h"}}
    assert run(holding(**late).job("small", cpu=2), "gang sla").binds == {}
    patient = {"annotations": {"sla-waiting-time": "100000h"}}
    assert run(holding(**patient).job("small", cpu=2), "gang sla").binds == {"default/small-0": "n1"}


class NotThis(Plugin):
    """Lets nobody benefit, or nobody be robbed."""

    name = "not-this"
    point = "victim"

    def backfill_victim(self, beneficiary: Task, victim: Task) -> bool:
        return self.point != "victim"

    def backfill_beneficiary(self, job: Job) -> bool:
        return self.point != "beneficiary"


@pytest.mark.parametrize("point", ["victim", "beneficiary"])
def test_plugins_may_object(point: str) -> None:
    objecting = type("Objecting", (NotThis,), {"point": point})
    world = holding().job("small", cpu=2)
    assert run(world, "gang not-this", plugin_classes=[objecting]).binds == {}


@pytest.mark.parametrize(
    "terms",
    [
        {"group": {"networkTopology": {"mode": "soft"}}},
        {"spec": {"schedulingGates": [{"name": "wait"}]}},
        {"pods": 1, "minimum": 2},
    ],
    ids=str,
)
def test_a_job_that_cannot_benefit_takes_nothing(terms: dict[str, Any]) -> None:
    """Bound to a topology, gated, or too few to start."""
    result = run(holding().job("small", cpu=2, **terms))
    assert result.pipelined == {"default/gang-1": "n2"}


def test_a_queue_that_is_full_only_of_what_waiting_gangs_hold_serves_others() -> None:
    world = holding(queues="q capability=cpu:4", queue="q").job("small", cpu=2, queue="q")
    assert run(world, "gang | predicates capacity").binds == {"default/small-0": "n1"}


def test_everything_that_the_beneficiary_held_before_is_bound_with_it() -> None:
    """A gang of two had room for one and a promise for the other; with what another gang holds it has both."""
    world = holding("n1 cpu=2; n2 cpu=2; n3 cpu=1")
    world.job("pair", pods=2, cpu=1)
    result = run(world)
    assert result.bound_per_job == {"default/pair": 2}


def test_a_donor_may_benefit_in_its_turn_and_redistribution_ends() -> None:
    """Two gangs wait with a part each; the small job starts, and of the gangs at most those that can start whole."""
    world = holding("n1 cpu=2; n2 cpu=2; n3 cpu=2").job("second", pods=3, cpu=2).job("small", cpu=2)
    result = run(world)
    started = set(result.bound_per_job)
    assert started
    for job in world.cluster.jobs.values():
        assert job.key not in started or job.ready_count >= job.minimum


def test_a_refusal_leaves_every_task_where_it_was() -> None:
    class NoSmall(Plugin):
        name = "no-small"

        def on_move(self, change: Change) -> str | None:
            starts = change.status is Status.ALLOCATED and change.task.name == "small-0"
            return "not this one" if starts and not change.undo else None

    result = run(holding().job("small", cpu=2), "gang no-small", plugin_classes=[NoSmall])
    assert (result.binds, result.pipelined) == ({}, {"default/gang-1": "n2"})
