"""A domain: a named set of nodes to which a gang may be kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stromboli.model.node_columns import Bools, Ints


@dataclass(slots=True, eq=False, repr=False)
class Domain:
    """Nodes below one switch: a HyperNode, or the whole cluster; the lower its tier, the closer its nodes."""

    name: str
    """The name of its HyperNode; unique in the tree."""
    title: str = field(default="", kw_only=True)
    """What users read for it, unique too: the value of the label from which it was discovered, else its name."""
    tier: int
    """How far apart its nodes may be: the tier of its HyperNode."""
    tier_name: str = ""
    """The name of the tier, if it has any."""
    parent: Domain | None = None
    """The domain that contains it; none for the top."""
    children: list[Domain] = field(default_factory=list)
    """The domains that it is made of, by name."""
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
        """Its nodes among so many, for `session.place`."""
        inside = np.zeros(count, dtype=bool)
        inside[self.rows] = True
        return inside

    def __repr__(self) -> str:
        return f"Domain({self.name})"
