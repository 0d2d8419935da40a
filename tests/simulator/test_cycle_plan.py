"""Reports of several cycles."""

import subprocess
import sys
from pathlib import Path

import pytest

from stromboli.api.errors import BadInput
from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.cli.plan_text import eviction_sentence
from stromboli.engine.decisions import Evict
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_loading import load
from stromboli.simulator.cycle_plan import document, make_plan
from stromboli.simulator.cycle_report import Report
from stromboli.testing.policy_text import policy_text

CATALOG = load_catalog()
GANG = load_policy(policy_text("enqueue, allocate", "gang"), CATALOG)


def report(evictions: list[Evict], **fields: object) -> Report:
    empty = {"binds": {}, "bound_per_job": {}, "pipelined": {}, "phases": {}, "pending": {}, "seconds": {}}
    evicted = [eviction.key for eviction in evictions]
    return Report(**{**empty, "evictions": evictions, "evicted": evicted, "failures": [], **fields})  # type: ignore[arg-type]


VICTIM = Evict(
    "default",
    "low-0",
    "u",
    "n1",
    "default/low",
    "preempt",
    "preempt",
    "default/high",
    "gang",
    {"cpu": "2", "memory": "0"},
)


def test_several_cycles_together_hold_all_decisions_and_the_last_state() -> None:
    first = report([VICTIM], binds={"a": "n1"}, bound_per_job={"j": 1}, phases={"j": "Pending"})
    second = report(
        [],
        binds={"b": "n2"},
        bound_per_job={"j": 1},
        pending={"k": Diagnosis("nodes", "r", "m")},
        lost="x",
    )
    whole = Report.together([first, second])
    assert (whole.binds, whole.bound_per_job) == ({"a": "n1", "b": "n2"}, {"j": 2})
    assert (whole.evicted, whole.evictions) == (["default/low-0"], [VICTIM])
    assert (whole.phases, list(whole.pending), whole.lost) == ({}, ["k"], "x")


def test_an_eviction_is_a_sentence() -> None:
    text = "default/low-0 is evicted from n1: preempt for default/high, frees cpu 2 (chosen by gang)"
    assert eviction_sentence(VICTIM) == text
    assert (
        eviction_sentence(Evict("d", "p", "u", "n1", "d/j", "shuffle")) == "d/p is evicted from n1: shuffle"
    )


def test_what_was_left_out_is_in_the_document(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Node\nmetadata: {name: n}\nspec: {unschedulable: maybe}\n")
    with pytest.raises(BadInput):
        load(lambda: open_paths([str(tmp_path)]))
    loaded = load(lambda: open_paths([str(tmp_path)], keep_going=True), keep_going=True)
    plan = document(make_plan(loaded, GANG, CATALOG, 0.0))
    assert [problem["field"] for problem in plan["problems"]] == ["spec.unschedulable"]


def test_a_pod_that_cannot_be_read_fully_counts_on_its_node(tmp_path: Path) -> None:
    """As in the scheduler, which would not bind there either."""
    (tmp_path / "a.yaml").write_text("""
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}
---
kind: Pod
metadata: {name: full}
spec:
  nodeName: n
  schedulerName: volcano
  containers: [{name: c, resources: {requests: {cpu: 3, memory: 9007199254740988Ki}}}]
status: {phase: Running}
---
kind: Pod
metadata: {name: waits}
spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: 2}}}]}
""")
    loaded = load(lambda: open_paths([str(tmp_path)], keep_going=True), keep_going=True)
    plan = document(make_plan(loaded, GANG, CATALOG, 0.0))
    assert plan["binds"] == {}
    (problem,) = plan["problems"]
    assert (problem["object"], problem["problem"].partition("; ")[2]) == (
        "Pod full",
        "the other fields of the pod count on its node",
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from Linux")
def test_a_hundred_thousand_pods_on_five_thousand_nodes_stay_below_600_mib(tmp_path: Path) -> None:
    container = '{"name":"main","resources":{"requests":{"cpu":"1","memory":"2Gi"}}}'
    mark = '"annotations":{"scheduling.k8s.io/group-name":'
    items = [
        f'{{"kind":"Node","metadata":{{"name":"n{i}"}},"status":{{"allocatable":{{"cpu":"64","pods":"110"}}}}}}'
        for i in range(5000)
    ]
    for j in range(5000):
        items.append(f'{{"kind":"PodGroup","metadata":{{"name":"j{j}"}},"spec":{{"minMember":20}}}}')
        for i in range(20):
            place = f'"nodeName":"n{(20 * j + i) % 5000}",' if j < 4500 else ""
            phase = "Running" if j < 4500 else "Pending"
            items.append(
                f'{{"kind":"Pod","metadata":{{"name":"j{j}-w-{i}",{mark}"j{j}"}}}},'
                f'"spec":{{{place}"schedulerName":"volcano","containers":[{container}]}},'
                f'"status":{{"phase":"{phase}"}}}}'
            )
    (tmp_path / "big.json").write_text(f'{{"kind":"List","items":[{",".join(items)}]}}')
    script = (
        "import sys; from typer.testing import CliRunner; from stromboli.cli.main import app\n"
        "result = CliRunner().invoke(app, ['plan', '-f', sys.argv[1], '-o', 'json'], catch_exceptions=False)\n"
        "assert result.exit_code == 0\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    line = [sys.executable, "-c", script, str(tmp_path / "big.json")]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 600 * 1024
