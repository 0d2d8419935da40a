"""How much each tier counts for pods without a network topology: the higher, the less."""

from __future__ import annotations

from collections.abc import Sequence


class TierWeights:
    """The weight `fading^(tier-1)` of every whole tier from the lowest to the highest, divided by the sum of all.

    Tiers without HyperNodes count too: nodes have the full score there. How many there are is up to who writes
    HyperNodes, so runs of them are summed by formula, and only ratios of powers are computed, which stay finite.
    """

    def __init__(self, tiers: Sequence[int], fading: float):
        lowest, highest = tiers[0], tiers[-1]
        self.of_tier: dict[int, float] = {}
        """The part of each tier that has HyperNodes; nothing at all if no tier counts."""
        if fading == 0:  # 0^0 = 1: tier 1 alone
            self.of_tier = {tier: float(tier == 1) for tier in tiers} if lowest <= 1 <= highest else {}
        else:
            total = _total(fading, lowest, highest, lowest, highest)
            self.of_tier = {tier: _total(fading, tier, tier, lowest, highest) / total for tier in tiers}
        self.without_hyper_nodes = max(1.0 - sum(self.of_tier.values()), 0.0) if self.of_tier else 0.0
        """The part of the tiers in between that have none."""


def _total(fading: float, first: int, last: int, lowest: int, highest: int) -> float:
    """The sum of the powers of some tiers, relative to the largest power of all."""
    ratio, distance = (fading, first - lowest) if fading <= 1 else (1 / fading, highest - last)
    count = last - first + 1
    series = float(count) if ratio == 1 else (1 - ratio**count) / (1 - ratio)
    return ratio**distance * series
