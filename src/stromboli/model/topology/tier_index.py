"""The tiers of the HyperNodes that stand, by number and by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.model.topology.domain import Domain
    from stromboli.model.topology.name_patterns import Age


class TierIndex:
    """How many HyperNodes each tier has, and what the names of tiers mean."""

    def __init__(self) -> None:
        self.of_name: dict[str, int] = {}
        """Tiers by their names; if HyperNodes of different tiers share a name, that of the youngest."""
        self._counts: dict[int, int] = {}
        self._ages: dict[Domain, Age] = {}
        """The HyperNodes whose tiers have names."""
        self._by_name: dict[str, dict[Domain, None]] = {}
        self._touched: dict[str, None] = {}
        """Names that may mean another tier since the last update."""

    def add(self, domain: Domain, age: Age) -> None:
        """A HyperNode stands."""
        self._counts[domain.tier] = self._counts.get(domain.tier, 0) + 1
        if domain.tier_name:
            self._ages[domain] = age
            self._by_name.setdefault(domain.tier_name, {})[domain] = None
            self._touched[domain.tier_name] = None

    def remove(self, domain: Domain) -> None:
        """A HyperNode stands no more."""
        self._counts[domain.tier] -= 1
        if not self._counts[domain.tier]:
            del self._counts[domain.tier]
        if domain.tier_name:
            del self._ages[domain], self._by_name[domain.tier_name][domain]
            self._touched[domain.tier_name] = None

    def update(self) -> None:
        """Find out what the names mean now."""
        for name in self._touched:
            if domains := self._by_name[name]:
                self.of_name[name] = max(domains, key=self._ages.__getitem__).tier
            else:
                del self._by_name[name]
                self.of_name.pop(name, None)
        self._touched = {}

    @property
    def highest(self) -> int:
        """The highest tier; 0 if there is none."""
        return max(self._counts, default=0)

    def all(self) -> list[int]:
        """All tiers, ascending."""
        return sorted(self._counts)
