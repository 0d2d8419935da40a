"""Where we treat volumes differently from Volcano on purpose: docs/deviations.md, one test per row."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.testing import World
from tests.storage_manifests import (
    capacity,
    claim,
    claiming,
    csi_driver,
    csi_node,
    disk,
    storage_class,
    volume,
)

PLACE = "enqueue, allocate"
PLUGINS = "priority gang predicates nodeorder"


def test_a_volume_that_a_node_has_attached_does_not_count_again_for_a_second_pod() -> None:
    """Volcano counts it among the node's resources once for each pod (wart volumes/attach-limit-same-volume)."""
    world = World(nodes="big cpu=32; small cpu=4").add(*disk("d0"), csi_node("big", 1), csi_node("small", 2))
    world.job("old", cpu=1, running_on="big", spec=claiming("d0"))
    world.job("j", cpu=1, spec=claiming("d0"))
    assert world.run(PLACE, PLUGINS).binds == {"default/j-0": "big"}


def test_volumes_are_no_resource_of_queues() -> None:
    """Volcano counts them in shares and in the status of queues, in thousandths."""
    world = World(nodes="n cpu=32").add(*disk("a"), *disk("b"), csi_node("n", 2))
    world.job("old", cpu=1, running_on="n", spec=claiming("a"))
    world.job("j", cpu=1, spec=claiming("b"))
    assert world.run(PLACE, f"{PLUGINS} proportion").binds == {"default/j-0": "n"}
    counted = {world.cluster.dims.names[dim] for dim in world.cluster.queues["default"].allocated}
    assert counted <= {"cpu", "memory", "pods"}


@pytest.mark.parametrize("provisioner", ["kubernetes.io/no-provisioner", "example.com/by-hand"])
def test_a_provisioner_that_is_no_csi_driver_has_no_attach_limit(provisioner: str) -> None:
    """In Volcano no node can attach volumes of a driver of that name (wart volumes/delayed-claim-of-no-provisioner)."""
    world = World(nodes="big cpu=32; small cpu=4").add(storage_class(provisioner=provisioner))
    world.add(volume("free", "10Gi", "small"), claim("data"))
    world.job("j", cpu=1, spec={**claiming("data"), "nodeSelector": {"kubernetes.io/hostname": "small"}})
    assert world.run(PLACE, PLUGINS).binds == {"default/j-0": "small"}


def test_claims_are_summed_when_compared_with_the_capacity_that_is_left() -> None:
    """Volcano compares each claim alone (wart volumes/storage-capacity-is-not-summed)."""
    world = World(nodes="big cpu=32; small cpu=4").add(storage_class("csi", "hostpath.csi.k8s.io"))
    world.add(csi_driver("hostpath.csi.k8s.io"), capacity("big", "10Gi"), capacity("small", "16Gi"))
    world.add(*(claim(name, "8Gi", "csi") for name in "abcde"))
    world.job("both", cpu=1, spec=claiming("a", "b"))
    assert world.run(PLACE, PLUGINS).binds == {"default/both-0": "small"}
    world.job("next", cpu=1, spec=claiming("c"))
    world.job("last", cpu=1, spec=claiming("d"))
    result = world.run(PLACE, PLUGINS)
    assert result.binds == {"default/next-0": "big"}
    assert result.why("last-0") == "0/2 nodes are unavailable: 2 node(s) did not have enough free storage."


def test_pods_of_a_gang_do_not_count_on_the_same_storage() -> None:
    """In Volcano each of them finds the whole of it free."""
    world = World(nodes="n cpu=32").add(storage_class("csi", "hostpath.csi.k8s.io"))
    world.add(csi_driver("hostpath.csi.k8s.io"), capacity("n", "20Gi"))
    world.add(*(claim(name, "8Gi", "csi") for name in ("three-0", "three-1", "three-2", "two-0", "two-1")))
    for name, pods in (("three", 3), ("two", 2)):
        world.job(name, pods=pods, cpu=1)
        for index in range(pods):
            world.add(_claiming_member(name, index))
    assert world.run(PLACE, PLUGINS).bound_per_job == {"default/two": 2}


def test_a_claim_that_was_given_a_volume_goes_nowhere_else() -> None:
    """Volcano lets a second pod have another volume provisioned for the same claim on another node."""
    world = World(nodes="a cpu=8; b cpu=7").add(storage_class("local", "rancher.io/local-path"))
    world.add(volume("pa", "10Gi", "a"), claim("shared"))
    world.job("j", pods=2, cpu=6, spec=claiming("shared"))
    result = world.run(PLACE, PLUGINS)
    assert result.binds == {}
    world.add({**_node("a", 12)})
    assert world.step().binds == {"default/j-0": "a", "default/j-1": "a"}


def test_a_claim_that_a_volume_names_goes_nowhere_else() -> None:
    """Volcano has another volume provisioned for it, though its controller binds it to the first."""
    world = World(nodes="a cpu=8; b cpu=1").add(storage_class("local", "rancher.io/local-path"))
    world.add(volume("v", "10Gi", "b", claimed_by="data"), claim("data"))
    world.job("j", cpu=1, spec=claiming("data"))
    assert world.run(PLACE, PLUGINS).binds == {"default/j-0": "b"}


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            False,
        ),
        ({"gcePersistentDisk": {"pdName": "d", "readOnly": True}},) * 2 + (True,),
        ({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "e"}}, True),
        ({"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},) * 2 + (False,),
        ({"iscsi": {"iqn": "q", "targetPortal": "x", "lun": 0}},) * 2 + (False,),
        (
            {"rbd": {"monitors": ["m1", "m2"], "image": "i"}},
            {"rbd": {"monitors": ["m2"], "image": "i", "pool": "rbd"}},
            False,
        ),
        ({"rbd": {"monitors": ["m1"], "image": "i"}}, {"rbd": {"monitors": ["m2"], "image": "i"}}, True),
    ],
)
def test_a_disk_that_cannot_be_shared_keeps_pods_apart(
    first: dict[str, Any], second: dict[str, Any], together: bool
) -> None:
    """Volcano lacks VolumeRestrictions: both start, and one hangs on its node."""
    world = World(nodes="big cpu=32; small cpu=4")
    for name, source in (("a", first), ("b", second)):
        world.job(name, cpu=1, spec={"volumes": [{"name": "v", **source}]})
    assert world.run(PLACE, PLUGINS).binds == {
        "default/a-0": "big",
        "default/b-0": "big" if together else "small",
    }


def test_a_claim_for_a_single_pod_has_one() -> None:
    """Volcano lacks VolumeRestrictions: all pods start that name the claim."""
    world = World(nodes="n cpu=32").add(storage_class())
    world.add(
        volume("v", "10Gi", accessModes=["ReadWriteOncePod"]), claim("one", accessModes=["ReadWriteOncePod"])
    )
    world.job("j", pods=2, minimum=1, cpu=1, spec=claiming("one"))
    result = world.run(PLACE, PLUGINS)
    assert result.binds == {"default/j-0": "n"}
    reason = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
    assert result.why("j-1") == f"0/1 nodes are unavailable: 1 {reason}."


def _claiming_member(job: str, index: int) -> dict[str, Any]:
    name = f"{job}-{index}"
    return {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": job}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], **claiming(name)},
    }


def _node(name: str, cpu: int) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": 110}},
    }
