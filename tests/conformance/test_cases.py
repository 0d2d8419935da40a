"""What a real Volcano decided for small clusters: we decide the same, field by field.

A case in `warts.json` shows a bug that users suffer from: there we do better, and a test of ours shows it.
"""

import json
from pathlib import Path

import pytest

from stromboli.api.manifests.case_files import read_case
from stromboli.extensions import load_catalog
from stromboli.model.intake.object_intake import Intake
from stromboli.policy.policy import default_policy, load_policy
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.world import NOON

HERE = Path(__file__).parent
FIELDS = ("binds", "bound_per_job", "evicted", "pipelined", "phases")
PARTS: dict[str, list[str]] = json.loads((HERE / "parts.json").read_text())
WARTS: dict[str, str] = json.loads((HERE / "warts.json").read_text())
NAMES = sorted(name for names in PARTS.values() for name in names)
CATALOG = load_catalog()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WARTS])
def test_the_decisions_are_those_of_volcano(name: str) -> None:
    case = read_case(str(HERE / "cases" / f"{name}.json"))
    policy = load_policy(case.config, CATALOG, name) if case.config else default_policy(CATALOG)
    intake = Intake()
    for obj in case.objects:
        intake.put(obj)
    report = Report.of(Scheduler(Rehearsal(intake, NOON), policy, CATALOG).cycle())
    assert not report.lost
    observed = case.observed or {}
    expected = {field: observed[field] for field in FIELDS if field in observed}
    assert {field: getattr(report, field) for field in expected} == expected


def test_every_case_is_listed_and_every_listed_case_is_there() -> None:
    there = {
        path.relative_to(HERE / "cases").as_posix()[: -len(".json")] for path in HERE.rglob("cases/**/*.json")
    }
    assert there == set(NAMES)
    assert set(WARTS) <= there
