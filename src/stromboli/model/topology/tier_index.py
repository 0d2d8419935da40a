"""The tiers of the HyperNodes that stand, by number and by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.model.topology.parent_claims import shortened

if TYPE_CHECKING:
    from stromboli.model.topology.domain import Domain
    from stromboli.model.topology.name_patterns import Age


class TierIndex:
    """How many HyperNodes each tier has, and what the names of tiers mean."""

    def __init__(self) -> None:
        self.of_name: dict[str, int] = {}
        """Tiers by their names; if HyperNodes of different tiers share a name, that of the youngest."""
        self.ambiguous: dict[str, str] = {}
        """HyperNodes whose tier has the name of another tier, by name: the first of each tier, with a sentence."""
        self._ambiguous_by_name: dict[str, list[str]] = {}
        """The same HyperNodes by the name of the tier."""
        self._counts: dict[int, int] = {}
        self._ages: dict[Domain, Age] = {}
        """The HyperNodes whose tiers have names."""
        self._by_name: dict[str, dict[int, dict[Domain, None]]] = {}
        """Those HyperNodes by the name of their tier, and by the tier."""
        self._touched: dict[str, None] = {}
        """Names that may mean another tier since the last update."""

    def add(self, domain: Domain, age: Age) -> None:
        """A HyperNode stands."""
        self._counts[domain.tier] = self._counts.get(domain.tier, 0) + 1
        if domain.tier_name:
            self._ages[domain] = age
            tiers = self._by_name.setdefault(domain.tier_name, {})
            tiers.setdefault(domain.tier, {})[domain] = None
            self._touched[domain.tier_name] = None

    def remove(self, domain: Domain) -> None:
        """A HyperNode stands no more."""
        self._counts[domain.tier] -= 1
        if not self._counts[domain.tier]:
            del self._counts[domain.tier]
        if domain.tier_name:
            tiers = self._by_name[domain.tier_name]
            del self._ages[domain], tiers[domain.tier][domain]
            if not tiers[domain.tier]:
                del tiers[domain.tier]
            self._touched[domain.tier_name] = None

    def update(self) -> set[str]:
        """Find out what the names mean now; the HyperNodes of which something else is to be told about that."""
        before, now = dict[str, str](), dict[str, str]()
        for name in self._touched:
            for told in self._ambiguous_by_name.pop(name, ()):
                before[told] = self.ambiguous.pop(told)
        for name in self._touched:
            if tiers := self._by_name[name]:
                self.of_name[name] = next(iter(tiers)) if len(tiers) == 1 else self._youngest(name)
                now |= self._ambiguity(name)
            else:
                del self._by_name[name]
                self.of_name.pop(name, None)
        self.ambiguous |= now
        self._touched = {}
        return {told for told in before.keys() | now.keys() if before.get(told) != now.get(told)}

    def _youngest(self, name: str) -> int:
        """Of the tiers of a name, that of the youngest HyperNode."""
        domains = (domain for tier in self._by_name[name].values() for domain in tier)
        return max(domains, key=self._ages.__getitem__).tier

    def _ambiguity(self, name: str) -> dict[str, str]:
        """Of a name with several tiers the first HyperNode of each, with what to tell."""
        tiers = self._by_name[name]
        if len(tiers) == 1:
            return {}
        first = {tier: min(domain.name for domain in tiers[tier]) for tier in sorted(tiers)}
        owners = shortened([f"HyperNode {owner} (tier {tier})" for tier, owner in first.items()])
        meaning = f"it means tier {self.of_name[name]}, that of the youngest"
        sentence = f'the tier name "{name}" is that of several tiers: {owners}; {meaning}'
        self._ambiguous_by_name[name] = list(first.values())
        return dict.fromkeys(first.values(), sentence)

    @property
    def highest(self) -> int:
        """The highest tier; 0 if there is none."""
        return max(self._counts, default=0)

    def all(self) -> list[int]:
        """All tiers, ascending."""
        return sorted(self._counts)
