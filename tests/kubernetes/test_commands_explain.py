"""`stromboli explain` on an API server: a Job without pods, its queue and its node, and a user without the rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.kubernetes.commanding import CommandCluster
from tests.kubernetes.servers import control_plane
from tests.kubernetes.test_commands_queues import NODE_STATUS


@pytest.fixture(scope="module")
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandCluster]:
    """Controllers, no scheduler, a node of 16 cores, and a job of three pods of 8 cores that is not let in."""
    folder = tmp_path_factory.mktemp("explain_commands")
    with control_plane(folder) as plane:
        made = CommandCluster(folder, plane)
        try:
            made.install()
            made.start("--controllers=*,-sharding-controller")
            plane.request("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
            made.patch("nodes", "n1", {"status": NODE_STATUS}, "", "status")
            made.place_of("explained")
            made.make("jobs", {"metadata": {"name": "train"}, "spec": job_spec()}, "explained")
            made.wait(lambda: made.names("podgroups", "explained"), "the PodGroup of train")
            yield made
        finally:
            made.close()


def job_spec() -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "8"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    task = {"name": "worker", "replicas": 3, "template": template}
    return {"minAvailable": 3, "queue": "default", "schedulerName": "volcano", "tasks": [task]}


def test_a_job_that_has_no_pods_yet_is_told_what_would_let_it_start(cluster: CommandCluster) -> None:
    document = json.loads(cluster.output("explain", "train", "-n", "explained", "-o", "json"))
    (job,) = document["subjects"]
    assert (job["kind"], job["state"], job["pods"]["waiting"]) == ("Job", "waits", 3)
    texts = {remedy["kind"]: remedy["text"] for remedy in job["remedies"]}
    assert texts["minimum"] == "minMember is 2 instead of 3"
    assert any("do not exist yet" in note for note in job["notes"])


def test_a_suspended_job_is_explained_although_the_scheduler_does_not_see_it(cluster: CommandCluster) -> None:
    cluster.place_of("suspended")
    cluster.make("jobs", {"metadata": {"name": "held"}, "spec": job_spec()}, "suspended")
    cluster.wait(lambda: cluster.names("podgroups", "suspended"), "the PodGroup of held")
    cluster.output("job", "suspend", "held", "-n", "suspended", "--wait")
    cluster.wait(lambda: not cluster.names("podgroups", "suspended"), "no PodGroup of held")
    text = cluster.output("explain", "job/held", "-n", "suspended")
    assert "Job suspended/held is suspended (Aborted): run `stromboli job resume -n suspended held`" in text


def test_a_job_whose_pods_the_cluster_refuses_is_told_why_it_has_none(cluster: CommandCluster) -> None:
    cluster.place_of("refused")
    spec = {**job_spec(), "priorityClassName": "nobody"}
    cluster.make("jobs", {"metadata": {"name": "podless"}, "spec": spec}, "refused")
    cluster.wait(lambda: cluster.names("podgroups", "refused"), "the PodGroup of podless")
    (group,) = cluster.names("podgroups", "refused")
    cluster.patch("podgroups", group, {"status": {"phase": "Inqueue"}}, "refused")
    cluster.wait(
        lambda: "FailedCreate" in [reason for reason, _ in cluster.events("refused", "podless")], "the event"
    )
    text = cluster.output("explain", "podless", "-n", "refused")
    assert "Job refused/podless has no pods: Error creating pods" in text
    assert "no PriorityClass with name nobody was found" in text
    cluster.delete("jobs", "podless", "refused")
    cluster.wait(lambda: has_no_group(cluster, "refused"), "no PodGroup of podless")


def has_no_group(cluster: CommandCluster, namespace: str) -> bool:
    """Whether it has no PodGroup any more; what is left is deleted, as a real API server alone collects no garbage."""
    for left in cluster.names("podgroups", namespace):
        with suppress(RuntimeError, OSError):  # it may go by itself meanwhile
            cluster.delete("podgroups", left, namespace)
    return not cluster.names("podgroups", namespace)


@pytest.mark.smoke
def test_a_queue_and_a_node_are_explained_beside_it(cluster: CommandCluster) -> None:
    text = cluster.output("explain", "queue/default", "node/n1", "-n", "explained")
    assert "Queue default is open: 0 jobs hold resources, 1 waits" in text
    assert "Node n1 is Ready: it runs no pods" in text


def test_a_user_who_may_not_list_nodes_is_told_which_right_is_missing(cluster: CommandCluster) -> None:
    rules = {"apiGroups": ["scheduling.volcano.sh"], "resources": ["*"], "verbs": ["get", "list"]}
    somebody = cluster.account("explained", "reader", rules, everywhere=True)
    result = cluster.run("explain", "train", "-n", "explained", kubeconfig=somebody)
    assert result.exit_code == 1
    assert 'has the verb "list" on "' in result.stderr


def test_a_user_of_one_namespace_is_told_what_the_objects_of_a_job_say(cluster: CommandCluster) -> None:
    groups = ["batch.volcano.sh", "scheduling.volcano.sh", ""]
    rules = {"apiGroups": groups, "resources": ["jobs", "podgroups", "events"], "verbs": ["get", "list"]}
    member = cluster.account("explained", "member", rules)
    result = cluster.run("explain", "train", "-n", "explained", "-o", "json", kubeconfig=member)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    (job,) = document["subjects"]
    assert (job["name"], job["state"], job["queue"], job["pods"]["minimum"]) == (
        "train",
        "waits",
        "default",
        3,
    )
    assert job["remedies"] == []
    assert any(
        "read access to the whole cluster" in text and "may not list" in text for text in document["warnings"]
    )
    nothing = cluster.run("explain", "queue/default", "-n", "explained", kubeconfig=member)
    assert (nothing.exit_code, "may not list" in nothing.stderr) == (1, True)
