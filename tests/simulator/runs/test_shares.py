"""Worked examples of fair shares come out exactly in a simulation, and stay so as tasks end and others follow."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from typer.testing import CliRunner

from stromboli.cli.main import app
from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_notation import Manifest, nodes, queues
from stromboli.simulator.reports.record_files import read_record
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from tests.simulator.runs.small_runs import CATALOG
from tests.simulator.traces_at_hand import EXAMPLES


def simulated(example: str, folder: Path) -> RunRecord:
    """An example, by the command that its documentation shows."""
    files = [
        "--workload",
        f"{EXAMPLES}/{example}/workload.yaml",
        "--policy",
        f"{EXAMPLES}/{example}/policy.yaml",
    ]
    result = CliRunner().invoke(app, ["simulate", *files, "-q", "--save", f"{folder}/record.json"])
    assert result.exit_code == 0, result.output
    return read_record(folder / "record.json")


def rounds(record: RunRecord) -> list[dict[str, int]]:
    """How many tasks each job starts at a time; all run equally long, so these are the ones that run."""
    running: dict[float, Counter[str]] = {}
    for pod in record.pods:
        running.setdefault(pod.started, Counter())[record.jobs[pod.job].name] += 1
    return [dict(sorted(running[moment].items())) for moment in sorted(running)]


def test_the_worked_example_of_drf(tmp_path):
    """Ghodsi et al. 2011: of 9 CPUs and 18 GB, A gets 3 tasks of 1 CPU and 4 GB, and B gets 2 of 3 CPUs and 1 GB."""
    assert rounds(simulated("drf", tmp_path)) == [{"a": 3, "b": 2}] * 4


def test_queues_of_weights_three_and_one(tmp_path):
    assert rounds(simulated("weights", tmp_path)) == [{"gold": 9, "silver": 3}] * 2 + [{"silver": 12}]


BY_TREE = [*[{"search": 3, "speech": 3, "vision": 6}] * 3, {"search": 3, "speech": 9}, {"search": 6}]
"""Research has three times what services has, and in it vision twice what speech has; siblings inherit first."""


def test_queues_below_queues_that_deserve_amounts(tmp_path):
    assert rounds(simulated("tree", tmp_path)) == BY_TREE


HIERARCHICAL_DRF = """\
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: drf, enableHierarchy: true}, {name: predicates}]}]
"""
WEIGHTS = {"vision": ("research", "1/3/2"), "speech": ("research", "1/3/1"), "search": ("services", "1/1/1")}


def weighted_tree() -> list[Manifest]:
    tree = queues(";".join(WEIGHTS))
    for queue in tree:
        name = queue["metadata"]["name"]
        parent, weights = WEIGHTS[name]
        queue["metadata"]["annotations"] = {
            "volcano.sh/hierarchy": f"root/{parent}/{name}",
            "volcano.sh/hierarchy-weights": weights,
        }
    return tree


def test_queues_below_queues_that_have_weights():
    jobs = tuple(
        SubmittedJob(name, 0, 100, 18, minimum=1, requests={"cpu": 1, "memory": "1Gi"}, queue=name)
        for name in WEIGHTS
    )
    workload = Workload("tree", jobs, tuple(nodes("n cpu=12,memory=12Gi")), tuple(weighted_tree()))
    record = simulate(workload, (), load_policy(HIERARCHICAL_DRF, CATALOG), CATALOG)
    assert rounds(record) == BY_TREE
