"""Volumes of pods: each rule of the specification (04 2.7, 2.8, 2.11) in a world small enough to see."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.testing import World
from tests.storage_manifests import (
    HOST,
    attachment,
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
TWO = "big cpu=32; small cpu=4"
EBS = {"awsElasticBlockStore": {"volumeID": "v-1"}}
MIGRATED = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def policy(**arguments: Any) -> str:
    lines = "".join(f"      {key}: {value}\n" for key, value in arguments.items())
    return (
        f'actions: "{PLACE}"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n    arguments:\n{lines}'
        "  - name: nodeorder\n"
    )


def named(node: str, operator: str = "In", key: str = "metadata.name") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": [node]}


def affinity_to(**term: Any) -> dict[str, Any]:
    return {"required": {"nodeSelectorTerms": [term]}}


def placed(world: World) -> dict[str, str]:
    return world.run(PLACE, PLUGINS).binds


def with_claim(world: World, **terms: Any) -> World:
    return world.job("j", cpu=1, spec=claiming("data"), **terms)


# -- static volumes


def test_the_smallest_volume_that_serves_is_granted() -> None:
    world = World(nodes="n cpu=4").add(storage_class(), claim("data", "5Gi"))
    world.add(volume("large", "20Gi"), volume("tiny", "4Gi"), volume("right", "6Gi", "n"), volume("b", "6Gi"))
    result = with_claim(world).run(PLACE, PLUGINS)
    (bind,) = [each for each in result.decisions if type(each).__name__ == "Bind"]
    assert bind.grants == (VolumeGrant("default", "data", "claim-data", "b", 600),)


@pytest.mark.parametrize(
    ("spec", "serves"),
    [
        ({}, True),
        ({"accessModes": ["ReadWriteMany"]}, False),
        ({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}, True),
        ({"volumeMode": "Block"}, False),
        ({"volumeAttributesClassName": "gold"}, False),
        ({"storageClassName": "other"}, False),
        ({"labels": {"kind": "hdd"}}, True),
        ({"capacity": {"storage": "4Gi"}}, False),
        ({"claimRef": {"namespace": "default", "name": "data", "uid": "claim-data"}}, True),
        ({"claimRef": {"namespace": "default", "name": "data"}}, True),
        ({"claimRef": {"namespace": "default", "name": "data", "uid": "older"}}, False),
        ({"claimRef": {"namespace": "other", "name": "data"}}, False),
        ({"claimRef": {"namespace": "default", "name": "data"}, "storageClassName": "other"}, False),
        ({"nodeAffinity": affinity_to(matchFields=[named("n")])}, False),
        ({"nodeAffinity": affinity_to(matchFields=[named("n", "NotIn")])}, True),
        ({"nodeAffinity": affinity_to(matchExpressions=[named("n", key=HOST)])}, True),
    ],
)
def test_a_volume_serves_a_claim_by_all_that_it_asks(spec: dict[str, Any], serves: bool) -> None:
    world = with_claim(World(nodes="n cpu=4").add(storage_class(), claim("data"), volume("v", **spec)))
    assert placed(world) == ({"default/j-0": "n"} if serves else {})


@pytest.mark.parametrize(
    ("labels", "serves"), [({"kind": "ssd"}, True), ({"kind": "hdd"}, False), ({}, False)]
)
def test_a_claim_selects_volumes_by_label(labels: dict[str, str], serves: bool) -> None:
    expressions = [{"key": "kind", "operator": "In", "values": ["ssd", "nvme"]}]
    world = World(nodes="n cpu=4").add(storage_class(), volume("v", labels=labels))
    world.add(claim("data", selector={"matchExpressions": expressions}))
    assert placed(with_claim(world)) == ({"default/j-0": "n"} if serves else {})


def test_a_volume_that_is_being_deleted_serves_no_claim() -> None:
    leaving = volume("v")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world = World(nodes="n cpu=4").add(storage_class(), claim("data"), leaving)
    assert placed(with_claim(world)) == {}


def test_what_was_granted_comes_true_and_the_next_pod_follows_the_volume() -> None:
    world = World(nodes=TWO).add(storage_class(), claim("data"), volume("v", "10Gi", "small"))
    assert placed(with_claim(world)) == {"default/j-0": "small"}
    world.step()
    bound = world.cluster.objects.claims["default/data"]
    assert (bound.spec.volume_name, bound.status.phase) == ("v", "Bound")
    assert world.cluster.volumes.promise_to("default/data") is None
    world.job("next", cpu=1, spec=claiming("data"))
    assert world.step().binds == {"default/next-0": "small"}


# -- provisioning


def test_a_claim_with_a_selected_node_goes_there_alone() -> None:
    world = World(nodes=TWO).add(
        storage_class("made", "example.com/made"), claim("data", of="made", node="small")
    )
    assert placed(with_claim(world)) == {"default/j-0": "small"}
    full = World(nodes="big cpu=32; small cpu=0.5").add(storage_class("made", "example.com/made"))
    result = with_claim(full.add(claim("data", of="made", node="small"))).run(PLACE, PLUGINS)
    assert result.why("j-0") == (
        "0/2 nodes are unavailable: 1 Insufficient cpu, 1 node(s) didn't find available persistent volumes to bind."
    )


@pytest.mark.parametrize(
    ("terms", "node"),
    [
        ([], "big"),
        ([{"matchLabelExpressions": [{"key": "rack", "values": ["2", "3"]}]}], "small"),
        ([{"matchLabelExpressions": []}], None),
        (
            [
                {},
                {
                    "matchLabelExpressions": [
                        {"key": "rack", "values": ["2"]},
                        {"key": "disk", "values": ["x"]},
                    ]
                },
            ],
            None,
        ),
    ],
)
def test_allowed_topologies_say_where_volumes_are_made(terms: list[Any], node: str | None) -> None:
    world = World(nodes="big cpu=32 rack=1; small cpu=4 rack=2")
    world.add(storage_class("made", "example.com/made", allowedTopologies=terms), claim("data", of="made"))
    assert placed(with_claim(world)) == ({"default/j-0": node} if node else {})


@pytest.mark.parametrize(
    ("report", "fits"),
    [
        ({}, True),
        ({"capacity": "4Gi"}, False),
        ({"capacity": "9Gi", "maximumVolumeSize": "4Gi"}, False),
        ({"capacity": "4Gi", "maximumVolumeSize": "9Gi"}, True),
        ({"capacity": None, "maximumVolumeSize": "9Gi"}, True),
        ({"capacity": None}, False),
        ({"nodeTopology": None}, False),
        ({"nodeTopology": {}}, True),
        ({"nodeTopology": {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}]}}, True),
        ({"nodeTopology": {"matchLabels": {"rack": "1", "disk": "x"}}}, False),
        ({"storageClassName": "other"}, False),
    ],
)
def test_a_report_of_a_driver_limits_what_is_made(report: dict[str, Any], fits: bool) -> None:
    world = World(nodes="n cpu=4 rack=1").add(
        storage_class("csi", "hostpath.csi.k8s.io"), claim("data", of="csi")
    )
    world.add(csi_driver("hostpath.csi.k8s.io"), {**capacity("n", "9Gi"), **report})
    assert placed(with_claim(world)) == ({"default/j-0": "n"} if fits else {})


def test_a_driver_that_reports_nothing_is_not_limited() -> None:
    world = World(nodes="n cpu=4").add(storage_class("csi", "hostpath.csi.k8s.io"), claim("data", of="csi"))
    assert placed(with_claim(world.add(capacity("n", "1Gi")))) == {"default/j-0": "n"}


def test_storage_that_others_took_does_not_keep_a_claim_from_its_node() -> None:
    """Two claims are being provisioned on a node by a scheduler that did not add them up."""
    world = World(nodes="n cpu=4").add(storage_class("csi", "hostpath.csi.k8s.io"))
    world.add(csi_driver("hostpath.csi.k8s.io"), capacity("n", "9Gi"))
    world.add(
        claim("data", of="csi", node="n"), claim("other", of="csi", node="n"), claim("more", "1Gi", "csi")
    )
    world.job("late", cpu=1, spec=claiming("more"))
    assert placed(with_claim(world)) == {"default/j-0": "n"}


def test_storage_that_is_given_back_is_there_for_others_in_the_same_cycle() -> None:
    world = World(nodes="n cpu=4").add(storage_class("csi", "hostpath.csi.k8s.io"))
    world.add(
        csi_driver("hostpath.csi.k8s.io"), capacity("n", "9Gi"), claim("a", of="csi"), claim("b", of="csi")
    )
    world.job("gang", pods=1, minimum=1, cpu=1, spec=claiming("a"), min_resources={"cpu": 1})
    world.job("two", pods=2, cpu=3, spec=claiming("b"))
    assert placed(world) == {"default/gang-0": "n"}


# -- attachments


def test_attachments_without_a_pod_count_unless_the_filter_is_off() -> None:
    def world() -> World:
        made = World(nodes=TWO).add(*disk("stale"), *disk("data"), attachment("big", "pv-stale"))
        return with_claim(made.add(csi_node("big", 1), csi_node("small", 1)))

    assert placed(world()) == {"default/j-0": "small"}
    assert world().run(policy=policy(**{"predicate.NodeVolumeLimitsEnable": "false"})).binds == {
        "default/j-0": "big"
    }


def test_a_volume_that_is_attached_already_needs_no_attachment() -> None:
    world = World(nodes="big cpu=32").add(*disk("data"), attachment("big", "pv-data"), csi_node("big", 1))
    assert placed(with_claim(world)) == {"default/j-0": "big"}


def test_a_node_without_the_driver_or_without_a_limit() -> None:
    world = World(nodes=TWO).add(*disk("data"), csi_node("small"))
    assert placed(with_claim(world)) == {"default/j-0": "small"}
    result = with_claim(World(nodes="n cpu=4").add(*disk("data"))).run(PLACE, PLUGINS)
    assert result.why("j-0") == (
        "0/1 nodes are unavailable: 1 Insufficient attachable-volumes-csi-disk.example.com."
    )


def test_a_driver_that_is_ignored_limits_no_node() -> None:
    world = with_claim(World(nodes="n cpu=4").add(*disk("data")))
    world.cluster.volumes.ignored_provisioners |= {"disk.example.com"}
    assert placed(world) == {"default/j-0": "n"}


def test_room_for_a_volume_that_is_being_freed_is_waited_for() -> None:
    world = World(nodes="n cpu=4").add(*disk("d0"), *disk("data"), csi_node("n", 1))
    world.add(leaving_pod("n", "d0"))
    assert (
        with_claim(world).run(PLACE, PLUGINS).pipelined == {}
    )  # Kubernetes' filter sees a pod until it is gone
    off = policy(**{"predicate.NodeVolumeLimitsEnable": "false"})
    assert world.run(policy=off).pipelined == {"default/j-0": "n"}


@pytest.mark.parametrize("annotations", [MIGRATED, {}])
def test_in_tree_volumes_count_for_the_driver_that_took_over(annotations: dict[str, str]) -> None:
    """Wherever a CSINode says how many it attaches, whatever else it says; the small node has none."""
    big = csi_node("big", 1, "ebs.csi.aws.com")
    big["metadata"]["annotations"] = annotations
    world = World(nodes=TWO).add(big, volume("pv", claimed_by="data", **EBS), claim("data", volume="pv"))
    world.job("inline", cpu=1, spec={"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "v-2"}}]})
    assert placed(with_claim(world)) == {"default/inline-0": "big", "default/j-0": "small"}


def test_a_pod_whose_claim_does_not_exist_is_refused_where_attachments_are_counted() -> None:
    off = {"predicate.VolumeZoneEnable": "false", "predicate.VolumeBindingEnable": "false"}
    result = with_claim(World(nodes="n cpu=4")).run(policy=policy(**off))
    assert result.why("j-0") == (
        '0/1 nodes are unavailable: 1 looking up PVC default/data: persistentvolumeclaim "data" not found.'
    )
    off["predicate.NodeVolumeLimitsEnable"] = "false"
    assert with_claim(World(nodes="n cpu=4")).run(policy=policy(**off)).binds == {"default/j-0": "n"}


def test_a_pod_without_requests_but_with_a_volume_to_attach_is_not_left_to_backfill() -> None:
    world = World(nodes="n cpu=4").add(csi_node("n", 2)).job("j", spec=claiming("data"))
    assert (world.run(PLACE, PLUGINS).binds, world.task("j-0").best_effort) == ({}, True)
    world.add(*disk("data"))
    assert (world.step().binds, world.task("j-0").best_effort) == ({"default/j-0": "n"}, False)
    local = (
        World(nodes="n cpu=4")
        .add(storage_class(), claim("data"), volume("v"))
        .job("j", spec=claiming("data"))
    )
    assert local.run(PLACE, PLUGINS).binds == {}
    assert local.run("backfill", PLUGINS).binds == {"default/j-0": "n"}


def test_a_gang_does_not_start_without_its_pod_that_asks_for_a_volume_alone() -> None:
    """A pod that is left to backfill would count as if it had its place."""
    world = World(nodes="n cpu=4").add(*disk("data"), *disk("other"), csi_node("n", 1))
    world.job("old", cpu=1, running_on="n", spec=claiming("other"))
    world.job("gang", cpu=1, minimum=2)
    world.add(
        {
            "kind": "Pod",
            "metadata": {"name": "store", "annotations": {"scheduling.k8s.io/group-name": "gang"}},
            "spec": {"containers": [{"name": "c"}], **claiming("data")},
        }
    )
    assert world.run("enqueue, allocate, backfill", PLUGINS).binds == {}


# -- zones and nodes of bound volumes


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "near"),
    [
        ({OLD_ZONE: "a"}, f"{ZONE}=a", True),
        ({OLD_ZONE: "a"}, f"{OLD_ZONE}=b {ZONE}=a", False),
        ({ZONE: "a"}, f"{OLD_ZONE}=a", False),
        ({ZONE: "a__b"}, f"{ZONE}=b", True),
        ({ZONE: "a__"}, f"{ZONE}=b", True),
        ({ZONE: "a", REGION: "r"}, f"{ZONE}=a", False),
        ({ZONE: "a", REGION: "r"}, f"{ZONE}=a {REGION}=r", True),
        ({ZONE: "a"}, "rack=1", True),
    ],
)
def test_a_volume_lies_in_zones(volume_labels: dict[str, str], node_labels: str, near: bool) -> None:
    world = World(nodes=f"n cpu=4 {node_labels}")
    world.add(volume("v", claimed_by="data", labels=volume_labels), claim("data", volume="v"))
    assert placed(with_claim(world)) == ({"default/j-0": "n"} if near else {})


def test_the_zone_of_an_ephemeral_volume_does_not_matter() -> None:
    world = World(nodes=f"n cpu=4 {ZONE}=b")
    made = claim("j-0-scratch", volume="v")
    made["metadata"]["ownerReferences"] = [
        {"kind": "Pod", "name": "j-0", "uid": "j-0-uid", "controller": True}
    ]
    world.add(volume("v", claimed_by="j-0-scratch", labels={ZONE: "a"}), made)
    world.job("j", cpu=1, spec={"volumes": [{"name": "scratch", "ephemeral": {}}]})
    made["metadata"]["ownerReferences"][0]["uid"] = next(iter(world.cluster.tasks))
    assert placed(world.add(made)) == {"default/j-0": "n"}


def test_all_problems_with_volumes_of_a_node_are_reported() -> None:
    world = World(nodes="a cpu=4; b cpu=0.5").add(storage_class(), claim("static"))
    world.add(volume("v", "5Gi", "b", claimed_by="bound"), claim("bound", volume="v"))
    result = world.job("j", cpu=1, spec=claiming("bound", "static")).run(PLACE, PLUGINS)
    reasons = (
        "node(s) didn't match PersistentVolume's node affinity, "
        "node(s) didn't find available persistent volumes to bind"
    )
    assert result.why("j-0") == f"0/2 nodes are unavailable: 1 Insufficient cpu, 1 {reasons}."
    task = world.task("j-0")
    remedies = {reason.text: reason.remedy for reason in result.verdict("j-0").reasons}
    assert remedies[reasons].steady_text(task) == (
        "volume v is reachable from b: free capacity there; create a PersistentVolume of class "
        "local with 5Gi or more where nodes have capacity"
    )


def test_an_in_tree_volume_is_reached_by_the_label_of_the_driver_that_took_over() -> None:
    there = {"key": ZONE, "operator": "In", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    world = World(nodes=f"big cpu=32 {ZONE}=a; small cpu=4 topology.ebs.csi.aws.com/zone=a")
    for name in ("big", "small"):
        node = csi_node(name, None, "ebs.csi.aws.com")
        node["metadata"]["annotations"] = MIGRATED
        world.add(node)
    world.add(volume("pv", claimed_by="data", nodeAffinity=affinity, **EBS), claim("data", volume="pv"))
    assert placed(with_claim(world)) == {"default/j-0": "small"}


# -- claims and disks for few


def test_a_pod_waits_for_the_one_that_leaves_with_its_claim() -> None:
    alone = {"accessModes": ["ReadWriteOncePod"]}
    world = World(nodes="n cpu=4").add(
        volume("v", claimed_by="data", **alone), claim("data", volume="v", **alone)
    )
    world.add(leaving_pod("n", "data"))
    assert with_claim(world).run(PLACE, PLUGINS).pipelined == {"default/j-0": "n"}


def test_evicting_the_pod_with_the_claim_helps() -> None:
    alone = {"accessModes": ["ReadWriteOncePod"]}
    world = World(nodes="n cpu=4").add(
        volume("v", claimed_by="data", **alone), claim("data", volume="v", **alone)
    )
    world.job("old", minimum=0, cpu=1, priority=1, running_on="n", spec=claiming("data"))
    with_claim(world, priority=10)
    result = world.run("enqueue, allocate, preempt", "priority predicates")
    assert (result.evicted, result.pipelined) == (["default/old-0"], {"default/j-0": "n"})


# -- switches and arguments


def test_with_binding_off_claims_are_left_to_others() -> None:
    world = with_claim(World(nodes="n cpu=4").add(storage_class(), claim("data")))
    result = world.run(policy=policy(**{"predicate.VolumeBindingEnable": "false"}))
    assert result.binds == {"default/j-0": "n"}
    assert [each.grants for each in result.decisions if type(each).__name__ == "Bind"] == [()]


def test_a_claim_may_take_as_long_as_the_policy_says() -> None:
    world = with_claim(World(nodes="n cpu=4").add(storage_class(), claim("data"), volume("v")))
    result = world.run(policy=policy(**{"volumebinding.bindTimeoutSeconds": 7}))
    assert [each.grants[0].timeout for each in result.decisions if type(each).__name__ == "Bind"] == [7]


@pytest.mark.parametrize(
    ("features", "shape", "node"),
    [
        ((), "", "big"),
        (("StorageCapacityScoring",), "", "big"),
        (("StorageCapacityScoring",), "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]", "small"),
    ],
)
def test_storage_scores_nodes_behind_its_gate(features: tuple[str, ...], shape: str, node: str) -> None:
    """Of 5Gi on a volume of 20Gi or of 5Gi, the default shape prefers the emptier, and another one the fuller."""
    world = World(nodes="big cpu=4; small cpu=4", features=features).add(storage_class(), claim("data"))
    world.add(volume("half", "20Gi", "big"), volume("whole", "5Gi", "small"))
    arguments = {"volumebinding.weight": 10} | ({"volumebinding.shape": shape} if shape else {})
    assert with_claim(world).run(policy=policy(**arguments)).binds == {"default/j-0": node}


def leaving_pod(node: str, *claims: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "old", "deletionTimestamp": "2026-11-01T11:00:00Z"},
        "spec": {"nodeName": node, "containers": [{"name": "c"}], **claiming(*claims)},
        "status": {"phase": "Running"},
    }
