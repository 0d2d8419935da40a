"""Which slices a node may see, found by its labels: thousands of nodes need not be held against hundreds of slices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.api import names

if TYPE_CHECKING:
    from stromboli.api.types.pod import NodeSelector
    from stromboli.model.devices.pools.pool_devices import PoolSlice
    from stromboli.model.node_columns import Node

Labels = frozenset[tuple[str, str]]
"""Labels of which a node needs one; its name counts as a label."""


class ReachIndex:
    """Slices that do not name a node, by the labels of which a node needs one to see them."""

    def __init__(self) -> None:
        self._labelled: dict[tuple[str, str], dict[PoolSlice, None]] = {}
        self._everywhere: dict[PoolSlice, None] = {}
        """Those that any node may see."""

    def add(self, slice: PoolSlice) -> None:
        labels = needed_labels(slice)
        if labels is None:
            self._everywhere[slice] = None
            return
        for label in labels:
            self._labelled.setdefault(label, {})[slice] = None

    def remove(self, slice: PoolSlice) -> None:
        self._everywhere.pop(slice, None)
        for label in needed_labels(slice) or ():
            slices = self._labelled[label]
            del slices[slice]
            if not slices:
                del self._labelled[label]

    def slices_for(self, node: Node) -> Iterable[PoolSlice]:
        """The slices that a node may see, each once; others it does not."""
        found = dict(self._everywhere)
        if self._labelled:
            for label in ((names.NODE_NAME_FIELD, node.name), *node.labels.items()):
                found |= self._labelled.get(label, {})
        return found


def needed_labels(slice: PoolSlice) -> Labels | None:
    """Labels of which a node needs one to see a slice; None if it may see it without."""
    spec = slice.spec
    if not spec.per_device_node_selection:
        return _labels_of(spec.node_name, spec.node_selector)
    needed: set[tuple[str, str]] = set()
    for device in spec.devices:
        labels = _labels_of(device.node_name, device.node_selector)
        if labels is None:
            return None
        needed |= labels
    return frozenset(needed)


def _labels_of(node_name: str, selector: NodeSelector | None) -> Labels | None:
    if node_name:
        return frozenset({(names.NODE_NAME_FIELD, node_name)})
    needed: set[tuple[str, str]] = set()
    for term in selector.node_selector_terms if selector is not None else ():
        requirements = (*term.match_fields, *term.match_expressions)
        values = next((each for each in requirements if each.operator == "In"), None)
        if values is None:
            return None
        needed |= {(values.key, value) for value in values.values}
    return frozenset(needed) if selector is not None else None
