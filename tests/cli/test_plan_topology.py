"""`stromboli plan` on gangs in the network's shape: the HyperNode of each, and the closest for those that wait."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from tests.manifests import Manifest, group, hyper_node, native_group, node, pod, policy, sub_group_policy

Run = Callable[..., Result]
POLICY = policy("enqueue, allocate, backfill", "gang | predicates network-topology-aware")
HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


@pytest.fixture
def planned(run: Run, tmp_path: Path) -> Callable[..., Any]:
    """The plan of these objects on two racks of two nodes, as text, or as JSON or YAML."""

    def plan(*objects: Manifest, output: str = "json") -> Any:
        nodes = [node(f"{rack}{place}", labels={"rack": rack}) for rack in "ab" for place in (1, 2)]
        racks = [hyper_node("ra", nodes=["a1", "a2"]), hyper_node("rb", nodes=["b1", "b2"])]
        busy = pod("busy", on="b1", cpu=3)
        (tmp_path / "policy.yaml").write_text(POLICY)
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([*nodes, *racks, busy, *objects]))
        done = run(
            "plan", "-f", tmp_path / "cluster.yaml", "--policy", tmp_path / "policy.yaml", "-o", output
        )
        assert done.exit_code == 0, done.output
        readers: dict[str, Callable[[str], Any]] = {"json": json.loads, "yaml": yaml.safe_load}
        return readers[output](done.stdout) if output in readers else done.output

    return plan


def members(name: str, count: int, **terms: Any) -> list[Manifest]:
    return [pod(f"{name}-{number}", name, **terms) for number in range(count)]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_each_gang_has_its_hyper_node(planned: Callable[..., Any], output: str) -> None:
    soft = group("wide", 3, networkTopology={"mode": "soft"})
    plain = [group("plain", 1), *members("plain", 1)]
    plan = planned(group("g", 8, **HARD), *members("g", 8), soft, *members("wide", 3), *plain, output=output)
    assert plan["domains"] == {
        "default/g": {"name": "ra", "tier": 1},
        "default/wide": {"name": "rb", "tier": 1},
    }
    assert "domains" not in planned(*plain)


def test_sub_groups_and_native_groups_have_theirs(planned: Callable[..., Any]) -> None:
    parts = group("g", 8, subGroupPolicy=[{**sub_group_policy("part", "part", size=4), **HARD}])
    pods = [pod(f"g-{number}", "g", labels={"part": str(number // 4)}) for number in range(8)]
    near = native_group("near", 1, schedulingConstraints={"topology": [{"key": "rack"}]})
    plan = planned(parts, *pods, near, pod("near-x-0", native="near"))
    assert set(plan["domains"]["default/g"]["sub_groups"]) == {"part-0", "part-1"}
    assert plan["domains"]["default/near"]["name"] in ("rack=a", "rack=b")
    assert "tier" not in plan["domains"]["default/near"]


def test_a_gang_that_waits_has_the_closest(planned: Callable[..., Any]) -> None:
    objects = [group("f", 8, **HARD), *members("f", 8), group("g", 8, **HARD), *members("g", 8)]
    waiting = planned(*objects)["pending"]["default/g"]
    assert waiting["closest"] == {
        "name": "rb",
        "tier": 1,
        "fits": 5,
        "needed": 8,
        "lacks": {"cpu": "3"},
        "holders": [{"job": "default/busy", "resource": "cpu", "amount": "3"}],
    }
    text = planned(*objects, output="table")
    assert "Topology\n  default/f  HyperNode ra (tier 1)\n" in text
    assert "No HyperNode with room" in text
    assert "closest: HyperNode rb (tier 1) has capacity for 5 of 8 pods and lacks cpu 3" in " ".join(
        text.split()
    )
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_other_jobs_have_none(planned: Callable[..., Any]) -> None:
    waiting = planned(group("g", 1), *members("g", 1, cpu=5))["pending"]["default/g"]
    assert "closest" not in waiting


def test_hyper_nodes_that_are_left_out_or_odd_are_warned_of(planned: Callable[..., Any]) -> None:
    objects = [hyper_node("loop", 3, children=["loop"]), hyper_node("low", 1, children=["ra"])]
    plan = planned(*objects)
    assert plan["hyper_nodes"] == {
        "loop": ["left out: it is a member of itself: loop > loop"],
        "low": ["its tier 1 is not above those of members: HyperNode ra (tier 1); give it a higher tier"],
    }
    text = " ".join(planned(*objects, output="table").split())
    assert "warning: HyperNode loop: left out: it is a member of itself: loop > loop" in text
    assert "hyper_nodes" not in planned()
