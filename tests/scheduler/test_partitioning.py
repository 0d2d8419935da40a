"""Several schedulers: each has its part of the cluster, and together they have all of it."""

from __future__ import annotations

import pytest

from stromboli.api.types.meta import OwnerReference
from stromboli.daemon.flags import BadFlag
from stromboli.scheduler.mirror.cluster_watches import (
    HashRing,
    by_hash,
    by_label,
    idle_members,
    parse_selectors,
)
from tests.manifests import decoded, group, native_group, node, pod


def test_only_nodes_with_one_of_the_labels_are_ours() -> None:
    wanted = by_label(parse_selectors(["pool:gpu", " zone : a ", "bad", "worse:"]))
    assert wanted(decoded(node("n", labels={"pool": "gpu"})))
    assert wanted(decoded(node("n", labels={"zone": "a"})))
    assert not wanted(decoded(node("n", labels={"pool": "cpu"})))
    assert wanted(decoded(pod("p")))
    assert by_label(parse_selectors(["bad"]))(decoded(node("n")))


def environment(me: int) -> dict[str, str]:
    return {
        "MULTI_SCHEDULER_ENABLE": "true",
        "SCHEDULER_NUM": "3",
        "SCHEDULER_POD_NAME": f"volcano-scheduler-{me}",
    }


def test_every_node_and_every_job_has_exactly_one_scheduler() -> None:
    parts = [by_hash(environment(me), ["volcano"]) for me in range(3)]
    for number in range(200):
        assert sum(part(decoded(node(f"node-{number}"))) for part in parts) == 1
        assert sum(part(decoded(group(f"job-{number}"))) for part in parts) == 1
    owners = [sum(part(decoded(node(f"node-{n}"))) for n in range(200)) for part in parts]
    assert all(owners)


def test_pods_go_with_their_owner_and_bound_pods_with_their_node() -> None:
    parts = [by_hash(environment(me), ["volcano"]) for me in range(3)]
    owned = {"ownerReferences": [OwnerReference(kind="Job", name="x")]}
    pods = [decoded(pod(f"x-{n}", metadata=owned)) for n in range(9)]
    assert [sum(map(part, pods)) for part in parts].count(9) == 1
    foreign = decoded(pod("y", scheduler="other", on="node-7", phase="Pending"))
    assert [part(foreign) for part in parts] == [part(decoded(node("node-7"))) for part in parts]


def test_a_native_group_is_where_its_pods_are() -> None:
    parts = [by_hash(environment(me), ["volcano"]) for me in range(3)]
    for number in range(30):
        pods = [decoded(pod(f"x-{n}", native=f"g{number}")) for n in range(3)]
        objects = [decoded(native_group(f"g{number}")), *pods]
        assert sorted(sum(map(part, objects)) for part in parts) == [0, 0, 4]


def test_members_that_elect_one_of_them_are_warned() -> None:
    members = {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_NUM": "2", "SCHEDULER_POD_NAME": "scheduler-1"}
    assert "--leader-elect=false" in idle_members(members, "volcano")
    assert not idle_members(members, "volcano-scheduler-1")
    assert not idle_members({}, "volcano")


def test_the_ring_is_volcanos() -> None:
    """Twenty places per member; the owner is at the first place strictly behind the key's hash."""
    ring = HashRing(["a-0", "a-1"])
    assert {ring.owner(f"k{n}") for n in range(50)} == {"a-0", "a-1"}
    with pytest.raises(BadFlag, match="StatefulSet"):
        by_hash({**environment(0), "SCHEDULER_POD_NAME": "volcano"}, ["volcano"])
