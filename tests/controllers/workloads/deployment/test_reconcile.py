"""Single steps of a Deployment: what it writes, and what its conditions say."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.controllers.workloads.deployment.reconcile import Outcome, reconcile
from stromboli.controllers.workloads.workload_kinds import Deployment, ReplicaSet
from tests.controllers.workloads.replicated_objects import NOW, at, deployment, replica_set


def step(owner: Deployment, *sets: ReplicaSet, old_pods: bool = False) -> Outcome:
    return reconcile(owner, sets, old_pods, NOW)


def progress(outcome: Outcome) -> tuple[str, str]:
    return next(
        ((each.status, each.reason) for each in outcome.status.conditions if each.type == "Progressing"),
        ("", ""),
    )


def progressing(reason: str, since: float, status: str = "True") -> dict[str, Any]:
    times = {"lastUpdateTime": at(since), "lastTransitionTime": at(since)}
    return {"conditions": [{"type": "Progressing", "status": status, "reason": reason, **times}]}


def noted(name: str, replicas: int, available: int, image: str = "new", **more: Any) -> ReplicaSet:
    return replica_set(name, replicas, available, image, desired_replicas=str(replicas), **more)


def test_a_new_template_gets_a_replica_set() -> None:
    outcome = step(deployment(4), replica_set("old", 4, revision="3"))
    assert outcome.create is not None
    assert outcome.create["spec"]["replicas"] == 1
    assert outcome.revision == "4"
    assert progress(outcome) == ("True", "NewReplicaSetCreated")


def test_one_that_is_being_deleted_only_tells_its_status() -> None:
    owner = deployment(4)
    owner.metadata.deletion_timestamp = replica_set("x", 1, deleting=True).metadata.deletion_timestamp
    outcome = step(owner, replica_set("old", 4))
    assert (outcome.create, outcome.updates, outcome.delete) == (None, (), ())
    assert outcome.status.available_replicas == 4


def test_recreate_waits_for_sizes_statuses_and_pods() -> None:
    owner = deployment(2, strategy={"type": "Recreate"})
    first = step(owner, replica_set("old", 2))
    assert [(update.replica_set.name, update.size) for update in first.updates] == [("old", 0)]
    assert step(owner, replica_set("old", 0, status={"replicas": 1})).create is None
    assert step(owner, replica_set("old", 0), old_pods=True).create is None
    created = step(owner, replica_set("old", 0)).create
    assert created is not None
    assert created["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("before", "available", "expected", "again"),
    [
        (progressing("ReplicaSetUpdated", 100), 2, ("True", "NewReplicaSetAvailable"), None),
        (progressing("ReplicaSetUpdated", 100), 1, ("True", "ReplicaSetUpdated"), 601),
        (progressing("ReplicaSetUpdated", 700), 0, ("False", "ProgressDeadlineExceeded"), None),
        (progressing("ReplicaSetUpdated", 100), 0, ("True", "ReplicaSetUpdated"), 501),
        (progressing("NewReplicaSetAvailable", 9000), 0, ("True", "NewReplicaSetAvailable"), 1),
        (
            progressing("ProgressDeadlineExceeded", 700, "False"),
            0,
            ("False", "ProgressDeadlineExceeded"),
            None,
        ),
        (progressing("ProgressDeadlineExceeded", 700, "False"), 2, ("True", "NewReplicaSetAvailable"), None),
        ({}, 0, ("True", "FoundNewReplicaSet"), 601),
    ],
)
def test_progress_is_told_with_its_reason(
    before: Any, available: int, expected: tuple[str, str], again: float | None
) -> None:
    status = {"replicas": 2, "updatedReplicas": 2, "observedGeneration": 1, **before}
    outcome = step(deployment(2, status=status), noted("new", 2, available))
    assert progress(outcome) == expected
    assert outcome.requeue_after == again


def test_without_a_deadline_nothing_is_told_of_progress() -> None:
    for owner in (
        deployment(2, progressDeadlineSeconds=None),
        deployment(2, progressDeadlineSeconds=2**31 - 1),
    ):
        outcome = step(owner, noted("new", 2, 0))
        assert progress(outcome) == ("", "")
        assert outcome.requeue_after is None


def test_a_paused_deployment_is_scaled_and_does_not_roll_out() -> None:
    outcome = step(deployment(4, paused=True), replica_set("old", 2, desired_replicas="2"))
    assert outcome.create is None
    assert [(update.replica_set.name, update.size) for update in outcome.updates] == [("old", 4)]
    assert progress(outcome) == ("Unknown", "DeploymentPaused")
    paused = progressing("DeploymentPaused", 9000, "Unknown")
    status = {"replicas": 4, "updatedReplicas": 4, "observedGeneration": 1, **paused}
    resumed = step(deployment(4, status=status), noted("new", 4, 0))
    assert progress(resumed) == ("Unknown", "DeploymentResumed")


def test_old_replica_sets_go_beyond_the_limit_once_all_is_done_and_they_are_empty() -> None:
    done = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "observedGeneration": 1}
    old = [
        replica_set("r1", 0, revision="1", status={"replicas": 1}),
        replica_set("r2", 0, revision="2"),
        replica_set("r3", 0, revision="3"),
        replica_set("r4", 0, revision="4"),
    ]
    owner = deployment(1, status=done, revisionHistoryLimit=1)
    outcome = step(owner, *old, noted("new", 1, 1, revision="5"))
    assert [each.name for each in outcome.delete] == ["r2", "r3"]
    assert step(deployment(1, revisionHistoryLimit=1), *old, noted("new", 1, 0)).delete == ()


def test_a_failure_of_a_replica_set_is_one_of_the_deployment() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    new = noted("new", 2, 0, status={"conditions": [{**failure, "lastTransitionTime": at(5)}]})
    outcome = step(deployment(2), new)
    told = [each for each in outcome.status.conditions if each.type == "ReplicaFailure"]
    assert [(each.reason, each.message) for each in told] == [("FailedCreate", "quota")]
    again = deployment(2)
    again.status = outcome.status
    assert not [
        each for each in step(again, noted("new", 2, 0)).status.conditions if each.type == "ReplicaFailure"
    ]
