"""What kubectl shows of pods and nodes of `stromboli up`, and who may ask for it."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from tests.embedded.up_process import POD, Up

pytestmark = pytest.mark.programs("kubectl")


def test_apply_get_describe_and_delete(cluster: Up, space: str) -> None:
    assert "pod/a created" in cluster.kubectl("apply", "-f", "-", stdin=POD % ("a", "sleep, '1000'"))
    assert "pod/a unchanged" in cluster.kubectl("apply", "-f", "-", stdin=POD % ("a", "sleep, '1000'"))
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/a")
    lines = cluster.kubectl("get", "pods", "-o", "wide").splitlines()
    assert lines[0].split()[:8] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED"]
    assert lines[1].split()[:4] == ["a", "1/1", "Running", "0"]
    assert cluster.json("get", "pod", "a")["status"]["phase"] == "Running"
    assert "phase: Running" in cluster.kubectl("get", "pod", "a", "-o", "yaml")
    assert cluster.kubectl("get", "pods", "-l", "app=web,tier in (front)", "-o", "name") == "pod/a\n"
    assert "No resources" in cluster.kubectl("get", "pods", "-l", "app!=web")
    assert (
        cluster.kubectl("get", "pods", "--field-selector", "status.phase=Running", "-o", "name") == "pod/a\n"
    )
    assert cluster.kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}") == "a"
    assert cluster.kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name", "--no-headers") == "a\n"
    described = cluster.kubectl("describe", "pod", "a")
    assert "Successfully assigned" in described
    assert "Command:" in described
    assert "deleted" in cluster.kubectl("delete", "pod", "a")
    assert "NotFound" in cluster.kubectl("get", "pod", "a", ok=False)


def test_watch_tells_every_change(cluster: Up, space: str) -> None:
    watching = subprocess.Popen(
        ["kubectl", "get", "pods", "-w", "--no-headers"],
        env=cluster.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    with watching:
        cluster.kubectl("create", "-f", "-", stdin=POD % ("first", "sleep, '1000'"))
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("first")
        cluster.kubectl("create", "-f", "-", stdin=POD % ("w", "sleep, '1'"))
        states = []
        for line in watching.stdout:
            name, _, state, *_ = line.split()
            states += [state] if name == "w" else []
            if state == "Completed":
                break
        watching.terminate()
    assert states[0] == "Pending"
    assert "Running" in states


def test_a_pod_that_names_no_scheduler_runs_too(cluster: Up, space: str) -> None:
    cluster.kubectl("run", "hi", "--image=none", "--restart=Never", "--command", "--", "sleep", "1")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", "pod/hi")
    assert "PodGroup" in cluster.kubectl("get", "podgroups", "-o", "yaml")


def test_a_pod_that_names_its_node_only_occupies_capacity(cluster: Up, space: str) -> None:
    manifest = POD % ("static", "sleep, '1000'")
    (node,) = cluster.kubectl("get", "nodes", "-o", "name").split()[:1]
    spec = {"nodeName": node.removeprefix("node/"), "schedulerName": "default-scheduler"}
    bound = yaml.safe_load(manifest)
    bound["spec"].update(spec)
    cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump(bound))
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/static")
    assert "scheduling.k8s.io/group-name" not in cluster.json("get", "pod", "static")["metadata"].get(
        "annotations", {}
    )
    assert cluster.json("get", "podgroups.scheduling.volcano.sh")["items"] == []


def test_rights_are_asked_for_and_enforced(cluster: Up, space: str) -> None:
    assert cluster.kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "*.*" in cluster.kubectl("auth", "can-i", "--list")
    cluster.kubectl("create", "serviceaccount", "bot")
    account_user = f"system:serviceaccount:{space}:bot"
    assert cluster.kubectl("auth", "can-i", "list", "pods", "--as", account_user, ok=False) == "no\n"
    assert "forbidden" in cluster.kubectl("get", "pods", "--as", account_user, ok=False)
    cluster.kubectl("create", "rolebinding", "view", "--clusterrole=view", f"--serviceaccount={space}:bot")
    assert cluster.kubectl("auth", "can-i", "list", "pods", "--as", account_user) == "yes\n"
    assert "No resources" in cluster.kubectl("get", "pods", "--as", account_user)
    assert "forbidden" in cluster.kubectl("get", "pods", "-n", "kube-system", "--as", account_user, ok=False)
    assert "forbidden" in cluster.kubectl("get", "secrets", "--as", account_user, ok=False)
    token = cluster.kubectl("create", "token", "bot").strip()
    assert account_user in cluster.kubectl("auth", "whoami", "--token", token)


def test_a_node_is_described_as_a_kubelet_reports_it(cluster: Up, space: str) -> None:
    pod = (POD % ("d", "sleep, '1000'")).replace("schedulerName: volcano", "nodeName: real-1")
    cluster.kubectl("apply", "-f", "-", stdin=pod)
    described = cluster.kubectl("describe", "node", "real-1")
    sections = [line.partition(":")[0] for line in described.splitlines() if line[:1].isalpha()]
    for section in ("Lease", "Conditions", "Addresses", "Capacity", "Allocatable", "System Info"):
        assert section in sections
    for text in (
        "HolderIdentity:  real-1",
        "kubelet has no disk pressure",
        "Machine ID:  ",
        "ephemeral-storage",
    ):
        assert text in described
    allocated = described.partition("Allocated resources:")[2]
    assert [line.split() for line in allocated.splitlines() if " cpu " in line] == [
        ["cpu", "100m", "(2%)", "0", "(0%)"]
    ]


def test_top_shows_what_nodes_pods_and_containers_use(cluster: Up, space: str) -> None:
    pod = (POD % ("t", "sh, -c, 'while :; do :; done'")).replace("schedulerName: volcano", "nodeName: real-1")
    cluster.kubectl("apply", "-f", "-", stdin=pod)
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/t")
    nodes = {line.split()[0]: line.split() for line in cluster.kubectl("top", "nodes").splitlines()}
    assert {"NAME", "n1", "n2", "real-1", "real-2"} <= nodes.keys()
    assert all(column.strip("m%Mi").isdecimal() for column in nodes["n1"][1:])
    header, row = (
        line.split() for line in cluster.kubectl("top", "pods", "--containers", "-l", "app=web").splitlines()
    )
    assert header == ["POD", "NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert row[:2] == ["t", "main"]
    assert int(row[2].removesuffix("m")) > 0
    assert "cpu" in cluster.kubectl("get", "pods.metrics.k8s.io").splitlines()[0].lower()


def test_a_node_fails_and_comes_back(cluster: Up, space: str) -> None:
    pod = (POD % ("v", "sleep, '1000'")).replace("schedulerName: volcano", "nodeName: n2")
    cluster.kubectl("apply", "-f", "-", stdin=pod)
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/v")
    assert "n2: failed" in cluster.stromboli("node", "fail", "n2")
    cluster.kubectl("wait", "--for=delete", "--timeout=30s", "pod/v")
    assert cluster.kubectl("get", "node", "n2", "--no-headers").split()[1] == "NotReady"
    assert "n2: back" in cluster.stromboli("node", "recover", "n2")
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "node/n2")
    assert "not found" in cluster.stromboli("node", "fail", "nowhere", ok=False)
    cluster.kubectl("create", "-f", "-", stdin="apiVersion: v1\nkind: Node\nmetadata: {name: foreign}")
    assert "not one that we run" in cluster.stromboli("node", "fail", "foreign", ok=False)
    cluster.kubectl("delete", "node", "foreign")
