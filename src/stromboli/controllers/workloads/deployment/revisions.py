"""Which ReplicaSet has the present template of a Deployment, and the revisions that `kubectl rollout history` shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stromboli.controllers.workloads.workload import Manifest
from stromboli.controllers.workloads.workload_kinds import Deployment, ReplicaSet
from stromboli.controllers.workloads.workload_pods import (
    REVISION_ANNOTATION,
    REVISION_HISTORY,
    TEMPLATE_HASH,
    copied_annotations,
)

HISTORY_LENGTH = 2000
"""Characters of a ReplicaSet's list of earlier revisions: the first are left out."""
_NO_TIME = datetime.min.replace(tzinfo=UTC)


class Revisions(NamedTuple):
    """The ReplicaSets of a Deployment."""

    new: ReplicaSet | None
    """With the present template."""
    old: list[ReplicaSet]
    """From the oldest to the youngest."""

    @property
    def all(self) -> list[ReplicaSet]:
        return self.old if self.new is None else [*self.old, self.new]


def revisions_of(deployment: Deployment, replica_sets: Iterable[ReplicaSet]) -> Revisions:
    """Of several with the present template the oldest is the new one."""
    ordered = sorted(replica_sets, key=age_order)
    wanted = _without_hash(deployment.spec.template)
    new = next((each for each in ordered if _is_same(_without_hash(each.spec.template), wanted)), None)
    return Revisions(new, [each for each in ordered if each is not new])


def age_order(replica_set: ReplicaSet) -> tuple[datetime, str]:
    """The oldest first."""
    return replica_set.metadata.creation_timestamp or _NO_TIME, replica_set.name


def _without_hash(template: Manifest) -> Manifest:
    metadata = template.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(labels, dict):
        kept = {key: value for key, value in labels.items() if key != TEMPLATE_HASH}
        return {**template, "metadata": {**metadata, "labels": kept}}
    return template


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal, where what is empty counts as missing.

    Templates may be large, and most parts of two are equal: only where they differ is looked closer.
    """
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(_is_same(one.get(key), other.get(key)) for key in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return _is_empty(one) and _is_empty(other)


def _is_empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value == []


# -- numbers


def revision_number(replica_set: ReplicaSet) -> int | None:
    """0 if it has none yet, None if its annotation is no number."""
    text = replica_set.metadata.annotations.get(REVISION_ANNOTATION)
    if text is None:
        return 0
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def next_revision(old: Sequence[ReplicaSet]) -> int:
    return max((revision_number(each) or 0 for each in old), default=0) + 1


def oldest_revisions(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """In the order of their revisions."""
    return sorted(replica_sets, key=lambda each: (revision_number(each) or 0, age_order(each)))


def new_annotations(deployment: Deployment, replica_set: ReplicaSet, revision: int) -> dict[str, str]:
    """Annotations that the new ReplicaSet lacks: the Deployment's, and its revision if it is the latest now."""
    present = replica_set.metadata.annotations
    missing = {key: text for key, text in copied_annotations(deployment).items() if present.get(key) != text}
    number = revision_number(replica_set)
    if number is None or number >= revision:
        return missing
    missing[REVISION_ANNOTATION] = str(revision)
    if REVISION_ANNOTATION in present:  # the Deployment goes back to it
        missing[REVISION_HISTORY] = _history(present.get(REVISION_HISTORY, ""), present[REVISION_ANNOTATION])
    return missing


def _history(before: str, revision: str) -> str:
    revisions = [*(before.split(",") if before else ()), revision]
    while len(",".join(revisions)) > HISTORY_LENGTH and len(revisions) > 1:
        revisions.pop(0)
    return ",".join(revisions)
