"""The current objects of one resource, in list order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from stromboli.embedded.store.records import Key, Record


class ObjectTable:
    """Records by namespace and name; sorted when a list first needs it after an insertion or deletion."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, str], Record] = {}
        self._order: list[tuple[str, str]] | None = []

    def __len__(self) -> int:
        return len(self._records)

    def get(self, namespace: str, name: str) -> Record | None:
        return self._records.get((namespace, name))

    def set(self, key: Key, record: Record | None) -> None:
        """Insert or replace a record; None deletes it."""
        full_name = key[1:]
        if record is None:
            self._records.pop(full_name, None)
            self._order = None
        else:
            if full_name not in self._records:
                self._order = None
            self._records[full_name] = record

    def ordered(self, namespace: str = "", after: tuple[str, str] | None = None) -> Iterator[Record]:
        """Sorted by namespace and name; `after` excludes everything up to and including that object."""
        if self._order is None:
            self._order = sorted(self._records)
        start = bisect_right(self._order, after if after is not None else (namespace, ""))
        for index in range(start, len(self._order)):
            full_name = self._order[index]
            if namespace and full_name[0] != namespace:
                return
            yield self._records[full_name]
