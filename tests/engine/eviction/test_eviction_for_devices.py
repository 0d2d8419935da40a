"""Evicting for devices: victims hold them, nobody else goes, and nobody goes in vain."""

from __future__ import annotations

import pytest

from stromboli.testing import World
from tests.device_manifests import allocated, claim, device_class, reserved, resource_slice, uses

PREEMPT = "enqueue, allocate, preempt"
GANG_PREEMPT = "enqueue, allocate, gangpreempt"
PLUGINS = "priority, gang, predicates"


def world() -> World:
    """Low-priority pods on a node with one device: one of them has it."""
    made = World(nodes="a cpu=8; b cpu=8").add(device_class(), resource_slice("a", 1))
    made.add(allocated(claim("held"), "a", "g0", reserved_for=(reserved("holder-0"),)))
    made.job("holder", cpu=1, priority=1, minimum=0, running_on="a", spec=uses("held"))
    return made.job("other", cpu=1, priority=1, minimum=0, running_on="a").job(
        "another", cpu=1, priority=1, minimum=0, running_on="a"
    )


@pytest.mark.parametrize("actions", [PREEMPT, GANG_PREEMPT])
def test_only_the_holder_of_the_device_is_evicted(actions: str) -> None:
    made = world().add(claim("c")).job("urgent", cpu=1, priority=10, spec=uses("c"))
    result = made.run(actions, PLUGINS)
    assert result.evicted == ["default/holder-0"]
    assert result.pipelined == {"default/urgent-0": "a"}
    assert made.step().binds == {"default/urgent-0": "a"}


@pytest.mark.parametrize("actions", [PREEMPT, GANG_PREEMPT])
def test_no_pod_is_evicted_for_devices_that_no_eviction_frees(actions: str) -> None:
    made = world().add(claim("c", 2)).job("urgent", cpu=1, priority=10, spec=uses("c"))
    assert made.run(actions, PLUGINS).evicted == []


@pytest.mark.parametrize("actions", [PREEMPT, GANG_PREEMPT])
def test_no_pod_is_evicted_where_the_claim_keeps_another_consumer(actions: str) -> None:
    made = world()
    consumers = (reserved("holder-0"), reserved("of-another-scheduler"))
    made.add(allocated(claim("held"), "a", "g0", reserved_for=consumers))
    made.add(claim("c")).job("urgent", cpu=1, priority=10, spec=uses("c"))
    assert made.run(actions, PLUGINS).evicted == []


def test_reclaim_takes_devices_back_from_another_queue() -> None:
    queues = "rich weight=1; poor weight=1"
    made = World(nodes="a cpu=2", queues=queues).add(device_class(), resource_slice("a", 1))
    made.add(allocated(claim("held"), "a", "g0", reserved_for=(reserved("holder-0"),)))
    made.job("holder", cpu=1, queue="rich", minimum=0, running_on="a", spec=uses("held"))
    made.job("more", cpu=1, queue="rich", minimum=0, running_on="a")
    made.add(claim("c")).job("poor", cpu=1, queue="poor", spec=uses("c"))
    result = made.run("enqueue, allocate, reclaim", "gang, predicates, proportion")
    assert result.evicted == ["default/holder-0"]


def test_a_gang_gets_devices_of_several_victims() -> None:
    made = World(nodes="a cpu=8; b cpu=8").add(device_class(), resource_slice("a", 1), resource_slice("b", 1))
    for node in "ab":
        held = allocated(claim(f"held-{node}"), node, "g0", reserved_for=(reserved(f"holder-{node}-0"),))
        made.add(held).job(
            f"holder-{node}", cpu=1, priority=1, minimum=0, running_on=node, spec=uses(f"held-{node}")
        )
        made.job(f"other-{node}", cpu=1, priority=1, minimum=0, running_on=node)
    made.add(claim("c"), claim("d"))
    made.job("urgent", pods=2, cpu=1, priority=10)
    for place, name in enumerate("cd"):
        pod = {"schedulerName": "volcano", "priorityClassName": "priority-10", **uses(name)}
        containers = [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]
        meta = {"name": f"urgent-{place}", "annotations": {"scheduling.k8s.io/group-name": "urgent"}}
        spec = {**pod, "containers": containers}
        made.add({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    result = made.run(GANG_PREEMPT, PLUGINS)
    assert result.evicted == ["default/holder-a-0", "default/holder-b-0"]
    assert sorted(made.step().binds) == ["default/urgent-0", "default/urgent-1"]
