"""HyperNodes of manifests as a tree: which of them schedulers would leave out, and whose tiers are odd."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.schemas.schema_problems import Problem, sentence
from stromboli.api.types.scheduling import HyperNode
from stromboli.model.intake.object_intake import Intake

_FIELDS = {
    names.EVENT_TIER_NOT_ABOVE_MEMBERS: "spec.tier",
    names.EVENT_AMBIGUOUS_TIER_NAME: "spec.tierName",
}
"""Of what is odd, the fields; members that are not there may well exist in the cluster."""


class HyperNodeCheck:
    """The tree that some HyperNodes form; those that are malformed take no part in it."""

    def __init__(self, contents: Iterable[dict[str, Any]]):
        intake = Intake()
        for content in contents:
            try:
                intake.put(decode_as(HyperNode, msgspec.json.encode(content)))
            except (BadObject, RecursionError):
                continue  # reported as what it is
        intake.cluster.settle()
        self._tree = intake.cluster.hyper_nodes

    def problems(self, name: str) -> Iterator[Problem]:
        """Why schedulers would leave a HyperNode out, for its place in the tree."""
        problem = self._tree.problems.get(name)
        if problem and not self._tree.membership.declared[name].fault:
            text = f"schedulers would leave it out: {problem}"
            yield sentence(text, "spec.members")

    def warnings(self, name: str) -> Iterator[Problem]:
        """What is odd about the tier of a HyperNode."""
        for reason, text in self._tree.notices(name).items():
            if reason in _FIELDS:
                yield sentence(text, _FIELDS[reason])
