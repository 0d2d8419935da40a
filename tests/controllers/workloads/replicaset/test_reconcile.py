"""How a ReplicaSet scales, and what its status says."""

from __future__ import annotations

import msgspec

from stromboli.controllers.workloads.replicaset.reconcile import BURST, scale, status
from tests.controllers.workloads.replicated_objects import NOW, pod, replica_set


def test_missing_pods_are_created_and_those_too_many_deleted() -> None:
    pods = [pod("a", ready=5), pod("b", node=""), pod("c", ready=5)]
    assert scale(replica_set("web", 5), pods, lambda: pods, NOW) == (2, [])
    assert scale(replica_set("web", 2), pods, lambda: pods, NOW) == (0, [pods[1]])
    assert scale(replica_set("web", 3), pods, lambda: pods, NOW) == (0, [])


def test_one_that_is_being_deleted_does_nothing() -> None:
    assert scale(replica_set("web", 5, deleting=True), [], list, NOW) == (0, [])


def test_a_sync_does_no_more_than_a_burst() -> None:
    assert scale(replica_set("web", 3 * BURST), [], list, NOW).create == BURST
    pods = [pod(f"p{number}") for number in range(BURST + 7)]
    assert len(scale(replica_set("web", 0), pods, lambda: pods, NOW).delete) == BURST


def test_the_status_counts_ready_available_and_fully_labelled_pods() -> None:
    owner = replica_set("web", 3)
    owner.spec.min_ready_seconds = 10
    active = [pod("a", ready=20), pod("b", ready=5), pod("c", labels={"app": "web", "more": "x"})]
    owner.spec.template["metadata"] = {"labels": {"app": "web", "more": "x"}}
    seen = status(owner, active, [pod("d")], None, NOW)
    assert (seen.replicas, seen.ready_replicas, seen.available_replicas) == (3, 2, 1)
    assert (seen.fully_labeled_replicas, seen.terminating_replicas) == (1, 1)
    assert seen.observed_generation == 1


def test_a_failure_stays_as_first_told_until_a_scaling_succeeds() -> None:
    owner = replica_set("web", 3)
    failed = status(owner, [], [], ValueError("quota"), NOW)
    (condition,) = failed.conditions
    assert (condition.type, condition.status, condition.reason) == ("ReplicaFailure", "True", "FailedCreate")
    assert condition.message == "quota"
    owner.status = failed
    assert status(owner, [], [], ValueError("other"), NOW + 9).conditions == (condition,)
    assert status(owner, [], [], None, NOW + 9).conditions == ()
    smaller = replica_set("web", 0)
    (condition,) = status(smaller, [pod("a")], [], ValueError("no"), NOW).conditions
    assert condition.reason == "FailedDelete"


def test_a_status_is_written_as_kubernetes_names_it() -> None:
    seen = status(replica_set("web", 1), [pod("a", ready=5)], None, None, NOW)
    assert msgspec.to_builtins(seen) == {
        "replicas": 1,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "observedGeneration": 1,
    }
