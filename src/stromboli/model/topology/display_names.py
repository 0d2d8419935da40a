"""Display names of HyperNodes: the value of the label from which one was discovered, not its generated name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from stromboli.api import names

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNode


def discovered_label(obj: HyperNode) -> tuple[str, str] | None:
    """The node label and the value for which a HyperNode was discovered; none for HyperNodes of other origin."""
    labels, key = obj.metadata.labels, obj.spec.tier_name
    if labels.get(names.TOPOLOGY_SOURCE) != names.TOPOLOGY_SOURCE_LABEL or not labels.get(key):
        return None
    return key, labels[key]


@lru_cache(maxsize=16_384)
def natural_order(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts `rack-9` before `rack-10`."""
    parts = re.split(r"([0-9]{1,18})", text)
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in parts)


class DisplayNames:
    """A display name for each HyperNode, so that no two have the same.

    It is the value of the label (`rack-1`), with the last part of its key if another HyperNode has the same value
    (`rack=1`). If that is not unique either, it is the name of the object.
    """

    def __init__(self) -> None:
        self._candidates: dict[str, tuple[str, ...]] = {}
        """Possible display names of each HyperNode, the best first; the last is its name."""
        self._claimants: dict[str, set[str]] = {}
        """The HyperNodes with a possible display name, by that name."""

    def set(self, name: str, label: tuple[str, str] | None, exists: bool = True) -> set[str]:
        """Set or delete the label of a HyperNode; the HyperNodes whose display names may change."""
        candidates: tuple[str, ...] = (name,) if exists else ()
        if label is not None:
            key, value = label
            candidates = tuple(dict.fromkeys((value, f"{key.rpartition('/')[2]}={value}", *candidates)))
        before = self._candidates.pop(name, ())
        if candidates:
            self._candidates[name] = candidates
        if before == candidates:
            return {name}
        affected = {name}
        for candidate in before:
            self._claimants[candidate].discard(name)
            affected |= self._claimants[candidate]
            if not self._claimants[candidate]:
                del self._claimants[candidate]
        for candidate in candidates:
            claimants = self._claimants.setdefault(candidate, set())
            claimants.add(name)
            affected |= claimants
        return affected

    def of(self, name: str) -> str:
        """The display name of a HyperNode."""
        candidates = self._candidates.get(name, ())
        return next((each for each in candidates if len(self._claimants[each]) == 1), name)

    def resolve(self, text: str) -> str:
        """The name of the HyperNode that a text names or displays; the text itself if there is none."""
        if text in self._candidates:
            return text
        return next((name for name in self._claimants.get(text, ()) if self.of(name) == text), text)
