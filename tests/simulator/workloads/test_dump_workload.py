"""A cluster as a workload: what runs goes on where it runs, what waits is submitted."""

from math import inf

import pytest
import yaml

from stromboli.extensions import load_catalog
from stromboli.policy.policy import default_policy
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.dump_workload import read_dump
from stromboli.simulator.workloads.workload_errors import WorkloadError
from stromboli.simulator.workloads.workload_files import read_workload, write_workload

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
STARTED = "2027-01-15T07:59:00Z"  # a minute ago


def node(name, cpu="4"):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def group(name, members, created="2027-01-15T07:00:00Z", **annotations):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "team",
            "creationTimestamp": created,
            "annotations": annotations,
        },
        "spec": {"minMember": members, "queue": "gold"},
    }


def pod(name, of="", on="", cpu="1", phase=None, scheduler="volcano", spec=None, **annotations):
    marks = {"scheduling.k8s.io/group-name": of} if of else {}
    status = {"phase": phase or ("Running" if on else "Pending")} | ({"startTime": STARTED} if on else {})
    requests = {"resources": {"requests": {"cpu": cpu}}}
    place = {"nodeName": on} if on else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "annotations": {**marks, **annotations}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", **requests}],
            **place,
            **(spec or {}),
        },
        "status": status,
    }


QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "gold"},
    "spec": {"weight": 2},
}


@pytest.fixture
def dump(tmp_path):
    def read(*objects, assumed=None):
        file = tmp_path / "cluster.yaml"
        file.write_text(yaml.dump_all(objects))
        return read_dump([str(file)], NOW, assumed)

    return read


def test_what_runs_goes_on_and_what_waits_is_submitted_at_once(dump):
    workload = dump(
        node("n1"),
        node("n2"),
        QUEUE,
        group("late", 2, "2027-01-15T07:30:00Z"),
        pod("late-0", "late", spec={"activeDeadlineSeconds": 50, "nodeSelector": {"zone": "a"}}),
        pod("late-1", "late", spec={"activeDeadlineSeconds": 50, "nodeSelector": {"zone": "a"}}),
        group("runs", 2, **{"stromboli.sh/time-limit": "5m", "stromboli.sh/user": "ada"}),
        pod("runs-0", "runs", "n1"),
        pod("runs-1", "runs", "n2"),
        group("early", 1, "2027-01-15T07:10:00Z"),
        pod("early-0", "early", **{"stromboli.sh/run-time": "30"}),
        pod("over", "early", phase="Succeeded"),
    )
    runs, early, late = workload.jobs
    assert (runs.name, runs.running_on, runs.run_time, runs.time_limit, runs.user) == (
        "runs",
        ("n1", "n2"),
        240,
        240,
        "ada",
    )
    assert (early.name, early.running_on, early.run_time, early.time_limit) == ("early", (), 30, None)
    assert (late.name, late.pods, late.minimum, late.run_time, late.time_limit) == ("late", 2, 2, 50, 50)
    assert late.spec == {"activeDeadlineSeconds": 50, "nodeSelector": {"zone": "a"}}
    assert {job.submit_time for job in workload.jobs} == {0}
    assert {(job.queue, job.namespace, job.requests["cpu"]) for job in workload.jobs} == {
        ("gold", "team", "1")
    }
    assert [each["metadata"]["name"] for each in workload.nodes] == ["n1", "n2"]
    assert [each["kind"] for each in workload.objects] == ["Queue"]


def test_a_job_over_its_limit_has_no_end_that_anybody_knows(dump):
    (job,) = dump(node("n1"), group("g", 1, **{"stromboli.sh/time-limit": "30s"}), pod("p", "g", "n1")).jobs
    assert (job.run_time, job.time_limit) == (inf, None)


def test_jobs_without_a_time_limit_never_end_and_that_is_told(dump):
    limited = pod("b-0", "b", **{"stromboli.sh/time-limit": "5m"})
    workload = dump(node("n1"), group("a", 1), pod("a-0", "a"), group("b", 1), limited)
    assert workload.notes == (
        "1 of 2 jobs never ends: it is over its time limit or has none "
        "(annotation stromboli.sh/time-limit, or stromboli.sh/run-time of pods); "
        "simulate --assume-run-time 2h lets it end",
    )


def test_jobs_of_which_nothing_is_known_run_as_long_as_is_assumed(dump):
    limited = pod("b-0", "b", **{"stromboli.sh/time-limit": "5m"})
    endless = pod("c-0", "c", **{"stromboli.sh/run-time": "forever"})
    over = group("d", 1, **{"stromboli.sh/time-limit": "30s"})
    groups = (group("a", 1), group("b", 1), group("c", 1), over)
    workload = dump(
        node("n1"), *groups, pod("a-0", "a"), limited, endless, pod("d-0", "d", "n1"), assumed=7200.0
    )
    times = {job.name: (job.run_time, job.time_limit) for job in workload.jobs}
    assert times == {"a": (7200, None), "b": (300, 300), "c": (inf, None), "d": (7200, None)}
    assert "2 of 4 jobs are over their time limit or have none: taken to run for 7200 s" in workload.notes


