"""Arguments that evicting actions share: who is spared, and for how long (beyond Volcano)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.testing import World
from tests.eviction_policies import STOCK
from tests.manifests import pod, policy

YOUNG, AGED = "2026-11-01T11:55:00Z", "2026-11-01T11:30:00Z"
"""When pods began; it is noon."""
NOTE = "stromboli.sh/min-run-time"


def evicted(
    started: str | None,
    *,
    group: str = "",
    queue: str = "",
    action: str = "preempt",
    **arguments: Any,
) -> bool:
    """Whether a pod of low priority has to go that began then; its PodGroup and its queue may say how long it stays."""
    world = World(nodes="n1 cpu=1")
    note = {"metadata": {"name": "default", "annotations": {NOTE: queue} if queue else {}}}
    world.add(
        {"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1", "status": {"state": "Open"}, **note}
    )
    world.job(
        "old", pods=0, minimum=0, priority=1, phase="Running", annotations={NOTE: group} if group else {}
    )
    world.add(pod("old-0", "old", cpu=1, on="n1", status={"startTime": started} if started else {}))
    world.job("new", cpu=1, priority=9)
    return bool(world.run(policy=policy(f"enqueue, {action}", STOCK, **{action: arguments})).evicted)


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_pod_runs_for_a_while_before_it_may_be_a_victim(action: str) -> None:
    assert not evicted(YOUNG, action=action, minRunTime="10m")
    assert evicted(AGED, action=action, minRunTime="10m")
    assert evicted(YOUNG, action=action, minRunTime="5m"), "exactly then"
    assert evicted(YOUNG, action=action)


def test_reclaim_spares_the_young_too() -> None:
    def run(started: str) -> list[str]:
        world = World(nodes="n1 cpu=1", queues="mine; theirs").job("old", pods=0, minimum=0, queue="theirs")
        world.add(pod("old-0", "old", cpu=1, on="n1", status={"startTime": started}))
        world.job("new", cpu=1, queue="mine")
        text = policy("enqueue, reclaim", "gang conformance", reclaim={"minRunTime": "10m"})
        return world.run(policy=text).evicted

    assert (run(YOUNG), run(AGED)) == ([], ["default/old-0"])


def test_who_does_not_say_when_it_began_has_just_begun() -> None:
    assert not evicted(None, minRunTime="1s")
    assert evicted(None, minRunTime="0s")


def test_a_podgroup_overrules_its_queue_and_that_the_argument() -> None:
    assert not evicted(AGED, group="1h", minRunTime="0s")
    assert evicted(YOUNG, group="1m", queue="1h", minRunTime="2h")
    assert not evicted(AGED, queue="1h", minRunTime="0s")
    assert evicted(YOUNG, queue="1m", minRunTime="2h")


def test_a_note_that_is_no_duration_does_not_count() -> None:
    assert not evicted(AGED, group="soon", queue="1h", minRunTime="0s")
    assert evicted(AGED, group="soon", queue="never", minRunTime="10m")
    assert not evicted(YOUNG, group="-5", minRunTime="10m")


def test_without_the_argument_notes_do_not_count_as_in_volcano() -> None:
    assert evicted(YOUNG, group="1h", queue="1h")


def test_a_pod_that_was_just_started_here_is_young() -> None:
    world = World(nodes="n1 cpu=1").job("old", minimum=0, cpu=1, priority=1)
    text = policy("enqueue, allocate, preempt", STOCK, preempt={"minRunTime": "10m"})
    assert world.run(policy=text).binds == {"default/old-0": "n1"}
    world.job("new", cpu=1, priority=9)
    assert world.step().evicted == []
    assert world.sleep(600).step().evicted == ["default/old-0"]


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
@pytest.mark.parametrize("value", ["soon", "-1s"])
def test_times_that_are_none_are_told_and_the_default_is_used(action: str, value: str) -> None:
    bad = {"holdFor": value, "minRunTime": value}
    read = load_policy(policy(f"enqueue, {action}", STOCK, **{action: bad}), load_catalog())
    assert len(read.warnings) == 2
    assert all("must be a duration such as 5m or 0s" in warning for warning in read.warnings)
    used = read.configurations[action]
    assert (used.hold_seconds, used.min_run_time) == (0.0, "")
