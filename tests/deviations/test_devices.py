"""Devices by claim: where we do better than Volcano."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.api.manifests.case_files import read_case
from stromboli.extensions import load_catalog
from stromboli.model.intake.object_intake import Intake
from stromboli.policy.policy import load_policy
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.device_manifests import allocated, claim, device_class, reserved, resource_slice, uses

CASES = Path(__file__).parent.parent / "conformance" / "cases" / "dra"
PLACE, PLUGINS = "enqueue, allocate", "gang, predicates, nodeorder"


def decided(name: str) -> Report:
    case, catalog, intake = read_case(str(CASES / f"{name}.json")), load_catalog(), Intake()
    for obj in case.objects:
        intake.put(obj)
    policy = load_policy(case.config or "", catalog, name)
    return Report.of(Scheduler(Rehearsal(intake, NOON), policy, catalog).cycle())


def world(nodes: str = "a cpu=8; b cpu=8", **devices: int) -> World:
    made = World(nodes=nodes).add(device_class())
    return made.add(*(resource_slice(node, count) for node, count in devices.items()))


def test_a_gang_that_shares_a_claim_starts_together() -> None:
    report = decided("shared-claim-of-a-gang")
    assert report.binds == {"default/gang-w-0": "small", "default/gang-w-1": "small"}


def test_a_pod_is_held_for_devices_that_come_free() -> None:
    assert decided("device-pod-is-not-held-for-room").pipelined["default/j-w-0"] == "small"


def test_pods_that_share_a_claim_are_placed_in_one_cycle() -> None:
    made = world(b=1).add(claim("c")).job("j", cpu=1, spec=uses("c")).job("k", cpu=1, spec=uses("c"))
    assert made.run(PLACE, PLUGINS).binds == {"default/j-0": "b", "default/k-0": "b"}


def test_a_claim_allocated_for_several_nodes_is_used_on_the_best_of_them() -> None:
    given = allocated(claim("c"), "a", "g0")
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    given["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    made = World(nodes="a cpu=8; b cpu=2 zone=z; c cpu=8 zone=z").add(device_class(), given)
    assert made.job("j", cpu=1, spec=uses("c")).run(PLACE, PLUGINS).binds == {"default/j-0": "c"}


def test_a_claim_of_a_pod_that_was_not_placed_is_released() -> None:
    made = world(a=1, b=1).job("old", cpu=8, running_on="a")
    made.add(allocated(claim("c"), "a", "g0", reserved_for=(reserved("j-0"),))).job(
        "j", cpu=1, spec=uses("c")
    )
    assert made.run(PLACE, PLUGINS, cycles=2).binds == {"default/j-0": "b"}


@pytest.mark.parametrize("actions", ["enqueue, allocate, preempt", "enqueue, allocate, gangpreempt"])
def test_who_holds_the_devices_is_evicted_for_them_and_nobody_else(actions: str) -> None:
    made = world(a=1).add(
        allocated(claim("held"), "a", "g0", reserved_for=(reserved("holder-0"),)), claim("c")
    )
    made.job("holder", cpu=1, priority=1, minimum=0, running_on="a", spec=uses("held"))
    made.job("other", cpu=1, priority=1, minimum=0, running_on="a")
    made.job("urgent", cpu=1, priority=10, spec=uses("c"))
    assert made.run(actions, "priority, gang, predicates").evicted == ["default/holder-0"]
