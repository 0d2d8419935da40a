"""What to write so that the HyperNodes of a source are as discovered (spec 06 10.2).

Only what differs is written, and in an order in which no parent waits long for a child and no member is claimed twice,
unless two HyperNodes swap members: first whatever loses members, from the top down, then the rest from the bottom up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stromboli.api import names
from stromboli.controllers.hypernode.discovered_hyper_nodes import DiscoveredHyperNode, member_names
from stromboli.controllers.watched_kinds import HyperNode


class Write(NamedTuple):
    """A creation, an update, or, if nothing was discovered, a deletion."""

    existing: HyperNode | None
    discovered: DiscoveredHyperNode | None


class Reconciliation(NamedTuple):
    """The writes, in order, and HyperNodes of others that have the names of discovered ones."""

    writes: list[Write]
    foreign: list[HyperNode]


def reconcile(
    source: str,
    discovered: Iterable[DiscoveredHyperNode],
    existing: Mapping[str, HyperNode],
    may_delete: bool = True,
) -> Reconciliation:
    """`existing` are all HyperNodes by name, also those of other sources, which are left alone."""
    wanted = {hyper_node.name: hyper_node for hyper_node in discovered}
    writes: list[Write] = []
    foreign = []
    for name, hyper_node in wanted.items():
        current = existing.get(name)
        if current is None:
            writes.append(Write(None, hyper_node))
        elif not is_of(current, source):
            foreign.append(current)
        elif current.metadata.deletion_timestamp is None and _differs(current, hyper_node):
            writes.append(Write(current, hyper_node))
    if may_delete:
        writes += (
            Write(current, None)
            for name, current in existing.items()
            if name not in wanted and is_of(current, source) and current.metadata.deletion_timestamp is None
        )
    return Reconciliation(sorted(writes, key=_order), foreign)


def is_of(hyper_node: HyperNode, source: str) -> bool:
    """Whether a source discovered a HyperNode."""
    return hyper_node.metadata.labels.get(names.TOPOLOGY_SOURCE) == source


def labels_of(hyper_node: DiscoveredHyperNode, source: str) -> dict[str, str]:
    """The labels that a discovered HyperNode has at least."""
    return {**hyper_node.labels, names.TOPOLOGY_SOURCE: source}


def _differs(current: HyperNode, wanted: DiscoveredHyperNode) -> bool:
    spec, labels = current.spec, current.metadata.labels
    return (
        (spec.tier, spec.tier_name, spec.members) != (wanted.tier, wanted.tier_name, wanted.members)
    ) or any(labels.get(key) != value for key, value in wanted.labels.items())


def _order(write: Write) -> tuple[int, int, str]:
    current, wanted = write
    if wanted is None:
        assert current is not None
        return 1, -current.spec.tier, current.name
    if current is not None and member_names(wanted.members) < member_names(current.spec.members):
        return 0, -current.spec.tier, current.name
    return 2, wanted.tier, wanted.name
