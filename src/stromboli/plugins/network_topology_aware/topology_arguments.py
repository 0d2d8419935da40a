"""The arguments of the plugin `network-topology-aware`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stromboli.api import names
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg, arg_prefix


def _sizes(sizes: Sequence[int]) -> str | None:
    return None if all(size > 0 for size in sizes) else "must be above zero, each of them"


@dataclass(frozen=True, slots=True)
class TopologyArguments:
    """How much closeness counts, and how full HyperNodes are measured. A weight below zero counts as 1."""

    weight: int = arg(
        "weight", 1, "How much all scores of this plugin count; 0 switches them off.", check=at_least(0)
    )
    cpu: int = arg(
        "hypernode.binpack.cpu", 1, "How much cpu counts in how full a HyperNode is.", check=at_least(0)
    )
    memory: int = arg(
        "hypernode.binpack.memory", 1, "How much memory counts in how full a HyperNode is.", check=at_least(0)
    )
    resources: str = arg(
        "hypernode.binpack.resources", "", "Other resources that count, separated by commas."
    )
    resource_weights: Mapping[str, int] = arg_prefix(
        "hypernode.binpack.resources.", 1, "How much one of the other resources counts.", check=at_least(0)
    )
    normal_pods: bool = arg(
        "hypernode.binpack.normal-pod.enable",
        True,
        "Whether pods without a network topology are packed into HyperNodes that are in use.",
    )
    fading: float = arg(
        "hypernode.binpack.normal-pod.fading",
        0.8,
        "How much less each higher tier counts for them than the tier below; below zero counts as 0.8.",
        check=at_least(0),
    )
    evict_hyper_nodes: int = arg(
        "hypernode.gradient.evict.max-hypernodes",
        8,
        "How many HyperNodes are looked at, at most, when room is made for a gang by eviction.",
        check=at_least(1),
    )
    start_with_minimum: bool = arg(
        "startWithMinimum",
        False,
        "Whether a gang may start in a HyperNode with room for its minimum where none has room for all its pods.",
    )
    ranks_side_by_side: bool = arg(
        "ranksSideBySide",
        False,
        "Whether the pods of a gang fill one leaf of the tree before the next, in order of their index.",
    )
    keep_blocks_whole: bool = arg(
        "keepBlocksWhole",
        False,
        "Whether a gang takes the room that is worth least to the gangs that are likely to come.",
    )
    gang_sizes: tuple[int, ...] = arg(
        "gangSizes",
        (),
        "How many pods they will have; if none are given, the gangs that are there tell.",
        check=_sizes,
    )

    def weights(self) -> dict[str, int]:
        """How much each resource counts, by name."""
        listed = filter(None, map(str.strip, self.resources.split(",")))
        weights = {name: self.resource_weights[name] for name in listed}
        return weights | {names.CPU: self.cpu, names.MEMORY: self.memory}
