"""Pods of Kubernetes' workloads, as functions of their owner and an ordinal."""

from typing import Any

import msgspec
import pytest

from stromboli.api.decoding import decode, decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.node import Node
from stromboli.controllers.workloads.daemonset.node_eligibility import daemon_nodes
from stromboli.controllers.workloads.workload import Workload, counted_pods, desired_pods
from stromboli.controllers.workloads.workload_pods import (
    cron_job_run,
    daemon_pod,
    job_pod,
    replica_pod,
    replica_set_of,
    stateful_claims,
    stateful_pod,
)
from stromboli.simulator.cluster_notation import nodes


def workload(kind: str, version: str = "apps/v1", status: Any = None, **spec: Any) -> Workload:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main"}]},
    }
    manifest = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "team", "uid": "u1", "annotations": {"a": "b"}},
        "spec": {"template": template, **spec},
        "status": status or {},
    }
    return decode_as(Workload, msgspec.json.encode(manifest))


def cluster_nodes(text: str) -> list[Node]:
    decoded = [decode(manifest) for manifest in nodes(text)]
    return [node for node in decoded if isinstance(node, Node)]


def test_replicas_differ_by_name_alone_and_are_the_same_each_time() -> None:
    owner = workload("ReplicaSet", replicas=2)
    first, second = replica_pod(owner, 0), replica_pod(owner, 1)
    assert first == replica_pod(owner, 0)
    assert first["metadata"].pop("name") != second["metadata"].pop("name")
    assert first == second
    assert first["metadata"]["namespace"] == "team"
    assert first["metadata"]["labels"] == {"app": "web"}
    reference = first["metadata"]["ownerReferences"][0]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("ReplicaSet", "u1", True)


def test_a_deployment_has_a_replica_set_per_template() -> None:
    selector = {"matchLabels": {"app": "web"}}
    before = replica_set_of(workload("Deployment", replicas=5, selector=selector))
    assert before["spec"]["replicas"] == 5
    revision = before["metadata"]["labels"]["pod-template-hash"]
    assert before["metadata"]["name"] == f"web-{revision}"
    assert before["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": revision}
    assert before["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] == revision
    assert before["metadata"]["annotations"] == {"a": "b"}
    other = replica_set_of(workload("Deployment", template={"spec": {"containers": []}}))
    assert other["metadata"]["name"] != before["metadata"]["name"]


def test_a_stateful_pod_has_its_number_its_host_name_and_its_claims() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    owner = workload(
        "StatefulSet", serviceName="db", ordinals={"start": 5}, volumeClaimTemplates=[claim], replicas=3
    )
    pod = stateful_pod(owner, 1)
    assert pod["metadata"]["name"] == pod["spec"]["hostname"] == "web-6"
    assert pod["spec"]["subdomain"] == "db"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "6"
    assert pod["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-6"}}]
    [made] = stateful_claims(owner, 1)
    assert (made["metadata"]["name"], made["spec"]) == ("data-web-6", {"storageClassName": "fast"})


def test_a_daemon_pod_is_meant_for_one_node_and_bears_what_befalls_nodes() -> None:
    owner = workload("DaemonSet")
    pod = daemon_pod(owner, "n1")
    [term] = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"][0]["values"] == ["n1"]
    names = "n1 cpu=1; n2 cpu=1 +gpu=yes:NoSchedule; n3 cpu=1 +node.kubernetes.io/unschedulable=:NoSchedule"
    assert daemon_nodes(owner, cluster_nodes(names)) == ["n1", "n3"]


def test_a_daemon_set_keeps_to_the_nodes_that_its_template_selects() -> None:
    spec = {"containers": [], "nodeSelector": {"zone": "a"}}
    owner = workload("DaemonSet", template={"spec": spec})
    assert daemon_nodes(owner, cluster_nodes("n1 cpu=1 zone=a; n2 cpu=1 zone=b")) == ["n1"]
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    owner = workload(
        "DaemonSet", template={"spec": {"containers": [], "affinity": {"nodeAffinity": required}}}
    )
    assert daemon_nodes(owner, cluster_nodes("n1 cpu=1 zone=a; n2 cpu=1 zone=b")) == ["n2"]


def test_pods_of_an_indexed_job_carry_their_index() -> None:
    plain = job_pod(workload("Job", "batch/v1"), 0)
    assert plain["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "web"
    indexed = job_pod(workload("Job", "batch/v1", completionMode="Indexed"), 2)
    assert indexed["metadata"]["name"].startswith("web-2-")
    assert indexed["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "2"
    assert indexed["spec"]["hostname"] == "web-2"


def test_a_cron_job_starts_a_job_of_its_template() -> None:
    template = {"metadata": {"labels": {"x": "y"}}, "spec": {"parallelism": 2}}
    run = cron_job_run(workload("CronJob", "batch/v1", jobTemplate=template), "web-1")
    assert (run["metadata"]["name"], run["metadata"]["labels"]) == ("web-1", {"x": "y"})
    assert run["spec"] == {"parallelism": 2}
    assert run["metadata"]["ownerReferences"][0]["kind"] == "CronJob"


@pytest.mark.parametrize(
    ("owner", "desired", "counted"),
    [
        (workload("Deployment"), 1, 0),
        (workload("ReplicaSet", replicas=0), 0, 0),
        (workload("StatefulSet", replicas=3, status={"replicas": 2}), 3, 2),
        (workload("Job", "batch/v1"), 1, 0),
        (workload("Job", "batch/v1", parallelism=4, completions=6), 4, 0),
        (
            workload("Job", "batch/v1", parallelism=4, completions=6, status={"succeeded": 5, "active": 1}),
            1,
            1,
        ),
        (workload("Job", "batch/v1", parallelism=4, suspend=True), 0, 0),
        (workload("Job", "batch/v1", parallelism=4, status={"succeeded": 1}), 0, 0),
        (workload("DaemonSet", status={"currentNumberScheduled": 7}), 0, 7),
    ],
)
def test_how_many_pods_a_workload_wants_and_has(owner: Workload, desired: int, counted: int) -> None:
    assert (desired_pods(owner), counted_pods(owner)) == (desired, counted)


def test_a_template_without_containers_is_refused() -> None:
    with pytest.raises(BadObject, match=r"spec.template.spec.containers: must be a list"):
        replica_pod(workload("ReplicaSet", template={"spec": {}}), 0)
    with pytest.raises(BadObject, match="must be a mapping, got str"):
        replica_pod(workload("ReplicaSet", template={"spec": "x"}), 0)
