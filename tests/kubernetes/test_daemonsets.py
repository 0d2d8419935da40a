"""DaemonSets by kube-controller-manager and by our controller; the tests are the scheduler and the kubelet."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.kubernetes.workload_cluster import MERGE, WorkloadCluster, controller_name, names, template

LABELS = {"app": "agent"}
REVISION = "controller-revision-hash"
NODE_PROBLEMS = [
    {"key": f"node.kubernetes.io/{problem}", "operator": "Exists"} for problem in ("not-ready", "unreachable")
]
"""Nobody reports for the nodes of these tests, so that kube-controller-manager taints them after a while."""


class NodePool:
    """Nodes of a test's own, which carry its label."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self.cluster = cluster
        self.label = {"pool": cluster.namespace}
        self.names: list[str] = []

    def add(self, name: str, taints: Any = (), **labels: str) -> str:
        full = f"{self.cluster.namespace}-{name}"
        metadata = {"name": full, "labels": {**self.label, **labels}}
        body = {"metadata": metadata, "spec": {"taints": list(taints)}}
        self.cluster.plane.request("POST", "/api/v1/nodes", body)
        self.names.append(full)
        return full

    def patch(self, name: str, change: Any) -> None:
        self.cluster.plane.request("PATCH", f"/api/v1/nodes/{name}", change, MERGE)

    def remove(self, name: str) -> None:
        self.cluster.plane.request("DELETE", f"/api/v1/nodes/{name}")
        self.names.remove(name)


@pytest.fixture
def pool(workloads: WorkloadCluster) -> Iterator[NodePool]:
    pool = NodePool(workloads)
    yield pool
    for name in list(pool.names):
        pool.remove(name)


def daemon_set(pool: NodePool, tolerations: Any = (), pod: Any = None, **spec: Any) -> Any:
    pods = template(
        LABELS, nodeSelector=pool.label, tolerations=[*NODE_PROBLEMS, *tolerations], **(pod or {})
    )
    base = {"selector": {"matchLabels": LABELS}, "template": pods}
    return pool.cluster.create("daemonsets", "agent", {**base, **spec})


def change_template(pool: NodePool, image: str) -> None:
    container = {"name": "main", "image": image}
    change = {"spec": {"template": {"spec": {"containers": [container]}}}}
    pool.cluster.patch("daemonsets", "agent", change)


def target(pod: Any) -> str:
    """The node of a pod, or that of its affinity."""
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    assert (field["key"], field["operator"]) == ("metadata.name", "In")
    return str(pod["spec"].get("nodeName") or field["values"][0])


def by_node(pool: NodePool) -> dict[str, Any]:
    return {target(pod): pod for pod in pool.cluster.pods("agent")}


def wait_nodes(pool: NodePool, *nodes: str) -> dict[str, Any]:
    """The pods by node, once exactly these nodes have one each."""
    pool.cluster.eventually(
        lambda: sorted(map(target, pool.cluster.pods("agent"))) == sorted(nodes), f"pods on {nodes}"
    )
    return by_node(pool)


def start(pool: NodePool, *nodes: str) -> dict[str, Any]:
    """Pods for these nodes, once the new ones are bound there and ready."""
    pods = wait_nodes(pool, *nodes)
    for node, pod in pods.items():
        if not pod["spec"].get("nodeName"):
            bind(pool, pod, node)
            pool.cluster.set_ready([pod])
    return pods


def bind(pool: NodePool, pod: Any, node: str) -> None:
    name = pod["metadata"]["name"]
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    pool.cluster.plane.request("POST", pool.cluster.path("pods", name, "binding"), body)


def image(pod: Any) -> str:
    return str(pod["spec"]["containers"][0]["image"])


