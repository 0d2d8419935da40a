import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.nodes.node_groups import BadNodes, node_manifests, parse_group


@pytest.mark.parametrize(
    ("text", "name", "count", "capacity", "real"),
    [
        (
            "20x32cpu,256Gi,8gpu",
            "",
            20,
            {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"},
            False,
        ),
        ("16", "", 16, {"cpu": "8", "memory": "32Gi", "pods": "110"}, False),
        ("big=2", "big", 2, {"cpu": "8", "memory": "32Gi", "pods": "110"}, False),
        ("4cpu", "", 1, {"cpu": "4", "memory": "16Gi", "pods": "110"}, False),
        ("big=2x64cpu,1Ti", "big", 2, {"cpu": "64", "memory": "1Ti", "pods": "110"}, False),
        ("3x2cpu,4Gi,real", "", 3, {"cpu": "2", "memory": "4Gi", "pods": "110"}, True),
        ("0.5cpu,10pods", "", 1, {"cpu": "0.5", "memory": "4Gi", "pods": "10"}, False),
        ("8cpu,2rdma/hca", "", 1, {"cpu": "8", "memory": "32Gi", "pods": "110", "rdma/hca": "2"}, False),
    ],
)
def test_a_group_is_read(text, name, count, capacity, real):
    group = parse_group(text)
    assert group.capacity.pop("ephemeral-storage") == "100Gi"
    assert (group.name, group.count, group.capacity, group.real) == (name, count, capacity, real)


def test_gpus_are_devices_or_shared_cards_instead_of_a_resource():
    (devices,) = node_manifests(["4cpu,2gpu,dra,gpu-memory=40Gi,gpu-model=A100"])
    assert devices["metadata"]["annotations"] == {"stromboli.sh/devices": "2x40Gi,A100"}
    assert "nvidia.com/gpu" not in devices["status"]["allocatable"]
    (cards,) = node_manifests(["4cpu,2gpu,vgpu,gpu-memory=40Gi"])
    amounts = cards["status"]["allocatable"]
    assert {name: amounts[name] for name in amounts if name.startswith("volcano.sh/")} == {
        "volcano.sh/vgpu-number": "20",
        "volcano.sh/vgpu-memory": "81920",
        "volcano.sh/vgpu-cores": "200",
    }
    registered = cards["metadata"]["annotations"]["volcano.sh/node-vgpu-register"]
    first, second, rest = registered.split(":")
    assert first.split(",")[1:] == ["10", "40960", "NVIDIA-simulated", "true", "hami-core"]
    assert (first != second, rest) == (True, "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("4cpu,dra", "at least 1 and at most 128"),
        ("4cpu,129gpu,vgpu", "at least 1 and at most 128"),
        ("4cpu,2gpu,dra,vgpu", "either dra or vgpu"),
        ("4cpu,2gpu,gpu-memory=1Gi", "are of GPUs with dra or vgpu"),
        ("4cpu,2gpu,dra,gpu-memory=1", "at least 1Mi"),
        ("4cpu,2gpu,dra,gpu-memory=x", "bad quantity"),
        ("4cpu,2gpu,vgpu,gpu-model=a:b", "model of a GPU"),
        ("", "for example"),
        ("x", "no amount"),
        ("20x", "20 nodes of which size. 20x8cpu,32Gi, or 20 alone"),
        ("3,gpu", "'3': 3 of what. 3cpu, 3Gi or 3gpu; nodes are counted as in 3x8cpu"),
        ("8cpu,gpu", "'gpu': how many. 8gpu are eight"),
        ("8cpu,32GB", "no resource 'GB'; memory is 32Gi"),
        ("8cpu,32gib", "no resource 'gib'; memory is 32Gi"),
        ("8cpu,32g", "no resource 'g'; memory is 32Gi"),
        ("256Gi", "how many CPUs"),
        ("4cpu,3unicorns", "no resource"),
        ("0x4cpu", "at least 1"),
        ("0", "at least 1"),
        ("99999", "at most"),
        ("9999999999", "of what"),
        ("99999x4cpu", "at most"),
        ("4cpu,,", "no amount"),
        ("Big_Nodes=2x4cpu", "'Big_Nodes' is no name of nodes: at most 42 small letters"),
        ("2x4cpu,model=A100", "'model=A100' is no amount"),
    ],
)
def test_a_group_that_makes_no_sense_is_explained(text, problem):
    with pytest.raises(BadNodes, match=problem):
        parse_group(text)


@given(st.text(max_size=30))
def test_no_text_breaks_the_reader(text):
    try:
        assert parse_group(text).count >= 1
    except BadNodes as error:
        assert "nodes" in str(error)


def test_nodes_are_numbered_on_over_groups():
    manifests = node_manifests(["2x4cpu", "1x8cpu", "gpu=2x4cpu,1gpu"])
    assert [node["metadata"]["name"] for node in manifests] == ["n1", "n2", "n3", "gpu-1", "gpu-2"]
    assert manifests[0]["metadata"]["labels"]["stromboli.sh/node"] == "simulated"
    assert node_manifests(["1x4cpu"], real=True)[0]["metadata"]["labels"]["stromboli.sh/node"] == "real"


def test_nodes_come_from_a_file(tmp_path):
    file = tmp_path / "nodes.yaml"
    file.write_text(
        """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: east}, uid: gone}
spec: {taints: [{key: k, effect: NoSchedule}], podCIDR: gone}
status: {capacity: {cpu: 8, memory: 32Gi}, conditions: [gone]}
---
kind: List
items:
- kind: Node
  metadata: {name: b}
  status: {allocatable: {cpu: "4"}}
- kind: Pod
"""
    )
    first, second = node_manifests([str(file)])
    assert first["metadata"]["labels"]["zone"] == "east"
    assert first["spec"] == {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    usual = {"pods": "110", "ephemeral-storage": "100Gi"}
    assert first["status"]["capacity"] == {"cpu": "8", "memory": "32Gi", **usual}
    assert second["status"]["allocatable"] == {"cpu": "4", **usual}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Pod", "no objects of kind Node"),
        ("{", "not YAML"),
        ("kind: Node", "metadata.name"),
        ("kind: Node\nmetadata: {name: a}", "capacity"),
    ],
)
def test_a_file_without_nodes_is_explained(tmp_path, text, problem):
    file = tmp_path / "nodes.yaml"
    file.write_text(text)
    with pytest.raises(BadNodes, match=problem):
        node_manifests([str(file)])
    with pytest.raises(BadNodes, match="cannot be read"):
        node_manifests([str(tmp_path / "none.yaml")])


def test_two_nodes_of_a_name_are_refused(tmp_path):
    file = tmp_path / "nodes.yaml"
    file.write_text("kind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 1}}")
    with pytest.raises(BadNodes, match="two nodes of one name"):
        node_manifests(["2x4cpu", str(file)])
