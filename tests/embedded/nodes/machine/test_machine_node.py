"""This machine as a node, and its GPUs on the real nodes that users ask for."""

import os
import platform

import pytest

from stromboli.api.resources.quantity import whole
from stromboli.embedded.nodes.machine import machine_node as machine
from stromboli.embedded.nodes.machine.machine_node import (
    GIBIBYTE,
    host_name,
    kept_back,
    machine_node,
    machine_nodes,
    offer_gpus,
    product,
)
from stromboli.embedded.nodes.node_groups import BadNodes, node_manifests
from tests.embedded.nodes.machine.fake_nvidia_smi import install, row


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Lists these rows from then on."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return lambda *rows, script="": monkeypatch.setenv("PATH", str(install(tmp_path, *rows, script=script)))


def labels(node):
    prefix = "nvidia.com/gpu."
    return {
        key.removeprefix(prefix): value for key, value in node["metadata"]["labels"].items() if prefix in key
    }


def test_the_machine_offers_what_it_has_and_keeps_some_memory_back(tmp_path, smi):
    smi(row(0), row(1))
    node = machine_node(tmp_path / "not" / "there" / "yet")
    capacity, allocatable = node["status"]["capacity"], node["status"]["allocatable"]
    assert node["metadata"]["name"] == host_name()
    assert node["metadata"]["labels"]["stromboli.sh/node"] == "real"
    assert whole(capacity["cpu"]) == len(os.sched_getaffinity(0))
    assert whole(allocatable["memory"]) < whole(capacity["memory"])
    assert whole(allocatable["ephemeral-storage"]) < whole(capacity["ephemeral-storage"])
    assert (capacity["nvidia.com/gpu"], allocatable["nvidia.com/gpu"], capacity["pods"]) == ("2", "2", "110")
    assert labels(node) == {"present": "true", "count": "2", "product": "NVIDIA-H200", "memory": "143771"}


def test_a_machine_without_gpus_or_whose_driver_fails_offers_none(tmp_path, smi, caplog):
    assert "nvidia.com/gpu" not in machine_node(tmp_path)["status"]["capacity"]
    assert labels(machine_node(tmp_path)) == {}
    smi(script="echo broken; exit 9")
    assert "nvidia.com/gpu" not in machine_node(tmp_path)["status"]["capacity"]
    assert "no GPUs are offered: nvidia-smi failed" in caplog.text


def test_gpus_of_several_models_have_no_label_of_their_model_and_the_least_memory(tmp_path, smi):
    smi(row(0), row(1, name="NVIDIA T400", memory="2048"))
    assert labels(machine_node(tmp_path)) == {"present": "true", "count": "2", "memory": "2048"}


def test_real_nodes_have_gpus_if_they_ask_and_no_more_than_there_are(smi):
    smi(row(0), row(1), row(2))
    nodes = node_manifests(["a=2cpu,2gpu,real", "b=2cpu,1gpu,real", "c=2cpu,real", "s=2cpu,8gpu"])
    offer_gpus(nodes)
    assert [labels(node).get("count") for node in nodes] == ["2", "1", None, None]
    with pytest.raises(BadNodes, match="4 GPUs for real nodes: this machine has 3"):
        offer_gpus(node_manifests(["2x2cpu,2gpu,real"]))
    smi(script="exit 1")
    with pytest.raises(BadNodes, match="nvidia-smi failed with exit code 1"):
        offer_gpus(node_manifests(["2cpu,1gpu,real"]))


def test_simulated_gpus_and_devices_need_no_card(smi):
    smi(script="exit 1")
    offer_gpus(node_manifests(["2cpu,8gpu", "r=2cpu,8gpu,dra,real", "q=2cpu,real"]))


def names_of(nodes):
    return [node["metadata"]["name"] for node in nodes]


def test_nodes_of_a_former_run_are_kept(tmp_path, smi, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "new-name")
    new = machine_node(tmp_path)
    former = node_manifests(["2x4cpu,8Gi,real"])
    assert machine_nodes([new], []) == [new]
    assert machine_nodes([new], former) == []
    assert machine_nodes(former, former) == former
    assert names_of(machine_nodes([new], node_manifests(["4x8cpu"]))) == ["new-name"]
    monkeypatch.setattr(platform, "node", lambda: "old-name")
    [again] = machine_nodes([new], [machine_node(tmp_path)])
    assert (again["metadata"]["name"], again["status"]) == ("old-name", new["status"])
    assert again["metadata"]["labels"]["kubernetes.io/hostname"] == "old-name"


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Ann's MacBook Pro.local", "ann-s-macbook-pro.local"),
        ("-x_y-..z-", "x-y.z"),
        ("", "localhost"),
        ("ü", "localhost"),
        ("h" * 80, "h" * 63),
    ],
)
def test_the_host_may_have_any_name(monkeypatch, host, name):
    monkeypatch.setattr(platform, "node", lambda: host)
    assert host_name() == name


@pytest.mark.parametrize(("memory", "kept"), [(1, 0.25), (4, 0.5), (16, 1.6), (64, 4), (512, 4)])
def test_memory_is_kept_back_for_everything_else(memory, kept):
    assert kept_back(memory * GIBIBYTE) == int(kept * GIBIBYTE)


def test_a_model_becomes_a_label():
    assert product("NVIDIA A100-SXM4-80GB") == "NVIDIA-A100-SXM4-80GB"
    assert product("NVIDIA GeForce RTX 4090 (x) ") == "NVIDIA-GeForce-RTX-4090-x"
    assert len(product("x" * 100)) == 63


def test_quotas_of_cgroups_count(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_cgroups", lambda controller: iter([tmp_path]))
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text(f"{GIBIBYTE}\n")
    assert (machine.cpus(), machine.memory_bytes()) == (0.5, GIBIBYTE)
    assert machine_node(tmp_path)["status"]["capacity"]["cpu"] == "500m"
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.cpus() == len(os.sched_getaffinity(0))
    assert machine.memory_bytes() > GIBIBYTE
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    assert machine.cpus() == len(os.sched_getaffinity(0))
    (tmp_path / "cpu.cfs_quota_us").write_text("25000\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    assert machine.cpus() == 0.25
