"""`stromboli plan` of what users write: jobs and workloads are expanded as controllers would."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.simulator.workload_manifests import flow_objects, job, template, workload

Run = Callable[..., Result]
Manifest = dict[str, Any]
ALTERNATIVES = {"topology"}
"""Folders of examples whose files say the same job in several ways."""
SIMULATED = {"simulator"}
"""Folders of workloads for the simulator, which are no Kubernetes objects."""
EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = "2026-11-01T12:00:30Z"


@pytest.fixture
def plan(run: Run, tmp_path: Path) -> Callable[..., Manifest]:
    """The plan, as JSON, of objects beside two nodes of four CPUs."""

    def planned(*objects: Manifest, cycles: int = 1) -> Manifest:
        file = write(tmp_path, *objects)
        result = run("plan", "-f", file, "--now", NOW, "--cycles", cycles, "-o", "json")
        assert result.exit_code == 0, result.output
        document: Manifest = json.loads(result.stdout)
        return document

    return planned


def write(folder: Path, *objects: Manifest) -> Path:
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all([*nodes("n1 cpu=4; n2 cpu=4"), *queues("research"), *objects]))
    return file


# -- Volcano's jobs


def test_a_job_is_answered_under_its_own_name(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(nodes("n1 cpu=4; n2 cpu=4")))
    small, large = tmp_path / "small.yaml", tmp_path / "large.yaml"
    small.write_text(yaml.safe_dump(job()))
    large.write_text(yaml.safe_dump(job("large", cpu=3)))
    text = run("plan", "-f", cluster, small, large).stdout
    assert "default/train-worker-2" in text
    assert "  default/large  (3 pods, queue default)  " in text
    assert "pods created for Job default/train (3 pods), Job default/large (3 pods)" in text
    assert text.splitlines()[-1].startswith("4 objects in")


def test_a_new_job_comes_after_those_of_the_cluster(plan: Callable[..., Manifest]) -> None:
    group, *pods = job_manifests("before", pods=3, cpu=2)
    group["metadata"]["creationTimestamp"] = "2026-10-31T00:00:00Z"
    result = plan(job("new", cpu=2), group, *pods)
    assert result["bound_per_job"] == {"default/before": 3}
    assert list(result["pending"]) == ["default/new"]


def test_admission_fills_in_what_the_user_left_out_and_refuses_what_it_would(
    run: Run, plan: Callable[..., Manifest], tmp_path: Path
) -> None:
    bare = job(tasks=[{"replicas": 2, "template": template()}])
    assert plan(bare)["bound_per_job"] == {"default/train": 2}
    wrong = job(queue="nowhere", minAvailable=9)
    result = run("plan", "-f", write(tmp_path, wrong))
    assert result.exit_code == 2
    assert (
        'Job default/train: admission webhook "validatejob.volcano.sh" denied the request: ' in result.stderr
    )
    assert "job 'minAvailable' should not be greater than total replicas in tasks" in result.stderr
    assert 'queue.scheduling.volcano.sh "nowhere" not found' in result.stderr


def test_what_is_wrong_with_a_template_is_told_with_the_job(run: Run, tmp_path: Path) -> None:
    result = run("plan", "-f", write(tmp_path, job(tasks=[{"replicas": 1, "template": template("many")}])))
    assert result.exit_code == 2
    assert "Job default/train: " in result.stderr
    assert "many" in result.stderr


def test_pods_and_groups_that_the_cluster_has_are_not_made_twice(plan: Callable[..., Manifest]) -> None:
    uid = "11111111-2222-3333-4444-555555555555"
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train",
        "uid": uid,
        "controller": True,
    }
    group, pod, *_ = job_manifests("train", pods=3, cpu=1, running_on="n1")
    group["metadata"] |= {"name": f"train-{uid}", "ownerReferences": [owner]}
    pod["metadata"] |= {
        "name": "train-worker-0",
        "ownerReferences": [owner],
        "annotations": {"scheduling.k8s.io/group-name": f"train-{uid}"},
    }
    result = plan(group, pod, job())
    assert result["made_pods"] == {"Job default/train": 2}
    assert result["bound_per_job"] == {f"default/train-{uid}": 2}
    assert list(result["phases"]) == [f"default/train-{uid}"]


def test_tasks_wait_for_the_tasks_that_they_depend_on(plan: Callable[..., Manifest]) -> None:
    tasks = [
        {"name": "store", "replicas": 1, "template": template()},
        {"name": "trainer", "replicas": 2, "template": template(), "dependsOn": {"name": ["store"]}},
    ]
    dependent = job(tasks=tasks, minAvailable=1)
    first = plan(dependent)
    assert list(first["binds"]) == ["default/train-store-0"]
    note = "Job default/train: the pods of task trainer (2) are made once store runs (dependsOn)"
    assert first["notes"] == [note]
    later = plan(dependent, cycles=2)
    assert later["made_pods"] == {"Job default/train": 3}
    assert len(later["binds"]) == 3
    assert "notes" not in later


def test_a_suspended_job_has_no_pods(plan: Callable[..., Manifest]) -> None:
    aborted = job() | {"status": {"state": {"phase": "Aborted"}}}
    assert plan(aborted)["notes"] == [
        "Job default/train is suspended (Aborted): it has no pods until a Command resumes it"
    ]
    command = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "stop"},
        "action": "AbortJob",
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": ""},
    }
    stopped = plan(job(), command)
    assert stopped["binds"] == {}
    assert stopped["notes"] == ["Job default/train: the Command stop (AbortJob) stops it: no pods"]
    assert len(plan(aborted, command | {"action": "ResumeJob"})["binds"]) == 3


def test_a_flow_starts_the_jobs_whose_turn_it_is(plan: Callable[..., Manifest]) -> None:
    result = plan(*flow_objects())
    assert result["bound_per_job"] == {"default/night-a": 3}
    assert result["notes"] == [
        "JobFlow default/night: job night-b is made once a has completed",
        "JobFlow default/night: job night-c is made once a and b have completed",
    ]


def test_a_template_alone_is_planned_as_a_job_and_a_missing_one_is_told(
    plan: Callable[..., Manifest],
) -> None:
    template_alone, *_, night = flow_objects()
    result = plan(template_alone)
    assert result["bound_per_job"] == {"default/a": 3}
    assert result["notes"] == [
        "JobTemplate default/a: planned as a job; it takes a JobFlow to make one of it"
    ]
    assert 'there is no JobTemplate "a" among the objects' in plan(night)["notes"][0]


@pytest.mark.parametrize("version", ["batch/v1", "batch.volcano.sh/v1alpha1"])
def test_a_new_cron_job_is_planned_as_if_its_time_had_come(
    plan: Callable[..., Manifest], version: str
) -> None:
    run_spec = job()["spec"] if "volcano" in version else {"template": template(schedulerName="volcano")}
    spec = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": run_spec}}
    cron = {"apiVersion": version, "kind": "CronJob", "metadata": {"name": "report"}, "spec": spec}
    result = plan(cron)
    assert list(result["bound_per_job"]) == [
        "default/report-29892250" if "volcano" in version else "default/report"
    ]
    assert result["notes"] == [
        "CronJob default/report: planned as if its next time, 2026-11-01T12:10:00Z, had come"
    ]
    suspended = plan({**cron, "spec": {**spec, "suspend": True}})
    assert suspended["notes"] == ["CronJob default/report is suspended: it starts no job"]
    of_a_cluster = plan({**cron, "metadata": {"name": "report", "uid": "u1"}})
    assert of_a_cluster["binds"] == {}


# -- Kubernetes' workloads


def test_a_deployment_is_one_job_of_its_name(plan: Callable[..., Manifest]) -> None:
    result = plan(workload("Deployment", replicas=3))
    assert result["bound_per_job"] == {"default/web": 3}
    assert result["made_pods"] == {"Deployment default/web": 3}


def test_the_minimum_of_a_gang_comes_from_the_annotation_of_the_workload(
    plan: Callable[..., Manifest],
) -> None:
    gang = workload("ReplicaSet", replicas=3, template=template(3, schedulerName="volcano"))
    assert plan(gang)["bound_per_job"] == {"default/web": 2}
    gang["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "3"}
    assert plan(gang)["bound_per_job"] == {}


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_replicas_that_exist_are_not_made_again(plan: Callable[..., Manifest], kind: str) -> None:
    version = "apps/v1" if kind == "ReplicaSet" else "v1"
    owner = {"apiVersion": version, "kind": kind, "name": "web", "uid": "u1", "controller": True}
    pod = job_manifests("web", cpu=1, running_on="n1")[1]
    pod["metadata"] |= {"name": "web-old", "ownerReferences": [owner], "annotations": {}}
    live = workload(kind, version=version, replicas=3)
    live["metadata"]["uid"] = "u1"
    assert plan(live, pod)["made_pods"] == {f"{kind} default/web": 2}
    counted = live | {"status": {"replicas": 3}}
    assert "made_pods" not in plan(counted)  # the cluster has them, though the files do not


def test_a_stateful_set_starts_one_pod_after_the_other_with_its_claims(
    plan: Callable[..., Manifest],
) -> None:
    ordered = workload("StatefulSet", replicas=3, serviceName="web")
    assert list(plan(ordered)["binds"]) == ["default/web-0"]
    [note] = plan(ordered)["notes"]
    assert note.startswith("StatefulSet default/web: 2 pods more are made one after the other, each once")
    assert list(plan(ordered, cycles=3)["binds"]) == ["default/web-0", "default/web-1", "default/web-2"]
    ordered["spec"]["podManagementPolicy"] = "Parallel"
    assert len(plan(ordered)["binds"]) == 3
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    ordered["spec"]["volumeClaimTemplates"] = [claim]
    waiting = plan(ordered)
    assert waiting["binds"] == {}
    assert "Claim" in waiting["pending"]["default/web"]["message"]  # nobody has bound it yet
    meta = {"name": "data-web-0", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    of_cluster = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {"claimRef": {"namespace": "default", "name": "data-web-0"}},
    }
    bound = {"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}
    assert list(plan(ordered, of_cluster | bound, volume)["binds"]) == ["default/web-0"]


def test_a_daemon_set_has_a_pod_on_every_node_that_it_selects(plan: Callable[..., Manifest]) -> None:
    daemons = workload("DaemonSet")
    assert set(plan(daemons)["binds"].values()) == {"n1", "n2"}
    daemons["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n2"}
    assert set(plan(daemons)["binds"].values()) == {"n2"}


def test_a_job_of_kubernetes_runs_as_many_pods_as_it_may_at_a_time(plan: Callable[..., Manifest]) -> None:
    batch = workload("Job", version="batch/v1", parallelism=4, completions=3)
    assert plan(batch)["bound_per_job"] == {"default/web": 3}
    batch["spec"]["suspend"] = True
    assert plan(batch)["notes"] == ["Job default/web is suspended (spec.suspend): it has no pods"]


def test_a_pod_without_a_group_gets_one_of_its_name_in_the_queue_of_its_namespace(
    plan: Callable[..., Manifest],
) -> None:
    spec = template(schedulerName="volcano")["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "loner"}, "spec": spec}
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "annotations": {"scheduling.volcano.sh/queue-name": "research"}},
    }
    assert plan(pod)["bound_per_job"] == {"default/loner": 1}
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    assert plan(pod, space)["pending"]["default/loner"]["queue"] == "research"


def test_workloads_of_another_scheduler_are_told(plan: Callable[..., Manifest]) -> None:
    result = plan(workload("Deployment", replicas=2, template=template()))
    assert result["other_schedulers"] == {"default-scheduler": 2}


def test_control_characters_of_an_object_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    meta = {"name": "a\x1b[31m\nb"}
    command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": meta, "action": "x"}
    assert (
        "  Command default/a\\x1b[31m\\nb (x): a plan" in run("plan", "-f", write(tmp_path, command)).stdout
    )


# -- files


def test_a_policy_beside_the_manifests_is_in_force_unless_another_is_given(run: Run, tmp_path: Path) -> None:
    write(tmp_path, job())
    beside = tmp_path / "policy.yaml"
    beside.write_text('actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n')
    result = run("plan", "-f", tmp_path, "-o", "json")
    assert json.loads(result.stdout)["binds"] == {}
    assert json.loads(result.stdout)["warnings"] == [
        f"{beside}: a policy, not an object: in force, as no other is given"
    ]
    other = json.loads(run("plan", "-f", tmp_path, "--preset", "basic", "-o", "json").stdout)
    assert len(other["binds"]) == 3
    assert other["warnings"] == [
        f"{beside}: a policy, not an object: skipped; --policy FILE puts it in force"
    ]
    beside.write_text('actions: "enqueue, nonsense"\ntiers: []\n')
    wrong = run("plan", "-f", tmp_path)
    assert wrong.exit_code == 0
    assert "skipped, as it is wrong" in wrong.stderr


def test_every_gang_of_the_topology_examples_can_be_planned_on_their_cluster(run: Run) -> None:
    cluster, *gangs = sorted((EXAMPLES / "topology").glob("*.yaml"), key=lambda path: path.stem != "cluster")
    for gang in gangs:
        assert run("plan", "-f", cluster, "-f", gang).exit_code == 0, gang


@pytest.mark.parametrize(
    "folder",
    sorted({path.name for path in EXAMPLES.iterdir() if path.is_dir()} - ALTERNATIVES - SIMULATED),
)
def test_every_folder_of_examples_can_be_planned(run: Run, folder: str) -> None:
    result = run("plan", "-f", EXAMPLES / folder)
    if folder == "refused":
        assert (result.exit_code, "denied the request" in result.stderr) == (2, True)
    else:
        assert result.exit_code == 0, result.output
        assert "error: " not in result.stderr
