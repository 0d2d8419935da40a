"""The past templates of StatefulSets and DaemonSets: which revision the present template is, and which are kept.

A ControllerRevision holds a strategic merge patch that replaces `spec.template`, which `kubectl rollout undo`
sends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stromboli.api.types.meta import Int64, Object
from stromboli.controllers.workloads.workload import Manifest, Workload, owner_reference, template_part
from stromboli.controllers.workloads.workload_pods import template_hash

NAME_BASE = 223
"""Characters of the owner's name that a revision's name begins with."""
_TEMPLATE = "spec.template"


class ControllerRevision(Object):
    """A template that an owner has, or had."""

    revision: Int64 = 0
    data: Any = None

    @property
    def template(self) -> Manifest:
        """The template of pods in it; an empty one if somebody wrote something else."""
        spec = self.data.get("spec") if isinstance(self.data, dict) else None
        template = spec.get("template") if isinstance(spec, dict) else None
        if not isinstance(template, dict):
            return {}
        return {key: value for key, value in template.items() if key != "$patch"}


@dataclass(frozen=True, slots=True)
class NextRevision:
    """Which revision the present template is to be: the number that it gets, and the revision if there is one."""

    number: int
    revision: ControllerRevision | None
    duplicates: tuple[ControllerRevision, ...] = ()
    """Further revisions with the same template."""

    @property
    def renumbered(self) -> bool:
        """Whether a revision of the past becomes the newest, as after `kubectl rollout undo`."""
        return self.revision is not None and self.revision.revision < self.number


def ordered(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """By number, the oldest first."""
    return sorted(revisions, key=_order)


def _order(revision: ControllerRevision) -> tuple[int, float, str]:
    return revision.revision, revision.metadata.created, revision.name


def next_revision(owner: Workload, revisions: Sequence[ControllerRevision]) -> NextRevision:
    """The revision of the owner's present template, of those that are there in order of their numbers."""
    data = template_patch(owner)
    equal = [revision for revision in revisions if revision.data == data]
    newest = max((revision.revision for revision in revisions if revision.data != data), default=0)
    if not equal:
        return NextRevision(newest + 1, None)
    return NextRevision(max(newest + 1, equal[-1].revision), equal[-1], tuple(equal[:-1]))


def template_patch(owner: Workload) -> Manifest:
    """What a revision of the present template holds."""
    return {"spec": {"template": {**owner.spec.template, "$patch": "replace"}}}


def new_revision(owner: Workload, number: int, collisions: int, hash_label: str) -> Manifest:
    """The manifest of a revision, with a name that follows from owner, template and earlier collisions of names."""
    end = template_hash(owner.spec.template, collisions or None)
    metadata = template_part(owner.spec.template, "metadata", _TEMPLATE)
    labels = template_part(metadata, "labels", f"{_TEMPLATE}.metadata")
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{owner.name[:NAME_BASE]}-{end}",
            "namespace": owner.namespace,
            "labels": {**labels, hash_label: end},
            "annotations": dict(owner.metadata.annotations),
            "ownerReferences": [owner_reference(owner)],
        },
        "data": msgspec.to_builtins(template_patch(owner), order="sorted"),
        "revision": number,
    }


def oldest(revisions: Sequence[ControllerRevision], excess: int) -> Sequence[ControllerRevision]:
    """So many revisions from the past, of those in order of their numbers."""
    return revisions[: max(0, excess)]
