"""`simulate --openb-nodes --openb-pods`, end to end: what arrives, what fits where, and the measures of it."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from tests.simulator.traces_at_hand import EXAMPLES

LISTS = EXAMPLES / "openb"
SCORES = ("fgd", "bestfit", "dotprod", "packing", "clustering", "random")


def rows(file: str) -> dict[str, dict[str, str]]:
    """The rows of a list by name."""
    with (LISTS / file).open() as text:
        return {row.get("name") or row["sn"]: row for row in csv.DictReader(text)}


NODES, PODS = rows("nodes.csv"), rows("pods.csv")
GPUS = 1000 * sum(int(node["gpu"]) for node in NODES.values())


def pod_of(job: str) -> dict[str, str]:
    """The row of a pod, which may have been drawn more than once."""
    return PODS[job.partition("-tuned")[0]]


def demand(job: str) -> int:
    return int(pod_of(job)["num_gpu"]) * int(pod_of(job)["gpu_milli"])


def simulated(tmp_path: Path, *options: str) -> tuple[dict[str, float], dict]:
    saved = tmp_path / "record.json"
    lists = ["--openb-nodes", str(LISTS / "nodes.csv"), "--openb-pods", str(LISTS / "pods.csv")]
    result = CliRunner().invoke(app, ["simulate", *lists, *options, "-q", "-o", "json", "--save", str(saved)])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), json.loads(saved.read_text())


def at_load(record: dict, load: int) -> float:
    """The mean of what is allocated over the arrivals at which so many per cent have arrived."""
    arrived = allocated = 0
    seen: dict[int, list[float]] = defaultdict(list)
    for job in record["jobs"]:
        arrived += demand(job["name"])
        allocated += 0 if job.get("dropped") else demand(job["name"])
        seen[round(100 * arrived / GPUS)].append(round(100 * allocated / GPUS, 2))
    values = seen[max(percent for percent in seen if percent <= load)]
    return sum(values) / len(values) / 100


@pytest.mark.parametrize("load", ["0.8", "1.3", "1.6"])
def test_a_list_is_thinned_out_or_drawn_from_until_it_asks_for_the_load(load, tmp_path):
    figures, record = simulated(tmp_path, "--score", "bestfit", "--load", load, "--seed", "3")
    names = [job["name"] for job in record["jobs"]]
    target, asked = float(load) * GPUS, sum(map(demand, names))
    listed = sum(map(demand, PODS))
    if listed > target:
        assert set(names) < set(PODS)
        assert asked <= target < asked + 8000
    else:
        assert set(names) > set(PODS)
        assert target - 1000 < asked < target + 8000
    assert names != sorted(names)
    assert figures["jobs"] == len(names)
    assert figures["gpu_allocation"] == pytest.approx(at_load(record, round(100 * float(load))), abs=1e-9)


@pytest.mark.parametrize("score", SCORES)
def test_pods_are_where_they_fit_and_leave_if_that_is_nowhere(score, tmp_path):
    figures, record = simulated(tmp_path, "--score", score, "--load", "1.3", "--seed", "2")
    used: Counter[tuple[str, str]] = Counter()
    for pod in record["pods"]:
        row, node = pod_of(record["jobs"][pod["job"]]["name"]), NODES[pod["node"]]
        assert node["model"] in (row["gpu_spec"] or node["model"]).split("|")
        used[node["sn"], "cpu_milli"] += int(row["cpu_milli"])
        used[node["sn"], "memory_mib"] += int(row["memory_mib"])
        used[node["sn"], "gpu"] += int(row["num_gpu"]) * int(row["gpu_milli"])
    units = {"cpu_milli": 1, "memory_mib": 1, "gpu": 1000}
    assert all(amount <= units[what] * int(NODES[node][what]) for (node, what), amount in used.items())
    dropped = [job["name"] for job in record["jobs"] if job.get("dropped")]
    assert len(dropped) == figures["dropped"] > 0
    assert len(record["pods"]) + len(dropped) == len(record["jobs"])
    assert figures["gpu_allocation"] == pytest.approx(at_load(record, 130), abs=1e-9)
    assert 0 <= figures["fragmentation"] <= 1 - sum(used[node, "gpu"] for node in NODES) / GPUS + 1e-9


def test_another_seed_is_another_order(tmp_path):
    one, two = (simulated(tmp_path, "--score", "fgd", "--seed", seed)[1] for seed in ("1", "2"))
    assert [job["name"] for job in one["jobs"]] != [job["name"] for job in two["jobs"]]


def test_the_authors_order_is_replayed(tmp_path):
    _, record = simulated(tmp_path, "--score", "fgd", "--seed", "42", "--sequence", "go")
    again = simulated(tmp_path, "--score", "random", "--seed", "42", "--sequence", "go")[1]
    assert [job["name"] for job in record["jobs"]] == [job["name"] for job in again["jobs"]]
    assert record["jobs"][0]["name"] in PODS
