"""What a new pod is given: its priority, and the service account it runs as."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Record

Content = dict[str, Any]
CLASSES = "priorityclasses.scheduling.k8s.io"
SYSTEM_PRIORITY = 2_000_000_000


def complete(store: Store, kind: Kind, namespace: str, pod: Content) -> None:
    """Fill in what the pod leaves open, from what else is there."""
    spec = pod.get("spec")
    if isinstance(spec, dict):
        _account(store, kind, namespace, pod["metadata"], spec)
        _priority(store, kind, pod["metadata"], spec)


def _account(store: Store, kind: Kind, namespace: str, meta: Content, spec: Content) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    if name != "default" and store.get("serviceaccounts", namespace, str(name)) is None:
        account = f"{namespace}/{name}"
        why = f'error looking up service account {account}: serviceaccount "{name}" not found'
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _priority(store: Store, kind: Kind, meta: Content, spec: Content) -> None:
    named = spec.get("priorityClassName")
    if named:
        record = store.get(CLASSES, "", str(named))
        if record is None:
            why = f"no PriorityClass with name {named} was found"
            raise forbidden(kind, str(meta.get("name", "")), why)
    else:
        record = _default(store)
        spec.pop("priorityClassName", None)
        if record is not None:
            spec["priorityClassName"] = record.key.name
    chosen = record.object() if record is not None else {}
    value, policy = chosen.get("value", 0), chosen.get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission"
            f" controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


def _default(store: Store) -> Record | None:
    """The class of pods that name none: the least urgent of those that say so, as Kubernetes has it."""
    found = [record for record in store.all(CLASSES) if record.field("globalDefault") == "true"]
    return min(found, key=lambda record: int(record.field("value") or 0), default=None)
