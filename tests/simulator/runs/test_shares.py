"""Worked examples of fair shares come out exactly in a simulation, and stay so as tasks end and others follow."""

from __future__ import annotations

from collections import Counter

import pytest

from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_notation import Manifest, nodes, queues
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from tests.simulator.runs.small_runs import CATALOG
from tests.simulator.traces_at_hand import EXAMPLES

ROUND = 100.0
"""How long every task runs, in seconds."""


def tasks(name: str, count: int, cpu: int, memory: str, queue: str = "") -> SubmittedJob:
    """A user with many tasks, each of which may start alone."""
    return SubmittedJob(
        name, 0, ROUND, count, minimum=1, requests={"cpu": cpu, "memory": memory}, queue=queue
    )


def shares(policy: str, cluster: str, objects: list[Manifest], *jobs: SubmittedJob) -> RunRecord:
    workload = Workload("shares", jobs, tuple(nodes(cluster)), tuple(objects))
    text = (EXAMPLES / policy / "policy.yaml").read_text() if "\n" not in policy else policy
    return simulate(workload, (), load_policy(text, CATALOG), CATALOG)


def rounds(record: RunRecord) -> list[dict[str, int]]:
    """How many tasks each job runs, from start to start."""
    running: dict[float, Counter[str]] = {}
    for pod in record.pods:
        running.setdefault(pod.started, Counter())[record.jobs[pod.job].name] += 1
    return [dict(sorted(running[moment].items())) for moment in sorted(running)]


def test_the_worked_example_of_drf():
    """Ghodsi et al. 2011: of 9 CPUs and 18 GB, A gets 3 tasks of 1 CPU and 4 GB, and B gets 2 of 3 CPUs and 1 GB."""
    a, b = tasks("a", 12, cpu=1, memory="4G"), tasks("b", 8, cpu=3, memory="1G")
    record = shares("drf", "n cpu=9,memory=18G", [], a, b)
    assert rounds(record) == [{"a": 3, "b": 2}] * 4


def test_drf_gives_what_one_leaves_to_the_other():
    a, b = tasks("a", 4, cpu=1, memory="4G"), tasks("b", 8, cpu=3, memory="1G")
    record = shares("drf", "n cpu=9,memory=18G", [], a, b)
    assert rounds(record) == [{"a": 3, "b": 2}, {"a": 1, "b": 2}, {"b": 3}, {"b": 1}]


def test_queues_of_weights_three_and_one():
    of_weights = queues("gold weight=3; silver weight=1")
    gold, silver = (tasks(name, 18, cpu=1, memory="1Gi", queue=name) for name in ("gold", "silver"))
    record = shares("weights", "n cpu=12,memory=12Gi", of_weights, gold, silver)
    assert rounds(record) == [{"gold": 9, "silver": 3}] * 2 + [{"silver": 12}]


TREE = (
    "research deserved=cpu:9,memory:9Gi; vision parent=research deserved=cpu:6,memory:6Gi;"
    "speech parent=research deserved=cpu:3,memory:3Gi;"
    "services deserved=cpu:3,memory:3Gi; search parent=services deserved=cpu:3,memory:3Gi"
)
WEIGHTED_TREE = {
    "vision": ("research", "1/3/2"),
    "speech": ("research", "1/3/1"),
    "search": ("services", "1/1/1"),
}
HIERARCHICAL_DRF = """\
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: drf, enableHierarchy: true}, {name: predicates}]}]
"""


def weighted_tree() -> list[Manifest]:
    tree = queues(";".join(WEIGHTED_TREE))
    for queue in tree:
        name = queue["metadata"]["name"]
        parent, weights = WEIGHTED_TREE[name]
        queue["metadata"]["annotations"] = {
            "volcano.sh/hierarchy": f"root/{parent}/{name}",
            "volcano.sh/hierarchy-weights": weights,
        }
    return tree


@pytest.mark.parametrize(
    ("policy", "tree"), [("tree", queues(TREE)), (HIERARCHICAL_DRF, weighted_tree())], ids=["capacity", "drf"]
)
def test_queues_below_queues(policy, tree):
    """Research has three times what services has, and in it vision twice what speech has; who ends leaves it first to
    its siblings."""
    teams = [tasks(name, 18, cpu=1, memory="1Gi", queue=name) for name in ("vision", "speech", "search")]
    record = shares(policy, "n cpu=12,memory=12Gi", tree, *teams)
    assert rounds(record) == [
        *[{"search": 3, "speech": 3, "vision": 6}] * 3,
        {"search": 3, "speech": 9},
        {"search": 6},
    ]
