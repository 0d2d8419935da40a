"""Resource quotas: what a namespace may hold, what it holds, and whether there is room for one more.

What a namespace holds is counted once and kept up with every write, so that a create costs no walk over the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.embedded.admission.qos_class import qos_class
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Record

Content = dict[str, Any]
Usage = dict[str, Fraction]

QUOTAS = "resourcequotas"
_COUNTED = {
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "resourcequotas",
    "replicationcontrollers",
}
"""Kinds that a quota may also count by their bare name."""
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_OVER = ("Succeeded", "Failed")


def usage(kind_id: str, content: Content) -> Usage:
    """What one object takes."""
    plural, _, group = kind_id.partition(".")
    taken: Usage = {f"count/{plural}.{group}" if group else f"count/{plural}": Fraction(1)}
    if kind_id in _COUNTED:
        taken[kind_id] = Fraction(1)
    if kind_id == "persistentvolumeclaims":
        asked = ((content.get("spec") or {}).get("resources") or {}).get("requests") or {}
        taken["requests.storage"] = _amount(asked.get("storage", 0))
    if kind_id == "pods":
        if (content.get("status") or {}).get("phase") in _OVER:
            return {"count/pods": Fraction(1)}
        taken["pods"] = Fraction(1)
        _add_pod(taken, content.get("spec") or {})
    return taken


def _add_pod(taken: Usage, spec: Content) -> None:
    for column in ("requests", "limits"):
        for name, amount in _pod_total(spec, column).items():
            taken[f"{column}.{name}"] = amount
            if column == "requests" and name in _PLAIN:
                taken[name] = amount


def _pod_total(spec: Content, column: str) -> Usage:
    """All containers together, or the largest that starts before them, plus the overhead."""
    total: Usage = {}
    for container in spec.get("containers") or ():
        for name, amount in _asked(container, column).items():
            total[name] = total.get(name, Fraction(0)) + amount
    for container in spec.get("initContainers") or ():
        for name, amount in _asked(container, column).items():
            if container.get("restartPolicy") == "Always":
                total[name] = total.get(name, Fraction(0)) + amount
            else:
                total[name] = max(total.get(name, Fraction(0)), amount)
    for name, text in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Fraction(0)) + _amount(text)
    return total


def _asked(container: Any, column: str) -> Usage:
    resources = (container.get("resources") or {}) if isinstance(container, dict) else {}
    given = resources.get(column) or {}
    if column == "requests":
        given = {**(resources.get("limits") or {}), **given}
    return {name: _amount(text) for name, text in given.items()}


def _amount(text: Any) -> Fraction:
    try:
        return exact(text)
    except QuantityError:
        return Fraction(0)


def _meant(quota: Content, kind_id: str, content: Content) -> bool:
    """Whether a quota with scopes is about this object."""
    spec = quota.get("spec") or {}
    scopes = [(one, "Exists", ()) for one in spec.get("scopes") or ()]
    for one in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        scopes.append((one.get("scopeName"), one.get("operator"), one.get("values") or ()))
    if not scopes:
        return True
    if kind_id != "pods":
        return False
    pod = content.get("spec") or {}
    best = qos_class(pod) == "BestEffort"
    ends = pod.get("activeDeadlineSeconds") is not None
    named = pod.get("priorityClassName") or ""
    for scope, operator, values in scopes:
        held = {
            "BestEffort": best,
            "NotBestEffort": not best,
            "Terminating": ends,
            "NotTerminating": not ends,
            "PriorityClass": _holds(named, str(operator), values),
        }.get(str(scope), False)
        if not held:
            return False
    return True


def _holds(name: str, operator: str, values: Any) -> bool:
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


class Quotas:
    """What is used in the namespaces that have quotas."""

    def __init__(self, store: Store):
        self._store = store
        self._used: dict[tuple[str, str], Usage] = {}
        """By namespace and quota; what is missing is counted anew."""
        store.observe(self._applied)

    def used(self, record: Record) -> Usage:
        """What a quota has to count against its limits."""
        place = record.key.namespace, record.key.name
        if place not in self._used:
            quota, total = record.object(), Usage()
            for resource in self._store.resources():
                for one in self._store.all(resource, record.key.namespace):
                    content = one.object() if resource in ("pods", "persistentvolumeclaims") else {}
                    if _meant(quota, resource, content):
                        _sum(total, usage(resource, content), 1)
            self._used[place] = total
        return self._used[place]

    def _applied(self, change: Change) -> None:
        """A write took effect (or was undone)."""
        if not self._used:
            return
        key = change.key
        if key.resource == QUOTAS:
            self._used.pop((key.namespace, key.name), None)
        for place, total in self._used.items():
            if place[0] == key.namespace:
                record = self._store.get(QUOTAS, *place)
                quota = record.object() if record is not None else {}
                for one, sign in ((change.before, -1), (change.after, 1)):
                    content = one.object() if one is not None else None
                    if content is not None and _meant(quota, key.resource, content):
                        _sum(total, usage(key.resource, content), sign)

    def check(self, kind: Kind, namespace: str, content: Content, old: Content | None = None) -> None:
        """Refuse what would go beyond a quota."""
        if not kind.namespaced or not len(self._store.table(QUOTAS)):
            return
        for record in self._store.all(QUOTAS, namespace):
            quota = record.object()
            hard = (quota.get("spec") or {}).get("hard") or {}
            if not _meant(quota, kind.id, content):
                continue
            self._check_named(kind, record, hard, content, old)
            more = usage(kind.id, content)
            if old is not None:
                _sum(more, usage(kind.id, old), -1)
            self._check_room(kind, record, hard, more, str(content["metadata"].get("name", "")))

    def _check_room(
        self, kind: Kind, record: Record, hard: Mapping[str, Any], more: Usage, name: str
    ) -> None:
        touched = {key: more[key] for key in hard if more.get(key, 0) > 0}
        if not touched:
            return
        used = self.used(record)
        over = sorted(key for key in touched if used.get(key, 0) + touched[key] > _amount(hard[key]))
        if over:
            requested = ",".join(f"{key}={shown(touched[key])}" for key in over)
            present = ",".join(f"{key}={shown(used.get(key, Fraction(0)))}" for key in over)
            limited = ",".join(f"{key}={hard[key]}" for key in over)
            why = f"exceeded quota: {record.key.name}, requested: {requested}, used: {present}, limited: {limited}"
            raise forbidden(kind, name, why)

    @staticmethod
    def _check_named(
        kind: Kind, record: Record, hard: Mapping[str, Any], content: Content, old: Content | None
    ) -> None:
        """Where cpu or memory is limited, every container has to say how much it needs."""
        if kind.id != "pods" or old is not None:
            return
        missing: dict[str, list[str]] = {}
        for key in hard:
            column, _, name = key.rpartition(".")
            if name not in ("cpu", "memory") or column not in ("", "requests", "limits"):
                continue
            for container in (content.get("spec") or {}).get("containers") or ():
                if name not in _asked(container, column or "requests"):
                    missing.setdefault(key, []).append(str(container.get("name")))
        if missing:
            listed = "; ".join(f"{key} for: {','.join(names)}" for key, names in sorted(missing.items()))
            why = f"failed quota: {record.key.name}: must specify {listed}"
            raise forbidden(kind, str(content["metadata"].get("name", "")), why)

    def status(self, record: Record) -> Content:
        """What a quota says about itself."""
        hard = (record.object().get("spec") or {}).get("hard") or {}
        used = self.used(record)
        return {"hard": hard, "used": {key: shown(used.get(key, Fraction(0))) for key in sorted(hard)}}


def _sum(total: Usage, more: Usage, sign: int) -> None:
    for key, amount in more.items():
        total[key] = total.get(key, Fraction(0)) + sign * amount


def shown(amount: Fraction) -> str:
    """As a quantity."""
    if amount.denominator == 1:
        value = int(amount)
        for suffix, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if value and value % size == 0:
                return f"{value // size}{suffix}"
        return str(value)
    return f"{-(-amount.numerator * 1000 // amount.denominator)}m"