@pytest.mark.smoke
def test_every_eligible_node_gets_a_pod_that_is_meant_for_it(
    workloads: WorkloadCluster, pool: NodePool
) -> None:
    one, two = pool.add("one"), pool.add("two")
    owner = daemon_set(pool)
    pods = wait_nodes(pool, one, two)
    (revision,) = workloads.list("controllerrevisions")
    revision_hash = revision["metadata"]["labels"][REVISION]
    assert revision["metadata"]["name"] == f"agent-{revision_hash}"
    assert revision["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    meta = pods[one]["metadata"]
    assert meta["generateName"] == "agent-"
    assert meta["labels"].items() >= {**LABELS, REVISION: revision_hash}.items()
    tolerated = {
        (toleration["key"].removeprefix("node.kubernetes.io/"), toleration.get("effect"))
        for toleration in pods[one]["spec"]["tolerations"]
    }
    assert tolerated >= {
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    }
    workloads.wait_status(
        "daemonsets",
        "agent",
        desiredNumberScheduled=2,
        currentNumberScheduled=2,
        numberMisscheduled=0,
        numberReady=0,
        numberAvailable=None,
        numberUnavailable=2,
        updatedNumberScheduled=2,
        observedGeneration=1,
    )
    start(pool, one, two)
    workloads.wait_status("daemonsets", "agent", numberReady=2, numberAvailable=2, numberUnavailable=None)
    created = {
        ("daemonset-controller", "SuccessfulCreate", f"Created pod: {name}") for name in names(pods.values())
    }
    workloads.eventually(lambda: workloads.event_texts("agent") == created, "an event for each pod")
    three = pool.add("three")
    wait_nodes(pool, one, two, three)


def test_labels_and_taints_of_nodes_decide_where_pods_are(workloads: WorkloadCluster, pool: NodePool) -> None:
    one, two = pool.add("one", gpu="yes"), pool.add("two")
    spare = {"key": "spare", "effect": "NoSchedule"}
    three = pool.add("three", [spare], gpu="yes")
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["yes"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    daemon_set(pool, pod={"affinity": {"nodeAffinity": required}})
    start(pool, one)
    pool.patch(two, {"metadata": {"labels": {"gpu": "yes"}}})
    start(pool, one, two)
    pool.patch(one, {"spec": {"taints": [spare]}})
    workloads.patch("daemonsets", "agent", {"metadata": {"labels": {"looked": "at"}}})
    workloads.wait_status("daemonsets", "agent", desiredNumberScheduled=1, numberMisscheduled=1)
    wait_nodes(pool, one, two)
    pool.patch(one, {"spec": {"taints": [{"key": "spare", "effect": "NoExecute"}]}})
    wait_nodes(pool, two)
    pool.patch(two, {"metadata": {"labels": {"gpu": None}}})
    wait_nodes(pool)
    pool.patch(three, {"spec": {"taints": []}})
    wait_nodes(pool, three)
    workloads.wait_status("daemonsets", "agent", desiredNumberScheduled=1, numberMisscheduled=0)


def test_a_pod_that_failed_is_replaced_and_one_whose_node_is_gone_deleted(
    workloads: WorkloadCluster, pool: NodePool
) -> None:
    one, two = pool.add("one"), pool.add("two")
    daemon_set(pool)
    pods = wait_nodes(pool, one, two)
    bind(pool, pods[one], one)
    failed = names([pods[one]])[0]
    workloads.end(pods[one], "Failed")
    workloads.eventually(
        lambda: one in by_node(pool) and names([by_node(pool)[one]]) != [failed], "another pod on the node"
    )
    text = f"Found failed daemon pod {workloads.namespace}/{failed} on node {one}, will try to kill it"
    event = ("daemonset-controller", "FailedDaemonPod", text)
    workloads.eventually(lambda: event in workloads.event_texts("agent"), "an event on the failed pod")
    pool.remove(two)
    pool.add("three")
    wait_nodes(pool, one, f"{workloads.namespace}-three")


def test_an_update_replaces_as_many_pods_at_a_time_as_may_be_missing(
    workloads: WorkloadCluster, pool: NodePool
) -> None:
    nodes = [pool.add(name) for name in ("one", "two", "three")]
    daemon_set(pool)
    before = start(pool, *nodes)
    workloads.wait_status("daemonsets", "agent", numberAvailable=3)
    change_template(pool, "busybox:2")
    for done in (1, 2, 3):
        workloads.wait_status("daemonsets", "agent", updatedNumberScheduled=done, numberAvailable=2)
        assert sum(image(pod) == "busybox:2" for pod in workloads.pods("agent")) == done
        start(pool, *nodes)
    workloads.wait_status("daemonsets", "agent", updatedNumberScheduled=3, numberAvailable=3)
    assert not set(names(before.values())) & set(names(workloads.pods("agent")))
    assert "successfully rolled out" in workloads.kubectl("rollout", "status", "ds/agent")
    history = workloads.kubectl("rollout", "history", "ds/agent")
    assert [line.split()[0] for line in history.split("\n")[2:] if line] == ["1", "2"]
    workloads.kubectl("rollout", "undo", "ds/agent")
    workloads.eventually(
        lambda: "busybox" in map(image, workloads.pods("agent")), "a pod of the first revision"
    )
    assert sorted(each["revision"] for each in workloads.list("controllerrevisions")) == [2, 3]


def test_with_a_surge_new_pods_come_before_the_old_ones_go(
    workloads: WorkloadCluster, pool: NodePool
) -> None:
    nodes = [pool.add(name) for name in ("one", "two")]
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    daemon_set(pool, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    start(pool, *nodes)
    workloads.wait_status("daemonsets", "agent", numberAvailable=2)
    change_template(pool, "busybox:2")
    for _ in nodes:
        (new,) = workloads.wait_pods(3, "agent") and [
            pod
            for pod in workloads.pods("agent")
            if image(pod) == "busybox:2" and not pod["spec"].get("nodeName")
        ]
        bind(pool, new, target(new))
        workloads.set_ready([new])
        workloads.eventually(
            lambda new=new: sum(target(pod) == target(new) for pod in workloads.pods("agent")) == 1,
            "the old pod of the node to go",
        )
    workloads.wait_status("daemonsets", "agent", updatedNumberScheduled=2, numberAvailable=2)
    assert [image(pod) for pod in workloads.pods("agent")] == ["busybox:2"] * 2


def test_with_on_delete_a_pod_gets_its_revision_when_somebody_deletes_it(
    workloads: WorkloadCluster, pool: NodePool
) -> None:
    node = pool.add("one")
    daemon_set(pool, updateStrategy={"type": "OnDelete"})
    start(pool, node)
    workloads.wait_status("daemonsets", "agent", numberAvailable=1)
    change_template(pool, "busybox:2")
    workloads.wait_status(
        "daemonsets", "agent", observedGeneration=2, updatedNumberScheduled=None, numberAvailable=1
    )
    (old,) = workloads.pods("agent")
    assert image(old) == "busybox"
    workloads.delete("pods", old["metadata"]["name"])
    workloads.eventually(
        lambda: list(map(image, workloads.pods("agent"))) == ["busybox:2"], "the new revision"
    )


def test_min_ready_seconds_and_restart(workloads: WorkloadCluster, pool: NodePool) -> None:
    node = pool.add("one")
    daemon_set(pool, minReadySeconds=3600, revisionHistoryLimit=0)
    first = start(pool, node)
    workloads.wait_status("daemonsets", "agent", numberReady=1, numberAvailable=None, numberUnavailable=1)
    workloads.set_ready(first.values(), since=datetime.now(UTC) - timedelta(hours=2))
    workloads.wait_status("daemonsets", "agent", numberReady=1, numberAvailable=1)
    workloads.kubectl("rollout", "restart", "ds/agent")
    workloads.eventually(
        lambda: workloads.pods("agent") and names(workloads.pods("agent")) != names(first.values()),
        "a new pod",
    )
    workloads.eventually(
        lambda: [each["revision"] for each in workloads.list("controllerrevisions")] == [2],
        "the first revision to go",
    )


def test_a_daemon_set_adopts_what_another_left_and_deletes_what_it_has(
    workloads: WorkloadCluster, pool: NodePool
) -> None:
    node = pool.add("one")
    daemon_set(pool)
    left = names(start(pool, node).values())
    workloads.wait_status("daemonsets", "agent", numberReady=1)
    workloads.delete("daemonsets", "agent", "Orphan")
    workloads.eventually(lambda: workloads.get("daemonsets", "agent") is None, "the DaemonSet to be gone")
    assert not controller_name(workloads.get("pods", left[0]))
    daemon_set(pool)
    workloads.wait("pods", left[0], controller_name, "the pod to be adopted")
    workloads.wait_status("daemonsets", "agent", numberReady=1, updatedNumberScheduled=1)
    assert names(workloads.pods("agent")) == left
    assert len(workloads.list("controllerrevisions")) == 1
    workloads.delete("daemonsets", "agent")
    workloads.eventually(
        lambda: not workloads.list("pods") and not workloads.list("controllerrevisions"), "all to be deleted"
    )


@pytest.mark.parametrize(
    ("rolling", "problem"),
    [
        ({"maxSurge": 1, "maxUnavailable": 1}, "may not be set when maxUnavailable is non-zero"),
        ({"maxSurge": 1}, "may not be set when maxUnavailable is non-zero"),
        ({"maxSurge": 0, "maxUnavailable": "0%"}, "cannot be 0 when maxSurge is 0"),
    ],
)
def test_an_update_that_could_not_begin_is_refused(pool: NodePool, rolling: Any, problem: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        daemon_set(pool, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    assert problem in json.loads(error.value.read())["message"]
