"""Display names of HyperNodes: the value of the label from which one was discovered, not its generated name."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from stromboli.api import names

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """A unique display name for each HyperNode.

    It is the value of the label (`rack-1`), with the last part of its key if another HyperNode has the same value
    (`rack=1`). If that is not unique either, it is the name of the object.
    """

    def __init__(self, labels: Mapping[str, tuple[str, str] | None]):
        """`labels` has the node label and the value for which each HyperNode was discovered, if it was."""
        candidates = {name: _candidates(name, label) for name, label in labels.items()}
        claims = Counter(candidate for each in candidates.values() for candidate in each)
        self._titles = {
            name: next((each for each in mine if claims[each] == 1), name)
            for name, mine in candidates.items()
        }
        self._names = {title: name for name, title in self._titles.items()}

    def of(self, name: str) -> str:
        """The display name of a HyperNode."""
        return self._titles.get(name, name)

    def resolve(self, text: str) -> str:
        """The name of the HyperNode that a text names or displays; the text itself if there is none."""
        return text if text in self._titles else self._names.get(text, text)


def _candidates(name: str, label: tuple[str, str] | None) -> tuple[str, ...]:
    """Possible display names of a HyperNode, the best first; the last is its name."""
    if label is None:
        return (name,)
    key, value = label
    return tuple(dict.fromkeys((value, f"{key.rpartition('/')[2]}={value}", name)))
