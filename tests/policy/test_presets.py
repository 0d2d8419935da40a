"""The preset `full`: node groups and parts of GPUs where there are some, and no other decision without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stromboli.api.manifests.case_files import read_case
from stromboli.extensions import load_catalog
from stromboli.model.intake.object_intake import Intake
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import GROUPS_AND_CARDS, PRESETS
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import binds, group, node, pod, queue

CATALOG = load_catalog()
FULL = PRESETS["full"]
CASES = Path(__file__).parents[1] / "conformance" / "cases"
PARTS = ("allocate", "preempt", "random-chart", "random-everything", "reclaim", "topology")


def decided(case: Path, text: str) -> list[Any]:
    """What two cycles decide on the objects of a conformance case under another policy."""
    intake = Intake()
    for obj in read_case(str(case)).objects:
        intake.put(obj)
    scheduler = Scheduler(Rehearsal(intake, NOON), load_policy(text, CATALOG, "test"), CATALOG)
    reports = [Report.of(scheduler.cycle()) for _ in range(2)]
    return [(report.binds, report.evicted, report.pipelined, report.phases) for report in reports]


@pytest.mark.parametrize("part", PARTS)
def test_without_node_groups_and_shared_cards_their_plugins_change_no_decision(part: str) -> None:
    without = FULL.replace(GROUPS_AND_CARDS, "")
    assert without != FULL
    for case in sorted((CASES / part).glob("*.json")):
        assert decided(case, FULL) == decided(case, without), case.name


def test_a_queue_with_a_node_group_keeps_to_it_and_others_keep_off() -> None:
    labels = {"volcano.sh/nodegroup-name": "gpus"}
    world = World().add(
        node("plain"),
        node("special", labels=labels),
        queue(),
        queue(
            "team",
            affinity={"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["gpus"]}},
        ),
        group("ours", 2, queue="team"),
        group("theirs", 2),
        *(pod(f"{name}-{number}", name) for name in ("ours", "theirs") for number in range(2)),
    )
    assert binds(world.run(policy=FULL)) == {
        "ours-0": "special",
        "ours-1": "special",
        "theirs-0": "plain",
        "theirs-1": "plain",
    }
