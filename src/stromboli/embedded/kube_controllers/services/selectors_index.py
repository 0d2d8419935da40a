"""Which Services select a pod, found by the labels of the pod without a look at every Service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stromboli.embedded.store.records import Record

Label = tuple[str, str, str]
"""Namespace, key and value."""


class SelectorsIndex:
    """Selectors of Services by one of their labels; an empty selector selects every pod of its namespace."""

    def __init__(self) -> None:
        self._by_label: dict[Label, dict[str, Mapping[str, str]]] = {}

    def update(self, before: Record | None, after: Record | None) -> None:
        """A Service was created, changed or deleted."""
        for record in (before, after):
            selector = _selector(record) if record is not None else None
            if record is None or selector is None:
                continue
            label = _leading_label(record.key.namespace, selector)
            if record is after:
                self._by_label.setdefault(label, {})[record.key.name] = selector
            elif services := self._by_label.get(label):
                services.pop(record.key.name, None)
                if not services:
                    del self._by_label[label]

    def matching(self, namespace: str, labels: Mapping[str, str]) -> Iterator[str]:
        """The names of the Services that select a pod with these labels."""
        for key, value in (("", ""), *labels.items()):
            for name, selector in self._by_label.get((namespace, key, value), {}).items():
                if selector.items() <= labels.items():
                    yield name


def _selector(record: Record) -> Mapping[str, str] | None:
    selector: Mapping[str, str] | None = (record.object().get("spec") or {}).get("selector")
    return selector


def _leading_label(namespace: str, selector: Mapping[str, str]) -> Label:
    key = min(selector, default="")
    return (namespace, key, selector.get(key, ""))
