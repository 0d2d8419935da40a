"""Defaults of a new pod: its priority, and its service account."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Record

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"


def set_pod_defaults(store: Store, kind: Kind, namespace: str, pod: Content) -> None:
    """The ServiceAccount and Priority admission plugins."""
    spec = pod.get("spec")
    if isinstance(spec, dict):
        _set_service_account(store, kind, namespace, pod["metadata"], spec)
        _set_priority(store, kind, pod["metadata"], spec)


def _set_service_account(store: Store, kind: Kind, namespace: str, meta: Content, spec: Content) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    if name != "default" and store.get("serviceaccounts", namespace, str(name)) is None:
        account = f"{namespace}/{name}"
        why = f'error looking up service account {account}: serviceaccount "{name}" not found'
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _set_priority(store: Store, kind: Kind, meta: Content, spec: Content) -> None:
    priority_class = admitted_priority_class(store, kind, meta, spec)
    value = priority_class.get("value", 0)
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission"
            f" controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", priority_class.get("preemptionPolicy", "PreemptLowerPriority"))


def admitted_priority_class(store: Store, kind: Kind, meta: Content, spec: Content) -> Content:
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
    return record.object() if record is not None else {}


def _default_class(store: Store) -> Record | None:
    """The global default; of several, Kubernetes takes that with the lowest value."""
    defaults = [record for record in store.list(PRIORITY_CLASSES) if record.field("globalDefault") == "true"]
    return min(defaults, key=lambda record: int(record.field("value") or 0), default=None)
