"""Which ReplicaSet is the new one, and its revision."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.controllers.workloads.deployment.revisions import (
    HISTORY_LENGTH,
    new_annotations,
    next_revision,
    oldest_revisions,
    revisions_of,
)
from tests.controllers.workloads.replicated_objects import deployment, replica_set

REVISION, HISTORY = "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"


def test_the_oldest_with_the_present_template_is_new_whatever_its_hash() -> None:
    sets = [
        replica_set("a", 1, age=30),
        replica_set("b", 1, image="new", age=10),
        replica_set("c", 1, image="new", age=20),
    ]
    sets[2].spec.template["metadata"] = {
        "labels": {"app": "web", "pod-template-hash": "x"},
        "creationTimestamp": None,
    }
    revisions = revisions_of(deployment(1), sets)
    assert revisions.new is sets[2]
    assert [each.name for each in revisions.old] == ["a", "b"]
    assert revisions_of(deployment(1, "other"), sets).new is None


EMPTY: Any = [
    ({"volumes": []}, {}, True),
    ({"securityContext": {"seLinuxOptions": {}}}, {"volumes": None}, True),
    ({"securityContext": {}}, {"securityContext": []}, True),
    ({"containers": [{"args": []}]}, {"containers": [{}]}, True),
    ({"containers": [{}]}, {"containers": []}, False),
    ({"containers": [{}, {}]}, {"containers": [{}]}, False),
    ({"hostname": ""}, {}, False),
    ({"replicas": 0}, {}, False),
]


@pytest.mark.parametrize(("one", "other", "same"), EMPTY)
def test_what_is_empty_makes_no_other_template(one: Any, other: Any, same: bool) -> None:
    owner, candidate = deployment(1), replica_set("a", 1)
    owner.spec.template, candidate.spec.template = {"spec": one}, {"spec": other}
    assert (revisions_of(owner, [candidate]).new is candidate) == same
    owner.spec.template, candidate.spec.template = {"spec": other}, {"spec": one}
    assert (revisions_of(owner, [candidate]).new is candidate) == same


def test_the_next_revision_follows_the_highest_and_bad_ones_do_not_count() -> None:
    old = [replica_set("a", 0, revision="7"), replica_set("b", 0, revision="x"), replica_set("c", 0)]
    assert next_revision(old) == 8
    assert next_revision([]) == 1
    assert [each.name for each in oldest_revisions(old)] == ["b", "c", "a"]


def test_a_replica_set_that_comes_back_notes_its_earlier_revisions() -> None:
    owner = deployment(1)
    owner.metadata.annotations = {"team": "a", REVISION: "4"}
    back = replica_set("a", 0, revision="2", revision_history="1")
    assert new_annotations(owner, back, 5) == {"team": "a", REVISION: "5", HISTORY: "1,2"}
    assert new_annotations(owner, replica_set("a", 0), 5) == {"team": "a", REVISION: "5"}
    assert new_annotations(owner, replica_set("a", 0, revision="9"), 5) == {"team": "a"}


def test_the_list_of_earlier_revisions_is_bounded() -> None:
    before = ",".join(str(number) for number in range(1000, 1400))
    back = replica_set("a", 0, revision="1400", revision_history=before)
    noted = new_annotations(deployment(1), back, 1401)[HISTORY]
    assert len(noted) <= HISTORY_LENGTH
    assert noted.endswith(",1399,1400")
