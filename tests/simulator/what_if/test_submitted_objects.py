"""What is submitted is taken as an API server would take it, or refused with a reason and a remedy."""

from typing import Any

import pytest

from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.what_if.submitted_objects import Refused, read_submitted
from tests.simulator.what_if.questions import HOUR, LIMIT, ask, only, question, running, waiting

Manifest = dict[str, Any]
ONE_NODE = nodes("n1 cpu=4")


def pod_template(limit: str = "1h", cpu: str = "4", **spec: Any) -> Manifest:
    return {
        "metadata": {"labels": {"app": "a"}, "annotations": {LIMIT: limit}},
        "spec": {
            "schedulerName": "volcano",
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
    }


def volcano_job(**spec: Any) -> Manifest:
    task = {"name": "worker", "replicas": 2, "template": pod_template(cpu="2")}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": {LIMIT: "1h"}},
        "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": [task], **spec},
    }


def refusal(cluster: list[Manifest], *submitted: Manifest) -> str:
    with pytest.raises(Refused) as caught:
        question(cluster, list(submitted)).answer()
    return str(caught.value)


def test_a_job_of_volcano_is_expanded_as_its_controller_does() -> None:
    cluster = [*ONE_NODE, *running("a", "n1", 0, "1h", cpu=4)]
    job = only(ask(cluster, [volcano_job()]))
    assert (job.name, job.pods, job.started, job.ended) == ("default/train", 2, HOUR, 2 * HOUR)


def test_tasks_that_depend_on_others_start_once_those_run() -> None:
    first = {"name": "first", "replicas": 1, "template": pod_template(cpu="1")}
    then = {
        "name": "then",
        "replicas": 1,
        "template": pod_template(cpu="1"),
        "dependsOn": {"name": ["first"]},
    }
    answer = ask(ONE_NODE, [volcano_job(minAvailable=1, tasks=[first, then])])
    assert set(only(answer).placement) == {"default/train-first-0", "default/train-then-0"}


@pytest.mark.parametrize(
    ("version", "kind", "spec"),
    [
        ("batch/v1", "Job", {"template": pod_template()}),
        ("apps/v1", "Deployment", {"replicas": 1, "selector": {}, "template": pod_template()}),
        (
            "apps/v1",
            "StatefulSet",
            {"replicas": 1, "serviceName": "s", "selector": {}, "template": pod_template()},
        ),
    ],
)
def test_workloads_of_kubernetes_are_expanded_too(version: str, kind: str, spec: Manifest) -> None:
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "work"}, "spec": spec}
    cluster = [*ONE_NODE, *running("a", "n1", 0, "1h", cpu=4)]
    job = only(ask(cluster, [manifest]))
    assert (job.name, job.started) == ("default/work", HOUR)


def test_a_plain_pod_gets_a_group_and_what_its_manifest_says_of_its_state_is_ignored() -> None:
    template = pod_template()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "alone",
            "uid": "1",
            "creationTimestamp": "2020-01-01T00:00:00Z",
            **template["metadata"],
        },
        "spec": template["spec"],
        "status": {"phase": "Succeeded"},
    }
    cluster = [*ONE_NODE, *running("a", "n1", 0, "1h", cpu=4), *waiting("older", "1h", cpu=4)]
    job = only(ask(cluster, [pod]))
    assert (job.name, job.started) == ("default/alone", 2 * HOUR)


def test_a_job_is_refused_with_the_words_of_admission() -> None:
    message = refusal(ONE_NODE, volcano_job(queue="nowhere"))
    assert "job.yaml#0: Job default/train: admission webhook" in message
    assert "nowhere" in message
    assert "minAvailable" in refusal(ONE_NODE, volcano_job(minAvailable=9))


def test_a_group_for_a_queue_that_is_not_there_or_closed_is_refused() -> None:
    assert "nowhere" in refusal(ONE_NODE, *waiting("mine", cpu=1, queue="nowhere"))
    closed = refusal([*ONE_NODE, *queues("ex state=Closed")], *waiting("mine", cpu=1, queue="ex"))
    assert "PodGroup default/mine" in closed
    assert "ex" in closed


def test_what_the_cluster_has_already_cannot_be_submitted_again() -> None:
    cluster = [*ONE_NODE, *running("a", "n1", cpu=1)]
    assert "PodGroup default/a exists already in the cluster: give it another name" in refusal(
        cluster, *waiting("a", cpu=1)
    )
    owned = running("train-1", "n1", cpu=1)
    owned[0]["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "train",
            "uid": "7",
            "controller": True,
        }
    ]
    message = refusal([*ONE_NODE, *owned], volcano_job())
    assert (
        "Job default/train: metadata.name: it is in the cluster already (PodGroup default/train-1)" in message
    )


def test_what_is_for_another_scheduler_or_does_not_run_at_all_is_told() -> None:
    foreign = pod_template(schedulerName="default-scheduler")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": foreign["spec"]}
    assert "for scheduler default-scheduler" in refusal(ONE_NODE, pod)
    assert "nothing that is submitted would run" in refusal(ONE_NODE, *queues("q"))


def test_every_bad_object_is_named_at_once() -> None:
    nameless = {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    message = refusal(ONE_NODE, nameless, {"metadata": {}})
    assert "job.yaml#0: Pod: metadata.name: is missing" in message
    assert "job.yaml#1: kind: is missing" in message


def test_a_selector_that_is_no_mapping_is_refused() -> None:
    spec = {"replicas": 1, "selector": 1.5, "template": pod_template()}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "work"}, "spec": spec}
    assert "Deployment default/work: spec.selector: must be a mapping, got float" in refusal(
        ONE_NODE, manifest
    )


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(Refused, match=r"none\.yaml: cannot be read"):
        read_submitted(["none.yaml"])


def test_what_is_odd_in_the_cluster_is_left_out_and_told() -> None:
    broken = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {"containers": 3}}
    answer = ask([*ONE_NODE, broken], waiting("mine", "1h", cpu=4))
    assert only(answer).started == 0
    assert any("left out" in warning and "Pod" in warning for warning in answer.warnings)
