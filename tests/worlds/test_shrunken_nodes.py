"""The worlds `09-shrunk`: a node has less than its pods hold, and the others are none the worse for it."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from stromboli.cli.status.resource_usage import node_groups, queue_usage
from stromboli.simulator.cycle_plan import document
from stromboli.simulator.explain.job_subject import job_explanation
from tests.worlds.planning import CATALOG, WORLDS, live, planned, policy_named

POLICIES = [
    *sorted(file.stem for file in (WORLDS / "policies").iterdir()),
    "preset:default",
    "preset:basic",
    "preset:full",
    "preset:fair-share",
]
WORLD_NAMES = ("cpu", "cpu-nomin", "plan", "plan-nomin", "zero")
NEGATIVE = re.compile(r"(?<![\w.])-\d")
"""A negative number, not a part of a name or of a date."""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("world", ["cpu", "cpu-nomin"])
def test_what_is_free_on_the_other_node_is_used_and_the_shrunken_one_takes_nothing(
    policy: str, world: str
) -> None:
    binds = planned(policy, f"09-shrunk/{world}.yaml").whole.binds
    assert {**binds, "default/be-0": "n2"} == dict.fromkeys(
        ("default/p1-0", "default/p1-1", "default/be-0"), "n2"
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("world", ["plan", "plan-nomin"])
def test_a_node_that_lost_gpus_takes_no_more_pods_with_gpus(policy: str, world: str) -> None:
    assert planned(policy, f"09-shrunk/{world}.yaml").whole.binds == {"default/plugin-0": "n1"}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_node_without_any_of_its_gpus_takes_pods_without_gpus(policy: str) -> None:
    binds = planned(policy, "09-shrunk/zero.yaml").whole.binds
    assert sorted(binds) == ["default/be-0", "default/cpujob-0", "default/cpujob-1", "default/plugin-0"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("world", WORLD_NAMES)
def test_no_amount_that_is_shown_is_negative(policy: str, world: str) -> None:
    assert not NEGATIVE.findall(json.dumps(document(planned(policy, f"09-shrunk/{world}.yaml", cycles=2))))
    shrunken = live(policy, f"09-shrunk/{world}.yaml")
    outcome, cluster = shrunken.step().outcome, shrunken.cluster
    for job in cluster.jobs.values():
        assert not NEGATIVE.findall(msgspec.json.encode(job_explanation(outcome, job)[0]).decode())
    status = [node_groups(cluster), queue_usage(cluster, policy_named(policy), CATALOG, 0.0)]
    assert not NEGATIVE.findall(json.dumps(status))
