"""What a StatefulSet does next, by tables of pods."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.statefulset.reconcile import (
    BURST,
    BYTES_AT_ONCE,
    Outcome,
    reconcile,
)
from stromboli.controllers.workloads.statefulset.set_actions import (
    Blocked,
    Conflict,
    CreateClaims,
    CreatePod,
    DeletePod,
    UpdateClaims,
    UpdatePod,
)
from stromboli.controllers.workloads.statefulset.set_status import Revision, Revisions
from stromboli.controllers.workloads.statefulset.stateful_set import StatefulSet, ordinal_of
from tests.controllers.workloads.workload_objects import NOW, TEMPLATE, claim, owner, pod, stateful_set

OLD = {**TEMPLATE, "spec": {"containers": [{"name": "main", "image": "old"}]}}
REVISIONS = Revisions(Revision("old", OLD), Revision("new", TEMPLATE))
SAME = Revisions(Revision("new", TEMPLATE), Revision("new", TEMPLATE))
PARALLEL = {"podManagementPolicy": "Parallel"}
DATA = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}
GOING = {"whenDeleted": "Delete", "whenScaled": "Delete"}


def rolling(**options: Any) -> Any:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": options}}


def pods_of(text: str) -> list[Pod]:
    """`0 1:unready 2:ready:old`: ordinal, state and revision."""
    pods = []
    for word in text.split():
        ordinal, state, revision = (word.split(":") + ["ready", "new"][word.count(":") :])[:3]
        name = f"web-{ordinal}"
        pods.append(pod(name, state, revision, **{"statefulset.kubernetes.io/pod-name": name}))
    return pods


def run(owned: StatefulSet, pods: str, revisions: Revisions = REVISIONS, claims: Any = ()) -> Outcome:
    stored = {each.name: each for each in claims}
    return reconcile(owned, revisions, pods_of(pods), stored.get, NOW)


def words(outcome: Outcome) -> str:
    """`+1/new` is created with that revision, `-2` deleted, `~0` changed."""
    said = []
    for action in outcome.actions:
        match action:
            case CreatePod():
                meta = action.pod["metadata"]
                revision = meta["labels"]["controller-revision-hash"]
                said.append(f"+{meta['name'].removeprefix('web-')}/{revision}")
            case DeletePod():
                said.append(f"-{action.pod.name.removeprefix('web-')}")
            case UpdatePod():
                said.append(f"~{action.pod.name.removeprefix('web-')}")
            case _:
                said.append(type(action).__name__)
    return " ".join(said)


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({}, "", "+0/new"),
        ({}, "0:Pending", ""),
        ({}, "0:unready", ""),
        ({}, "0", "+1/new"),
        ({}, "0-deleted", "+0/new"),  # a name that is not the set's
        ({}, "0:ready-deleted 1 2", ""),
        ({}, "1 2", "+0/new"),
        ({}, "0 1:unready", ""),
        ({}, "0:Failed 1 2", "-0"),
        ({}, "0:Succeeded 1 2", "-0"),
        ({}, "0:Failed-deleted 1 2", ""),
        ({}, "0 1 2", ""),
        ({}, "0 1 2 3 4", "-4"),
        ({}, "0 1 2 3 4:ready-deleted", ""),
        ({}, "0 1 2:unready 3 4", ""),
        ({}, "0 1 2 3 4:unready", "-4"),  # the first that is not available
        ({}, "0 1 2 3:unready 4:unready", ""),
        ({}, "0 1 2 3:unready 4", "-4"),
        ({"minReadySeconds": 60}, "0:fresh", ""),
        ({"minReadySeconds": 60}, "0", "+1/new"),
        ({"ordinals": {"start": 5}, "replicas": 2}, "5", "+6/new"),
        ({"ordinals": {"start": 5}, "replicas": 1}, "5 0 6", "-6"),
        (PARALLEL, "", "+0/new +1/new +2/new"),
        (PARALLEL, "1:unready", "+0/new +2/new"),
        (PARALLEL, "0:Failed 1 2", "-0"),
        (PARALLEL, "0 1 2 3:unready 4", "-4 -3"),
        (PARALLEL | {"replicas": 0}, "0 1", "-1 -0"),
    ],
)
def test_pods_are_created_and_deleted(spec: Any, pods: str, expected: str) -> None:
    assert words(run(stateful_set(**spec), pods, SAME)) == expected


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({}, "0:ready:old 1:ready:old 2:ready:old", "-2"),
        ({}, "0:ready:old 1:ready:old 2", "-1"),
        ({}, "0:ready:old 1:ready:old 2:unready", ""),
        ({}, "0:ready:old 1:ready:old 2:ready-deleted:old", ""),
        ({}, "0:ready:old 1:ready:old", "+2/new"),
        ({}, "0:unready:old 1 2", ""),  # in order nothing replaces a broken pod
        (PARALLEL, "0:unready:old 1 2", "-0"),
        (PARALLEL, "0:ready:old 1:unready 2", ""),
        (PARALLEL, "0:ready:old 2", "+1/new"),
        (rolling(partition=2), "0:ready:old 1:ready:old 2:ready:old", "-2"),
        (rolling(partition=2), "0:ready:old 1:ready:old 2", ""),
        (rolling(partition=2), "1:ready:old 2", "+0/old"),
        (rolling(partition=2), "0:ready:old 1:ready:old", "+2/new"),
        (rolling(partition=9), "", "+0/old"),
        (rolling(maxUnavailable=2), "0:ready:old 1:ready:old 2:ready:old", "-2 -1"),
        (rolling(maxUnavailable="67%"), "0:ready:old 1:ready:old 2:ready:old", "-2 -1"),
        (rolling(maxUnavailable="1%"), "0:ready:old 1:ready:old 2:ready:old", "-2"),
        (rolling(maxUnavailable=2, partition=2), "0:ready:old 1:ready:old 2:ready:old", "-2"),
        (PARALLEL | rolling(maxUnavailable=2), "0:ready:old 1:ready:old 2:unready", "-1"),
        (PARALLEL | rolling(maxUnavailable=1), "0:unready:old 1:ready:old 2:ready:old", "-0"),
        (PARALLEL | rolling(maxUnavailable=2), "0:unready:old 1:ready:old 2:ready:old", "-0 -2"),
        ({"updateStrategy": {"type": "OnDelete"}}, "0:ready:old 1:ready:old 2:ready:old", ""),
        ({"updateStrategy": {"type": "OnDelete"}}, "0:ready:old 1:ready:old", "+2/new"),
    ],
)
def test_pods_of_another_revision_are_replaced(spec: Any, pods: str, expected: str) -> None:
    assert words(run(stateful_set(**spec), pods)) == expected


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_set_of_far_too_many_pods_takes_a_step_at_a_time(policy: str) -> None:
    huge = stateful_set(2**31 - 1, podManagementPolicy=policy, **rolling(maxUnavailable=1))
    assert len(run(huge, "").actions) == (BURST if policy == "Parallel" else 1)


def test_large_pods_are_made_a_few_at_a_time() -> None:
    environment = [{"name": "LARGE", "value": "x" * (BYTES_AT_ONCE // 4)}]
    large = {**TEMPLATE, "spec": {"containers": [{"name": "main", "image": "one", "env": environment}]}}
    revisions = Revisions(Revision("new", large), Revision("new", large))
    outcome = run(stateful_set(1000, **PARALLEL), "", revisions)
    assert len(outcome.actions) == 4


def test_a_pod_has_the_template_of_its_revision() -> None:
    outcome = run(stateful_set(1, **rolling(partition=1)), "")
    (action,) = outcome.actions
    assert isinstance(action, CreatePod)
    assert action.pod["spec"]["containers"][0]["image"] == "old"


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        ({}, "", {"replicas": 0, "currentRevision": "old", "updateRevision": "new"}),
        (
            {},
            "0 1:unready 2:Pending",
            {"replicas": 3, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 3},
        ),
        ({"minReadySeconds": 60}, "0 1:fresh", {"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}),
        ({}, "0:ready:old 1:ready:old 2:ready:old", {"currentReplicas": 2, "updatedReplicas": 0}),
        (
            {},
            "0 1 2",
            {"currentReplicas": 3, "updatedReplicas": 3, "currentRevision": "new", "updateRevision": "new"},
        ),
        (
            {"updateStrategy": {"type": "OnDelete"}},
            "0 1 2",
            {"currentReplicas": 0, "updatedReplicas": 3, "currentRevision": "old"},
        ),
        ({}, "0 1 2:ready-deleted", {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 3}),
        ({}, "0 1 2 3", {"replicas": 4, "currentRevision": "old"}),
        ({}, "0 1 2 x", {"replicas": 3}),
    ],
)
def test_the_status_counts_pods(spec: Any, pods: str, expected: Any) -> None:
    status = run(stateful_set(**spec), pods).status
    shown = {
        "replicas": status.replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "currentReplicas": status.current_replicas,
        "updatedReplicas": status.updated_replicas,
        "currentRevision": status.current_revision,
        "updateRevision": status.update_revision,
    }
    assert {key: shown[key] for key in expected} == expected
    assert (status.observed_generation, status.collision_count) == (7, 0)


def test_a_set_that_is_being_deleted_only_counts() -> None:
    outcome = run(stateful_set(deleted=True), "0:Failed")
    assert (outcome.actions, outcome.status.replicas) == ([], 1)


def test_it_looks_again_when_a_ready_pod_becomes_available() -> None:
    assert run(stateful_set(minReadySeconds=60), "0:fresh").requeue_after == 60
    assert run(stateful_set(minReadySeconds=60), "0").requeue_after is None


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("web-0", 0),
        ("web-12", 12),
        ("web-a", None),
        ("web", None),
        ("web-x-1", None),
        ("other-1", None),
        ("web-99999999999", None),
    ],
)
def test_the_ordinal_is_in_the_name(name: str, ordinal: int | None) -> None:
    assert ordinal_of("web", name) == ordinal


# -- claims


def test_claims_are_made_before_the_pod_and_those_that_exist_are_used() -> None:
    (action,) = run(stateful_set(**DATA), "").actions
    assert isinstance(action, CreatePod)
    (made,) = action.claims
    assert made["metadata"]["name"] == "data-web-0"
    assert made["metadata"]["labels"] == {"app": "web"}
    (action,) = run(stateful_set(**DATA), "", claims=[claim("data-web-0")]).actions
    assert isinstance(action, CreatePod)
    assert action.claims == ()


def test_a_waiting_pod_gets_claims_that_it_lacks() -> None:
    (action,) = run(stateful_set(**DATA), "0:Pending").actions
    assert isinstance(action, CreateClaims)
    assert action.pod == "web-0"


def test_a_claim_that_is_being_deleted_is_waited_for() -> None:
    going = [claim("data-web-0", deleted=True)]
    for pods in ("", "0:Pending"):
        (action,) = run(stateful_set(**DATA), pods, claims=going).actions
        assert action == Blocked("web-0", "pvc data-web-0 is being deleted")


def test_a_claim_of_an_earlier_pod_is_waited_for_if_it_goes_with_it() -> None:
    earlier = [claim("data-web-0", owner("Pod", "web-0", "gone"))]
    policy = {"persistentVolumeClaimRetentionPolicy": GOING}
    assert run(stateful_set(**DATA, **policy), "", claims=earlier).actions == []
    assert words(run(stateful_set(**DATA), "", SAME, earlier)) == "+0/new"


SET, POD = owner("StatefulSet", "web", "set"), owner("Pod", "web-0", "uid-web-0")
FOREIGN = owner("Backup", "nightly", "b1")
PLAIN = owner("Backup", "nightly", "b1", controller=False)


@pytest.mark.parametrize(
    ("deleted", "scaled", "replicas", "before", "after"),
    [
        ("Retain", "Retain", 1, [], None),
        ("Retain", "Retain", 1, [SET], []),
        ("Retain", "Retain", 1, [SET, FOREIGN], ["Backup"]),
        ("Delete", "Retain", 1, [], ["StatefulSet"]),
        ("Delete", "Retain", 1, [SET], None),
        ("Delete", "Retain", 0, [SET], None),
        ("Delete", "Retain", 1, [PLAIN], ["Backup", "StatefulSet"]),
        ("Delete", "Retain", 1, [{**SET, "controller": False}], ["StatefulSet"]),
        ("Delete", "Retain", 1, [FOREIGN], None),
        ("Delete", "Retain", 1, [FOREIGN, SET], ["Backup"]),
        ("Delete", "Retain", 1, [{**SET, "uid": "gone"}], None),
        ("Retain", "Delete", 1, [], None),
        ("Retain", "Delete", 0, [], ["Pod"]),
        ("Retain", "Delete", 1, [POD], []),
        ("Delete", "Delete", 1, [], ["StatefulSet"]),
        ("Delete", "Delete", 0, [SET], ["Pod"]),
        ("Delete", "Delete", 0, [POD], None),
        ("Delete", "Delete", 1, [POD], ["StatefulSet"]),
    ],
)
def test_claims_are_owned_as_the_retention_policy_says(
    deleted: str, scaled: str, replicas: int, before: list[Any], after: list[str] | None
) -> None:
    policy = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}
    outcome = run(stateful_set(replicas, **DATA, **policy), "0", SAME, [claim("data-web-0", *before)])
    changes = [action for action in outcome.actions if isinstance(action, UpdateClaims | UpdatePod)]
    if after is None:
        assert changes == []
        return
    ((_, owners),) = changes[0].claims
    assert [reference["kind"] for reference in owners.references] == after


def test_the_claim_of_a_waiting_pod_is_changed_once() -> None:
    policy = {"persistentVolumeClaimRetentionPolicy": GOING}
    outcome = run(stateful_set(1, **PARALLEL, **DATA, **policy), "0:Pending", SAME, [claim("data-web-0")])
    assert words(outcome) == "UpdateClaims"


def test_a_claim_that_something_else_controls_is_told() -> None:
    policy = {"persistentVolumeClaimRetentionPolicy": GOING}
    first, second = run(stateful_set(1, **DATA, **policy), "", claims=[claim("data-web-0", FOREIGN)]).actions
    assert first == Conflict("data-web-0")
    assert isinstance(second, CreatePod)


def test_a_pod_without_its_identity_gets_it() -> None:
    bare = pod("web-0")
    outcome = reconcile(stateful_set(1), SAME, [bare], {}.get, NOW)
    labels = {"statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0"}
    assert outcome.actions == [UpdatePod(bare, labels, ())]
