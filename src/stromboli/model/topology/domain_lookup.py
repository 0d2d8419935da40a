"""Which domains have which nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.topology.domain_sums import RowGroups

if TYPE_CHECKING:
    from stromboli.model.topology.domain import Domain


class DomainLookup:
    """Domains by their nodes; valid as long as domains and columns keep their layout."""

    def __init__(self, domains: Iterable[Domain], count: int):
        self._domains = sorted(domains, key=lambda domain: (domain.tier, domain.name))
        self._groups = RowGroups([domain.rows for domain in self._domains], count)

    def containing(self, rows: Iterable[int]) -> list[Domain]:
        """The domains that have all of these nodes, the lowest first."""
        wanted = set(rows)
        if not wanted:
            return list(self._domains)
        owners = np.concatenate([self._groups.of_row(row) for row in wanted])
        having_all = np.bincount(owners, minlength=len(self._domains)) == len(wanted)
        return [self._domains[place] for place in np.flatnonzero(having_all)]