def test_jobs_that_say_nothing_have_the_time_limit_of_their_queue_or_of_one_above(dump):
    above = {**QUEUE, "metadata": {"name": "metal", "annotations": {"stromboli.sh/time-limit": "5m"}}}
    gold = {**QUEUE, "spec": {"weight": 2, "parent": "metal"}}
    own = group("b", 1, **{"stromboli.sh/time-limit": "1m"})
    group_a = group("a", 1)
    for each in (group_a, own):
        each["spec"]["queue"] = "gold"
    workload = dump(node("n1"), above, gold, group_a, pod("a-0", "a"), own, pod("b-0", "b"))
    assert {job.name: (job.run_time, job.time_limit) for job in workload.jobs} == {
        "a": (300, 300),
        "b": (60, 60),
    }
    assert not workload.notes


def test_pods_of_a_group_that_differ_are_jobs_of_their_own(dump):
    workload = dump(
        node("n1"),
        group("g", 3),
        pod("runs", "g", "n1"),
        pod("waits", "g"),
        pod("large-0", "g", cpu="2"),
        pod("large-1", "g", cpu="2"),
    )
    assert [(job.name, job.pods, job.minimum, job.requests["cpu"]) for job in workload.jobs] == [
        ("g", 1, 1, "1"),
        ("g-2", 2, 1, "2"),
        ("g-3", 1, 1, "1"),
    ]


def test_kubernetes_own_groups_are_jobs_as_well(dump):
    native = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": "g",
            "namespace": "team",
            "annotations": {"scheduling.volcano.sh/queue-name": "gold"},
        },
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    of_group = {"schedulingGroup": {"podGroupName": "g"}}
    workload = dump(node("n1"), native, *(pod(name, spec=of_group) for name in "abc"))
    (job,) = workload.jobs
    assert (job.name, job.pods, job.minimum, job.queue, job.spec) == ("g", 3, 2, "gold", {})
    assert workload.objects == ()


def test_pods_of_others_stay_on_their_nodes_and_are_not_placed(dump):
    workload = dump(
        node("n1"),
        pod("system", on="n1", scheduler="default-scheduler"),
        pod("new", scheduler="default-scheduler"),
    )
    assert [each["metadata"]["name"] for each in workload.objects] == ["system"]
    assert workload.jobs == ()
    assert workload.notes == (
        "1 pod of other schedulers, or without a PodGroup, waits and is left out",
        "1 pod of other schedulers, or without a PodGroup, stays where it is",
    )


def test_what_cannot_be_used_is_left_out_and_told(dump):
    bad = pod("bad", "g")
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    workload = dump(node("n1"), bad)
    assert workload.jobs == ()
    assert "1 object left out, the first:" in workload.notes[-1]


def test_a_file_without_a_cluster_is_told(dump):
    with pytest.raises(WorkloadError, match="there are neither nodes nor pods in it"):
        dump(QUEUE)
    with pytest.raises(WorkloadError, match=r"nowhere.yaml: there are neither"):
        read_dump(["nowhere.yaml"], NOW)


def test_what_runs_ends_when_its_time_is_up_and_lets_others_start(dump, tmp_path):
    workload = dump(
        node("n1", "2"),
        QUEUE,
        group("runs", 1, **{"stromboli.sh/time-limit": "5m"}),
        pod("runs-0", "runs", "n1", cpu="2"),
        group("waits", 1),
        pod("waits-0", "waits", cpu="2", **{"stromboli.sh/run-time": "10s"}),
    )
    saved = str(tmp_path / "saved.jsonl")
    write_workload(workload, saved)
    assert read_workload(saved) == workload
    catalog = load_catalog()
    record = simulate(read_workload(saved), (), default_policy(catalog), catalog)
    assert [(job.name, job.started, job.ended) for job in record.jobs] == [
        ("runs", 0.0, 240.0),
        ("waits", 240.0, 250.0),
    ]
    assert [(each.node, each.started, each.ended) for each in record.pods] == [
        ("n1", 0, 240),
        ("n1", 240, 250),
    ]


def test_where_a_node_is_not_there_any_more_its_pods_wait(dump):
    workload = dump(
        node("n1", "2"), QUEUE, group("g", 1, **{"stromboli.sh/time-limit": "5m"}), pod("p", "g", "gone")
    )
    catalog = load_catalog()
    record = simulate(workload, (), default_policy(catalog), catalog)
    assert record.pods[0].node == "n1"
