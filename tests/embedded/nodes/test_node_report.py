"""Nodes as a kubelet reports them: what a node lacks, and nothing that it has."""

import platform
from pathlib import Path

import msgspec
import pytest

from stromboli.embedded.nodes.node_identity import node_info
from stromboli.embedded.nodes.node_report import lost_conditions, metadata_report, status_report
from stromboli.embedded.nodes.node_types import NodeView

NOW = 1_700_000_000.0
THEN, STAMP = "2020-01-01T00:00:00Z", "2023-11-14T22:13:20Z"
HOST, CIDR = "172.16.0.1", "10.64.1.0/24"


def node(labels=None, spec=None, **status):
    meta = {"name": "n1", "labels": labels or {}}
    return msgspec.convert({"metadata": meta, "spec": spec or {}, "status": status}, NodeView)


def report(given, kind="simulated"):
    return status_report(given, kind, HOST, NOW)


def types(conditions):
    return [condition["type"] for condition in conditions]


def test_a_node_with_nothing_gets_everything():
    status = report(node())
    assert status["capacity"] == status["allocatable"]
    assert status["capacity"].keys() == {"cpu", "memory", "pods", "ephemeral-storage"}
    assert types(status["conditions"]) == ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
    ready = status["conditions"][-1]
    assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
    assert ready["message"] == "kubelet is posting ready status"
    assert ready["lastHeartbeatTime"] == ready["lastTransitionTime"] == STAMP
    assert {"type": "InternalIP", "address": HOST} in status["addresses"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert all(status["nodeInfo"].values())


def test_a_node_that_has_everything_gets_nothing():
    assert report(node(**report(node()))) == {}
    patch = metadata_report(node(), CIDR)
    assert patch["spec"] == {"podCIDR": CIDR, "podCIDRs": [CIDR]}
    assert metadata_report(node(patch["metadata"]["labels"], patch["spec"]), "10.64.9.0/24") == {}


def test_labels_that_somebody_gave_stay():
    labels = metadata_report(node({"kubernetes.io/hostname": "rack-7", "kubernetes.io/os": "plan9"}), CIDR)
    assert labels["metadata"]["labels"].keys() == {
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }


def test_sizes_are_completed_and_what_was_given_stays():
    status = report(node(capacity={"cpu": "4", "pods": "30"}, allocatable={"cpu": "3"}))
    assert status["capacity"] == {"ephemeral-storage": "100Gi"}
    assert status["allocatable"] == {"pods": "30", "ephemeral-storage": "100Gi"}
    assert report(node(capacity={"cpu": "4"}))["allocatable"]["cpu"] == "4"


def test_a_node_of_an_earlier_release_is_brought_up_to_date():
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated node"}
    status = report(node(conditions=[{**ready, "lastTransitionTime": THEN}], nodeInfo={"machineID": ""}))
    assert "lastTransitionTime" not in status["conditions"][-1], "it was ready all the time"
    assert status["conditions"][-1]["message"] == "kubelet is posting ready status"
    assert status["nodeInfo"]["machineID"]


def test_a_pressure_that_somebody_set_stays():
    pressure = {"type": "MemoryPressure", "status": "True", "lastTransitionTime": THEN}
    assert types(report(node(conditions=[pressure]))["conditions"]) == [
        "DiskPressure",
        "PIDPressure",
        "Ready",
    ]


def test_a_node_that_falls_silent_is_unknown_and_comes_back():
    before = report(node())["conditions"][1:]
    silent = lost_conditions(node(conditions=before), NOW + 60)
    assert [(each["status"], each["reason"]) for each in silent] == [
        ("Unknown", "NodeStatusNeverUpdated"),
        *[("Unknown", "NodeStatusUnknown")] * 3,
    ]
    assert all("lastHeartbeatTime" not in each for each in silent), "the last heartbeat stays"
    assert lost_conditions(node(conditions=silent), NOW + 90) == []
    assert len(report(node(conditions=silent))["conditions"]) == 4


def test_simulated_nodes_are_different_machines_and_stay_what_they_are():
    first, again, other = (node_info(name, "simulated") for name in ("n1", "n1", "n2"))
    assert first == again
    assert all(first[key] != other[key] for key in ("machineID", "systemUUID", "bootID"))


@pytest.mark.skipif(not Path("/proc/sys/kernel/random/boot_id").exists(), reason="not on Linux")
def test_a_real_node_is_this_machine():
    info = node_info("any", "real")
    assert info["bootID"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert info["kernelVersion"] == platform.release()
    assert info["machineID"]
    assert info["systemUUID"]
    assert info["osImage"] not in ("", "Simulated")
