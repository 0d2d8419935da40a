"""A real API server asks our webhook server, which runs with its own rights and no others."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.admission_gate import Gate
from tests.kubernetes.controlling import ControllerCluster

POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


def job(name: str, **spec: Any) -> dict[str, Any]:
    tasks = [{"replicas": 3, "template": copy.deepcopy(POD)}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": tasks, **spec},
    }


def pod(name: str, scheduler: str, **annotations: str) -> dict[str, Any]:
    marks = {f"volcano.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
    spec = {**POD["spec"], "schedulerName": scheduler}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": marks},
        "spec": spec,
    }


def test_a_job_is_stored_with_what_its_user_left_out(gate: Gate) -> None:
    assert "created" in gate.create(job("plain", plugins={"pytorch": []}))
    spec = gate.get("jobs.batch.volcano.sh", "plain")["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["minAvailable"]) == ("default", "volcano", 3)
    assert spec["tasks"][0]["name"] == "default0"
    assert spec["plugins"] == {"pytorch": [], "svc": []}


def test_a_job_that_cannot_run_is_refused_with_all_reasons(gate: Gate) -> None:
    message = gate.create(job("bad", queue="nowhere", minAvailable=9, plugins={"magic": []}))
    assert 'admission webhook "validatejob.volcano.sh" denied the request: ' in message
    assert (
        "job 'minAvailable' should not be greater than total replicas in tasks (spec.minAvailable: 9;"
        in message
    )
    assert "unable to find job plugin: magic" in message
    assert 'queue.scheduling.volcano.sh "nowhere" not found' in message


def test_a_queue_and_its_job_can_be_applied_in_one_go(gate: Gate) -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "fresh"}}
    gate.plane.apply(queue, job("eager", queue="fresh"))
    assert gate.get("queues.scheduling.volcano.sh", "fresh")["spec"]["reclaimable"] is True


def test_only_a_jobs_size_may_change(gate: Gate) -> None:
    gate.create(job("grow"))
    patch = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 5}]
    gate.plane.kubectl("patch", "jobs.batch.volcano.sh", "grow", "--type=json", "-p", json.dumps(patch))
    patch = [{"op": "replace", "path": "/spec/queue", "value": "other"}]
    message = gate.output_of("patch", "jobs.batch.volcano.sh", "grow", "--type=json", "-p", json.dumps(patch))
    assert "job updates may not change fields other than" in message


def test_the_default_queue_stays(gate: Gate) -> None:
    message = gate.output_of("delete", "queues.scheduling.volcano.sh", "default")
    assert "`default` queue can not be deleted" in message


def test_budgets_of_our_pods_are_checked_and_other_pods_are_none_of_our_business(gate: Gate) -> None:
    assert "it must be a positive integer" in gate.create(pod("ours", "volcano", jdb_min_available="0"))
    assert "created" in gate.create(pod("theirs", "default-scheduler", jdb_min_available="0"))


def test_pods_start_without_us_and_jobs_wait_for_us(gate: Gate) -> None:
    gate.stop()
    try:
        assert "created" in gate.create(pod("alone", "volcano"))
        assert "failed calling webhook" in gate.create(job("alone"))
    finally:
        gate.start()
    gate.plane.wait(lambda: "created" in gate.create(job("alone")), "jobs to be taken again")


@pytest.mark.real_only
def test_our_controllers_create_pod_groups_without_us(gate: Gate, tmp_path: Path) -> None:
    cluster = ControllerCluster(tmp_path, gate.plane)
    cluster.install_rights()
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"}}
    gate.plane.apply(queue)
    annotations = {"scheduling.volcano.sh/queue-name": "team"}
    gate.plane.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "annotations": annotations}}
    )
    assert "created" in gate.create(job("stored"))
    gate.stop()
    try:
        cluster.start()
        lone = pod("lone", "volcano")
        lone["metadata"]["namespace"] = "team"
        assert "created" in gate.create(lone)
        cluster.wait(lambda: len(cluster.every("podgroups", "team")) == 1, "the PodGroup of a pod")
        assert cluster.every("podgroups", "team")[0]["spec"]["queue"] == "team"
        name = f"stored-{cluster.read('jobs', 'stored', 'default')['metadata']['uid']}"
        cluster.wait(lambda: name in cluster.names("podgroups", "default"), "the PodGroup of a job")
        cluster.wait(lambda: bool(cluster.read("jobs", "stored", "default").get("status")), "its status")
        mine = {**queue, "kind": "PodGroup", "metadata": {"name": "mine", "namespace": "default"}}
        assert "failed calling webhook" in gate.create({**mine, "spec": {"minMember": 1}})
    finally:
        cluster.close()
        gate.start()
    gate.plane.wait(lambda: "created" in gate.create(job("again")), "jobs to be taken again")
