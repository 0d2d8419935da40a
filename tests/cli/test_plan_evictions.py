"""`stromboli plan` says of each eviction who leaves where, for whom, why, and what it frees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import Result

from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests, priority_class
from tests.eviction_policies import STOCK
from tests.manifests import policy

Run = Callable[..., Result]
SENTENCE = (
    "default/old-1 is evicted from n1: preempt for default/new, frees cpu 1, memory 1Gi, pods "
    "1 (chosen by tier 1 (priority, gang, conformance))"
)


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A node full of pods of low priority, and an urgent job."""
    manifests = [
        *nodes("n1 cpu=2"),
        *queues("default"),
        priority_class(1),
        priority_class(9),
        *job_manifests(
            "old", pods=2, minimum=0, cpu=1, memory="1Gi", priority=1, running_on="n1 n1", phase="Running"
        ),
        *job_manifests("new", cpu=1, priority=9),
    ]
    file = tmp_path / "full.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    return file


@pytest.fixture
def preempting(tmp_path: Path) -> Path:
    file = tmp_path / "preempt.conf"
    file.write_text(policy("enqueue, allocate, preempt", STOCK))
    return file


def test_an_eviction_is_a_sentence(run: Run, full: Path, preempting: Path) -> None:
    text = run("plan", "-f", full, "--policy", preempting, env={"COLUMNS": "200"}).stdout
    assert SENTENCE in " ".join(text.split())
    assert "1 evicted" in text
    assert "1 waiting for capacity being freed" in text


def test_json_has_its_parts(run: Run, full: Path, preempting: Path) -> None:
    plan = json.loads(run("plan", "-f", full, "--policy", preempting, "-o", "json").stdout)
    assert plan["evicted"] == ["default/old-1"]
    assert plan["pipelined"] == {"default/new-0": "n1"}
    (eviction,) = plan["evictions"]
    assert eviction == {
        "pod": "default/old-1",
        "node": "n1",
        "job": "default/old",
        "reason": "preempt",
        "action": "preempt",
        "beneficiary": "default/new",
        "chosen_by": "tier 1 (priority, gang, conformance)",
        "frees": {"cpu": "1", "memory": "1Gi", "pods": "1"},
    }


def test_in_the_next_cycle_the_beneficiary_starts(run: Run, full: Path, preempting: Path) -> None:
    plan = json.loads(run("plan", "-f", full, "--policy", preempting, "--cycles", 2, "-o", "json").stdout)
    assert plan["cycles"][1]["binds"] == {"default/new-0": "n1"}
    assert [cycle["evicted"] for cycle in plan["cycles"]] == [["default/old-1"], []]


def test_a_preset_evicts_too(run: Run, full: Path) -> None:
    assert "is evicted from n1: preempt for default/new" in run("plan", "-f", full, "--preset", "full").stdout
