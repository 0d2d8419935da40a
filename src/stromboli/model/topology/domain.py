"""Domains: named sets of nodes to which a gang may be confined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stromboli.model.node_columns import Bools, Columns, Ints


@dataclass(slots=True, eq=False, repr=False)
class Domain:
    """Nodes below one switch: a HyperNode, or the whole cluster; the lower its tier, the closer its nodes."""

    name: str
    """The name of its HyperNode; unique in the tree."""
    title: str = field(default="", kw_only=True)
    """Its unique name in messages: the value of the label from which it was discovered, else its name."""
    tier: int
    """How far apart its nodes may be: the tier of its HyperNode."""
    tier_name: str = ""
    """The name of the tier, if it has any."""
    parent: Domain | None = None
    """The domain that contains it; none for the top."""
    children: list[Domain] = field(default_factory=list)
    """The domains that it consists of, by name."""
    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The places of its nodes in the columns, ascending."""

    def __post_init__(self) -> None:
        self.title = self.title or self.name

    def ancestors(self) -> Iterator[Domain]:
        """The domain itself, its parent, and so on up to the top."""
        domain: Domain | None = self
        while domain is not None:
            yield domain
            domain = domain.parent

    def contains(self, other: Domain) -> bool:
        """Whether another domain is this domain or below it."""
        return any(ancestor is self for ancestor in other.ancestors())

    def mask(self, count: int) -> Bools:
        """Its nodes as a mask of a given length, for `session.place`."""
        inside = np.zeros(count, dtype=bool)
        inside[self.rows] = True
        return inside

    def __repr__(self) -> str:
        return f"Domain({self.name})"


# -- domains by a label of nodes: the nodes that share a value of it, as the topology of a native group requests


Floats = NDArray[np.float64]
LABEL_TIER = -1
"""The tier of the domains of a label: below those of HyperNodes, which do not consist of them."""


class LabelDomains:
    """The domains of a label; valid until the object of a node changes."""

    def __init__(self, columns: Columns, key: str):
        codes, values = columns.label_codes(key)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(values) + 1))
        self._codes = codes + 1  # nodes without the label come first
        self.by_value: Mapping[str, Domain] = {
            value: Domain(f"{key}={value}", LABEL_TIER, rows=order[bounds[code] : bounds[code + 1]])
            for value, code in values.items()
        }
        """The domains by the value of the label, in the order of their first nodes."""
        self.count = len(self.by_value)

    def sums(self, values: NDArray[Any]) -> Floats:
        """Values by node summed over each domain, in the order of the domains."""
        sums: Floats = np.bincount(self._codes, weights=values, minlength=len(self.by_value) + 1)[1:]  # type: ignore[assignment]
        return sums


def label_domains(columns: Columns, key: str) -> LabelDomains:
    """The domains of a label; nodes without it are in none.

    They are computed on first use, and again when the object of a node has changed.
    """
    known = columns.derived(_by_key)
    if key not in columns.derived(_label_keys):
        key = ""  # users choose the key: a key without nodes is not cached
    if key not in known:
        known[key] = LabelDomains(columns, key)
    return known[key]


def _by_key(_columns: Columns) -> dict[str, LabelDomains]:
    """The domains of each label that was used."""
    return {}


def _label_keys(columns: Columns) -> set[str]:
    return {key for node in columns.nodes for key in node.labels}
