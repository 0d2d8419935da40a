"""PriorityClasses, and the class that a new pod or group gets."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.kind import CLUSTER, Content, Kind, builtin
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy, immutable
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, printer

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"


def _row(priority_class: Content, now: float) -> Cells:
    return [
        name_of(priority_class),
        priority_class.get("value") or 0,
        bool(priority_class.get("globalDefault")),
        age(priority_class, now),
        priority_class.get("preemptionPolicy") or "PreemptLowerPriority",
    ]


def admitted_class(store: StoredObjects, kind: Kind, meta: Content, spec: Content) -> Content:
    """The class that a spec names, or else the global default, which it then names; empty if there is none."""
    class_name = spec.get("priorityClassName")
    if class_name:
        record = store.get(PRIORITY_CLASSES, "", str(class_name))
        if record is None:
            why = f"no PriorityClass with name {class_name} was found"
            raise forbidden(kind, str(meta.get("name", "")), why)
    else:
        record = _default_class(store)
        spec.pop("priorityClassName", None)
        if record is not None:
            spec["priorityClassName"] = record.key.name
    return dict(record.object()) if record is not None else {}


def _default_class(store: StoredObjects) -> Any:
    """The global default; of several, Kubernetes takes that with the lowest value."""
    defaults = [record for record in store.list(PRIORITY_CLASSES) if record.field("globalDefault") == "true"]
    return min(defaults, key=lambda record: int(record.field("value") or 0), default=None)


KIND = builtin(
    "scheduling.k8s.io",
    "priorityclasses",
    "PriorityClass",
    "pc",
    strategy=Strategy(
        has_generation=True,
        printer=printer("Name | Value# | Global-Default | Age | PreemptionPolicy", _row),
        update_problems=lambda old, new: immutable(old, new, "value", "preemptionPolicy", prefix=""),
    ),
    **CLUSTER,
)
