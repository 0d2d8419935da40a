"""Which objects an owner keeps, adopts and releases."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.adoption import claims
from tests.controllers.workloads.replicated_objects import LABELS, at, pod, replica_set

OTHER = {"app": "other"}


def owned_by(uid: str) -> list[Any]:
    return [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": uid, "controller": True}]


def candidate(owner: str = "", labels: dict[str, str] = LABELS, going: bool = False) -> Pod:
    meta: dict[str, Any] = {"labels": labels, "ownerReferences": owned_by(owner) if owner else []}
    if going:
        meta["deletionTimestamp"] = at(0)
    return pod("p", **meta)


@pytest.mark.parametrize(
    ("obj", "deleting", "expected"),
    [
        (candidate("uid-web"), False, "kept"),
        (candidate("uid-web", going=True), False, "kept"),
        (candidate("uid-web"), True, "kept"),
        (candidate("uid-web", OTHER), False, "released"),
        (candidate("uid-web", OTHER), True, ""),
        (candidate("uid-other"), False, ""),
        (candidate(), False, "adopted"),
        (candidate(labels=OTHER), False, ""),
        (candidate(going=True), False, ""),
        (candidate(), True, ""),
    ],
)
def test_the_controller_reference_decides_first_and_then_the_labels(
    obj: Pod, deleting: bool, expected: str
) -> None:
    owner = replica_set("web", 1, deleting=deleting)
    decided = claims(owner, owner.selector, [obj])._asdict()
    assert [name for name, objects in decided.items() if objects] == ([expected] if expected else [])
