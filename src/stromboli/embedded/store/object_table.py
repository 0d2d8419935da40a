"""The current objects of one resource, in list order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from stromboli.embedded.store.records import Key, Record


class ObjectTable:
    """Records by namespace and name; sorted when a list first needs it, and kept in order from then on."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], Record] = {}
        self._order: list[tuple[str, str]] | None = None

    def __len__(self) -> int:
        return len(self._records)

    def get(self, namespace: str, name: str) -> Record | None:
        return self._records.get((namespace, name))

    def set(self, key: Key, record: Record | None) -> None:
        """Insert or replace a record; None deletes it."""
        full_name = key[1:]
        if record is None:
            if self._records.pop(full_name, None) is not None and self._order is not None:
                del self._order[bisect_left(self._order, full_name)]
        else:
            if full_name not in self._records and self._order is not None:
                insort(self._order, full_name)
            self._records[full_name] = record

    def ordered(self, namespace: str = "", after: tuple[str, str] | None = None) -> Iterator[Record]:
        """As they are now, by namespace and name; `after` excludes everything up to and including that object."""
        if self._order is None:
            self._order = sorted(self._records)
        start = bisect_right(self._order, after if after is not None else (namespace, ""))
        end = bisect_left(self._order, (namespace + "\0",)) if namespace else len(self._order)
        return iter([self._records[full_name] for full_name in self._order[start:end]])
