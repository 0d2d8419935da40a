"""A dict that keeps the entries last put, up to a size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any


class BoundedCache(OrderedDict[Any, Any]):
    """Use `put` to set an entry."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def put(self, key: Any, value: Any) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._size:
            self.popitem(last=False)
