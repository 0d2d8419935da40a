"""Pods of the same Service or controller, which are spread by default (spec 04 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.api.types.workloads import ReplicationController
from stromboli.model.constraints.topology_spread import is_empty

if TYPE_CHECKING:
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.task import Task

CACHE_SIZE = 10_000
"""Label sets whose selector is cached at a time."""


class Siblings:
    """Finds the selector of a pod's siblings; its cache is valid until any lookup object changes."""

    def __init__(self) -> None:
        self._objects: LookupObjects | None = None
        self._version = -1
        self._services: dict[str, list[dict[str, str]]] = {}
        self._cache: dict[tuple[int, tuple[str, str] | None], LabelSelector | None] = {}

    def selector(self, objects: LookupObjects, task: Task) -> LabelSelector | None:
        """The selectors of all Services that select a pod and of its controller, as one; None where there are none."""
        self._refresh(objects)
        owner = task.owner if task.owner and (task.owner[0], _key(task)) in objects.controllers else None
        if owner is None and task.namespace not in self._services:
            return None
        key = (task.label_set.id, owner)
        if key not in self._cache:
            self._cache[key] = self._find(objects, task)
        return self._cache[key]

    def _refresh(self, objects: LookupObjects) -> None:
        if self._objects is not objects or self._version != objects.version:
            self._objects, self._version = objects, objects.version
            self._cache.clear()
            self._services.clear()
            for service in objects.services.values():
                if service.spec.selector:
                    self._services.setdefault(service.namespace, []).append(service.spec.selector)
        elif len(self._cache) > CACHE_SIZE:
            self._cache.clear()

    def _find(self, objects: LookupObjects, task: Task) -> LabelSelector | None:
        labels: dict[str, str] = {}
        for selected in self._services.get(task.namespace, ()):
            if selected.items() <= task.label_set.labels.items():
                labels.update(selected)
        expressions: tuple[Requirement, ...] = ()
        owner = objects.controllers.get((task.owner[0], _key(task))) if task.owner else None
        if isinstance(owner, ReplicationController):
            labels.update(owner.spec.selector)
        elif owner is not None and owner.spec.selector is not None:
            match = owner.spec.selector
            pairs = [Requirement(key, "In", (value,)) for key, value in match.match_labels.items()]
            expressions = (*pairs, *match.match_expressions)
        selector = LabelSelector(labels, expressions)
        return None if is_empty(selector) else selector


def _key(task: Task) -> str:
    return f"{task.namespace}/{task.owner[1]}" if task.owner else ""
