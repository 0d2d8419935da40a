"""The nodes on which a pod's delayed claims can be bound, to existing volumes or to new ones (spec 04 2.11).

Claims take volumes one after the other, the smallest claim first and for each the smallest volume, without
backtracking. One claim only needs the number of volumes that each node reaches. Several claims need the same, except on
nodes with so few volumes that earlier claims may take those of later ones: these nodes are tried one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.model.volumes.free_volumes import MAX_KINDS, MAX_LISTED
from stromboli.model.volumes.volume_reach import nodes_with_affinity

if TYPE_CHECKING:
    from stromboli.api.types.storage import StorageClass, TopologyTerm
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Bools, Columns, Ints, Node
    from stromboli.model.volumes.claim_kind import DelayedClaim
    from stromboli.model.volumes.free_volumes import KindVolumes
    from stromboli.model.volumes.volume_ledger import VolumeLedger


MAX_STEPS = 1_000_000
"""Maximum volume checks for a pod with several claims; nodes that would need more are left out."""


class Matching(NamedTuple):
    """The nodes on which claims can be bound."""

    bindable: Bools
    """Nodes on which each claim has a volume, or one could be provisioned there."""
    enough: Bools
    """Nodes with enough storage for what has to be provisioned."""


class ClaimMatching:
    """Matches claims with volumes and storage."""

    def __init__(
        self, ledger: VolumeLedger, objects: LookupObjects, columns: Columns, nodes: dict[str, Node]
    ):
        self._ledger = ledger
        self._objects = objects
        self._columns = columns
        self._nodes = nodes
        self._topologies: dict[str, tuple[tuple[int, int], Bools]] = {}

    # -- all nodes at once

    def match(self, claims: tuple[DelayedClaim, ...]) -> Matching:
        """The nodes on which all of a pod's claims can be bound."""
        count = len(self._columns)
        bindable = np.ones(count, dtype=bool)
        if not self._can_list(claims):
            return Matching(~bindable, bindable)
        provisioned: dict[str, _Amounts] = {}
        unsure = np.zeros(count, dtype=bool)
        earlier: dict[str, int] = {}
        for claim in claims:
            name, request = claim.kind.storage_class, claim.kind.request
            if claim.volume:
                bindable &= self._reaching(claim.volume)
                continue
            amounts = provisioned.setdefault(name, _Amounts(count))
            if claim.node:
                bindable &= self._only(claim.node) & self._provisionable(name)
                amounts.add(request, 0, np.ones(count, dtype=bool))
                continue
            volumes = self._ledger.free.serving(claim.kind)
            counts = volumes.counts(request)
            without = counts == 0
            unsure |= ~without & (counts <= earlier.get(name, 0))
            earlier[name] = earlier.get(name, 0) + bool(len(volumes))
            if without.any():
                bindable &= ~without | self._provisionable(name)
                amounts.add(request, request, without)
        enough = np.ones(count, dtype=bool)
        for name, amounts in provisioned.items():
            if self._reports_capacity(name):
                enough &= ~amounts.needed | self._ledger.capacity.of_class(name).enough(
                    amounts.largest, amounts.total
                )
        if unsure.any():
            self._try_rows(claims, np.flatnonzero(unsure & bindable), Matching(bindable, enough))
        return Matching(bindable, enough)

    def _try_rows(self, claims: tuple[DelayedClaim, ...], rows: Ints, matching: Matching) -> None:
        """Try nodes one by one; if all nodes reach the same volumes, one of them is enough."""
        if len(rows) and all(self._ledger.free.serving(claim.kind).reached_alike for claim in claims):
            choices = self.choose(claims, int(rows[0]))
            if choices is not None and all(choices):
                return
        tried = max(MAX_STEPS // len(claims) ** 2, 1)
        matching.bindable[rows[tried:]] = False
        for row in rows[:tried].tolist():
            matching.bindable[row], matching.enough[row] = self._fits_on(claims, row)

    def _can_list(self, claims: tuple[DelayedClaim, ...]) -> bool:
        """Whether the volumes of all kinds of claims can be listed side by side; for a single kind they always can."""
        kinds = {claim.kind.of_any_size for claim in claims if not claim.volume and not claim.node}
        listed = sum(self._ledger.free.count(kind.storage_class) for kind in kinds)
        return len(kinds) <= 1 or (len(kinds) <= MAX_KINDS and listed <= MAX_LISTED)

    def _only(self, node: str) -> Bools:
        chosen = np.zeros(len(self._columns), dtype=bool)
        known = self._nodes.get(node)
        if known is not None and known.row >= 0:
            chosen[known.row] = True
        return chosen

    def _reaching(self, name: str) -> Bools:
        volume = self._objects.volumes.get(name)
        if volume is None:
            return np.zeros(len(self._columns), dtype=bool)
        return nodes_with_affinity(self._columns, self._objects, volume)

    def _provisionable(self, name: str) -> Bools:
        """Nodes on which a class may provision volumes."""
        stamp = (self._columns.objects, self._ledger.objects_version)
        known = self._topologies.get(name)
        if known is None or known[0] != stamp:
            storage_class = self._objects.storage_classes.get(name)
            known = self._topologies[name] = (stamp, _allowed(self._columns, storage_class))
        return known[1]

    def _reports_capacity(self, name: str) -> bool:
        """Whether the driver of a class reports how much it can still provision."""
        storage_class = self._objects.storage_classes.get(name)
        driver = self._objects.drivers.get(storage_class.provisioner) if storage_class is not None else None
        return driver is not None and driver.spec.storage_capacity

    # -- one node

    def _fits_on(self, claims: tuple[DelayedClaim, ...], row: int) -> tuple[bool, bool]:
        """The same for one node: whether the claims can be bound there, and whether storage is enough."""
        choices = self.choose(claims, row)
        if choices is None:
            return False, True
        largest: dict[str, int] = {}
        total: dict[str, int] = {}
        for claim, volume in zip(claims, choices, strict=True):
            if not volume:
                name, request = claim.kind.storage_class, claim.kind.request
                largest[name] = max(largest.get(name, 0), request)
                total[name] = total.get(name, 0) + (0 if claim.node else request)
        return True, all(
            not self._reports_capacity(name)
            or self._ledger.capacity.of_class(name).enough_on(row, largest[name], total[name])
            for name in largest
        )

    def choose(self, claims: tuple[DelayedClaim, ...], row: int) -> list[str] | None:
        """The volumes for a pod's claims on a node, empty if one is provisioned; none if a claim has neither."""
        choices: list[str] = []
        chosen: set[str] = set()
        for claim in claims:
            volume = claim.volume
            if not claim.volume and not claim.node:
                volumes: KindVolumes = self._ledger.free.serving(claim.kind)
                volume = volumes.smallest(row, claim.kind.request, chosen)
                if not volume and not self._provisionable(claim.kind.storage_class)[row]:
                    return None
            choices.append(volume)
            chosen.add(volume)
        return choices


class _Amounts:
    """The volumes to provision of a class, node by node."""

    def __init__(self, count: int):
        self.largest: Ints = np.zeros(count, dtype=np.int64)
        """The largest volume."""
        self.total: Ints = np.zeros(count, dtype=np.int64)
        """All volumes that are not promised already, in total."""
        self.needed: Bools = np.zeros(count, dtype=bool)

    def add(self, largest: int, amount: int, where: Bools) -> None:
        self.largest[where] = np.maximum(self.largest[where], largest)
        self.total[where] += amount
        self.needed |= where


def _allowed(columns: Columns, storage_class: StorageClass | None) -> Bools:
    """Nodes on which a class may provision: none without a provisioner, all without allowed topologies."""
    if storage_class is None or storage_class.provisioner in ("", names.NO_PROVISIONER):
        return np.zeros(len(columns), dtype=bool)
    if not storage_class.allowed_topologies:
        return np.ones(len(columns), dtype=bool)
    allowed = np.zeros(len(columns), dtype=bool)
    for term in storage_class.allowed_topologies:
        allowed |= _within(columns, term)
    return allowed


def _within(columns: Columns, term: TopologyTerm) -> Bools:
    """Nodes with one of the values of every label of a term; a term without labels has none."""
    matching = np.full(len(columns), bool(term.match_label_expressions))
    for expression in term.match_label_expressions:
        codes, values = columns.label_codes(expression.key)
        matching &= np.isin(codes, [values[value] for value in expression.values if value in values])
    return matching
