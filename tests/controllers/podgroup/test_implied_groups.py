"""What the group of a bare pod looks like."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.types.scheduling import PodGroup
from stromboli.controllers.podgroup.implied_groups import changes, group_of
from stromboli.controllers.watched_kinds import Pod

RS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-1", "controller": True}


def pod(owners: list[Any] | None = None, labels: Any = None, spec: Any = None, **annotations: str) -> Pod:
    marks = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
    return msgspec.convert(
        {
            "metadata": {
                "name": "p",
                "namespace": "ns",
                "uid": "pod-1",
                "ownerReferences": owners or [],
                "labels": labels or {},
                "annotations": marks,
            },
            "spec": spec or {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]},
        },
        Pod,
    )


def test_a_pod_without_an_owner_has_a_group_of_its_own() -> None:
    group = group_of(pod())
    assert group["metadata"]["name"] == "podgroup-pod-1"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod-1", "controller": True}
    assert group["metadata"]["ownerReferences"] == [owner]
    assert group["spec"] == {
        "minMember": 1,
        "minResources": {"count/pods": "1", "cpu": "500m", "pods": "1", "requests.cpu": "500m"},
    }
    assert group["status"] == {"phase": "Pending"}


def test_pods_of_one_owner_share_a_group_that_lives_as_long_as_their_owners() -> None:
    other = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "x-1"}
    group = group_of(pod([other, RS]))
    assert group["metadata"]["name"] == "podgroup-rs-1"
    assert group["metadata"]["ownerReferences"] == [other, RS]


@pytest.mark.parametrize(
    ("annotation", "minimum"),
    [("3", 3), ("0", 0), ("-2", 1), ("many", 1), ("", 1), ("9" * 40, 1), ("2.5", 1)],
)
def test_an_owner_may_say_how_many_pods_are_needed(annotation: str, minimum: int) -> None:
    group = group_of(pod([RS]), [{"scheduling.volcano.sh/group-min-member": annotation}])
    assert group["spec"]["minMember"] == minimum
    assert group["spec"]["minResources"].get("cpu") == ("0" if minimum == 0 else f"{minimum * 500}m")


def test_the_first_owner_that_has_an_annotation_counts_and_the_pod_over_all() -> None:
    first = {"volcano.sh/preemptable": "false", "volcano.sh/a": "1", "other/b": "1"}
    second = {"volcano.sh/a": "2", "volcano.sh/c": "2", "volcano.sh/jdb-min-available": "4"}
    bare = pod(volcano_sh__x="no")
    bare.metadata.annotations.update(
        {
            "volcano.sh/preemptable": "true",
            "volcano.sh/jdb-min-available": "1",
            "volcano.sh/jdb-max-unavailable": "9",
        }
    )
    assert group_of(bare, [first, second])["metadata"]["annotations"] == {
        "volcano.sh/preemptable": "true",
        "volcano.sh/a": "1",
        "volcano.sh/c": "2",
        "volcano.sh/jdb-min-available": "1",
    }


def test_the_time_limit_of_an_owner_is_that_of_the_group() -> None:
    limit = {"stromboli.sh/time-limit": "2h"}
    assert group_of(pod(), [limit | {"other/b": "1"}])["metadata"]["annotations"] == limit


def test_queue_priority_and_two_labels_come_from_the_pod() -> None:
    bare = pod(labels={"volcano.sh/preemptable": "true", "app": "x"}, spec={"priorityClassName": "high"})
    bare.metadata.annotations["scheduling.volcano.sh/queue-name"] = "research"
    group = group_of(bare)
    assert (group["spec"]["queue"], group["spec"]["priorityClassName"]) == ("research", "high")
    assert group["metadata"]["labels"] == {"volcano.sh/preemptable": "true"}


@pytest.mark.parametrize(
    ("mode", "tier", "topology"),
    [
        ("Soft", "2", {"mode": "soft", "highestTierAllowed": 2}),
        ("strange", "x", {"mode": "hard"}),
        (None, "1", {"mode": "hard", "highestTierAllowed": 1}),
        ("hard", "-1", {"mode": "hard"}),
        (None, None, None),
    ],
)
def test_the_network_topology_comes_from_annotations(
    mode: str | None, tier: str | None, topology: Any
) -> None:
    bare = pod()
    for key, value in (("mode", mode), ("highest-tier", tier)):
        if value is not None:
            bare.metadata.annotations[f"volcano.sh/network-topology-{key}"] = value
    assert group_of(bare)["spec"].get("networkTopology") == topology


def test_only_what_differs_is_changed_and_what_others_wrote_stays() -> None:
    wanted = group_of(pod([RS]), [{"volcano.sh/a": "1"}])
    stored = msgspec.convert({**wanted, "apiVersion": "x", "kind": "PodGroup"}, PodGroup)
    stored.metadata.annotations["written/by-others"] = "1"
    stored.spec.queue = "default"
    assert changes(stored, wanted) == {}
    larger = group_of(pod([RS], spec={"containers": [{"resources": {"requests": {"cpu": "2"}}}]}))
    assert set(changes(stored, larger)) == {"spec"}
    assert set(changes(stored, larger)["spec"]) == {"minResources"}
    assert changes(stored, group_of(pod([RS]), [{"volcano.sh/a": "2"}])) == {
        "metadata": {"annotations": {"volcano.sh/a": "2"}}
    }
