"""Which domains have which nodes, and sums over them of any numbers by node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.topology.domain_sums import RowGroups

if TYPE_CHECKING:
    from stromboli.model.node_columns import Ints
    from stromboli.model.topology.domain import Domain


class DomainLookup:
    """Domains by their nodes; valid as long as domains and columns keep their layout."""

    def __init__(self, domains: Iterable[Domain], count: int):
        self.domains = sorted(domains, key=lambda domain: (domain.tier, domain.name))
        """The lowest first."""
        self.place = {domain: place for place, domain in enumerate(self.domains)}
        """The place of each domain among them."""
        self._groups = RowGroups([domain.rows for domain in self.domains], count)

    def containing(self, rows: Iterable[int]) -> list[Domain]:
        """The domains that have all of these nodes, the lowest first."""
        wanted = set(rows)
        if not wanted:
            return list(self.domains)
        owners = np.concatenate([self._groups.of_row(row) for row in wanted])
        having_all = np.bincount(owners, minlength=len(self.domains)) == len(wanted)
        return [self.domains[place] for place in np.flatnonzero(having_all)]

    def sums(self, values: Ints) -> Ints:
        """Values by node summed over each domain."""
        return self._groups.sums(values)
