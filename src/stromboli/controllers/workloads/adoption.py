"""Which objects an owner controls, as Kubernetes decides: by the controller reference first, then by labels.

Objects without a controller that the selector matches are adopted, own ones that it no longer matches are released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector, Object
from stromboli.controllers.owner_references import controller_of
from stromboli.controllers.workloads.workload import Workload, owner_reference

Kind = TypeVar("Kind", bound=Object)


class Claims(NamedTuple, Generic[Kind]):
    """What is to be done with the objects that an owner has, or might have."""

    kept: list[Kind]
    adopted: list[Kind]
    """They get a reference to the owner."""
    released: list[Kind]
    """They lose theirs."""


def claims(
    owner: Workload,
    selector: LabelSelector | None,
    objects: Iterable[Kind],
    is_member: Callable[[Kind], bool] = lambda obj: True,
) -> Claims[Kind]:
    """Nothing changes hands while the owner is being deleted, and nothing that is being deleted is adopted.

    `is_member` is what an object must be besides matching the selector.
    """
    decided: Claims[Kind] = Claims([], [], [])
    owner_stays = owner.metadata.deletion_timestamp is None
    for obj in objects:
        controller = controller_of(obj)
        if controller is not None and controller.uid != owner.metadata.uid:
            continue
        matches = matches_labels(selector, obj.metadata.labels) and is_member(obj)
        if controller is None:
            if matches and owner_stays and obj.metadata.deletion_timestamp is None:
                decided.adopted.append(obj)
        elif matches:
            decided.kept.append(obj)
        elif owner_stays:
            decided.released.append(obj)
    return decided


def adoption_patch(owner: Workload) -> dict[str, Any]:
    """A strategic merge patch that adds the controller reference."""
    return {"metadata": {"ownerReferences": [owner_reference(owner)]}}


def release_patch(owner: Workload) -> dict[str, Any]:
    """A strategic merge patch that removes the references to the owner."""
    return {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner.metadata.uid}]}}
