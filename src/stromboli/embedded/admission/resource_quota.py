"""Resource quotas: what the objects of a namespace use, and whether one more fits.

Usage is counted once per quota and updated with every write, so that a create does not walk over all objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from stromboli.api.resources.qos import BEST_EFFORT, qos_class
from stromboli.api.resources.quantity import exact
from stromboli.api.resources.quota_charges import Charges, add_charges, format_charge
from stromboli.api.types.pod import pod_resources
from stromboli.embedded.kinds.builtin_kinds import strategy_of
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.kinds.strategy import charges_of
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Record

QUOTAS = "resourcequotas"
MAX_QUOTAS = 100
"""Quotas of a namespace; every write in it asks all of them."""
MAX_HARD = 500
"""Resources that a quota limits; its status has all of them."""
Scopes = tuple[tuple[str, str, tuple[str, ...]], ...]
_ZERO = Fraction()


def usage(resource: str, content: Content) -> Charges:
    """What one object is charged to its namespace."""
    return charges_of(resource, strategy_of(resource), content)


def _scopes(quota: Content) -> Scopes:
    """The scopes of a quota: name, operator and values of each."""
    spec = quota.get("spec") or {}
    scopes: list[tuple[str, str, tuple[str, ...]]]
    scopes = [(str(scope), "Exists", ()) for scope in spec.get("scopes") or ()]
    for term in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        values = tuple(map(str, term.get("values") or ()))
        scopes.append((str(term.get("scopeName")), str(term.get("operator")), values))
    return tuple(scopes)


def _in_scope(scopes: Scopes, kind_id: str, content: Content) -> bool:
    """Whether a quota with these scopes counts this object: all of them have to match."""
    if not scopes:
        return True
    return kind_id == "pods" and all(_scope_matches(content, *scope) for scope in scopes)


def _scope_matches(pod: Content, scope: str, operator: str, values: Collection[str]) -> bool:
    spec = pod.get("spec") or {}
    terminating = spec.get("activeDeadlineSeconds") is not None
    match scope:
        case "BestEffort":
            return qos_class(pod_resources(pod)) == BEST_EFFORT
        case "NotBestEffort":
            return qos_class(pod_resources(pod)) != BEST_EFFORT
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "PriorityClass":
            return _class_matches(spec.get("priorityClassName") or "", operator, values)
    return False


def _class_matches(name: str, operator: str, values: Collection[str]) -> bool:
    match operator:
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


class Quotas:
    """The usage of all quotas."""

    def __init__(self, store: Store):
        self._store = store
        self._used: dict[tuple[str, Scopes], Charges] = {}
        """By namespace and scopes, whatever quotas limit; missing ones are counted when they are needed."""
        store.on_apply(self._on_apply)

    def used(self, record: Record) -> Charges:
        """What the objects that the quota counts use together."""
        namespace, scopes = record.key.namespace, _scopes(record.object())
        if (namespace, scopes) not in self._used:
            total = Charges()
            for resource in self._store.resources():
                for member in self._store.list(resource, namespace):
                    content = member.object() if strategy_of(resource).charged_by_content else {}
                    if _in_scope(scopes, resource, content):
                        add_charges(total, usage(resource, content))
            self._used[namespace, scopes] = total
        return self._used[namespace, scopes]

    def _on_apply(self, change: Change) -> None:
        """A write took effect (or was undone)."""
        key = change.key
        if key.resource == QUOTAS:
            before, after = (
                version and _scopes(version.object()) for version in (change.before, change.after)
            )
            if before != after:
                self._forget_unused(key.namespace)
        totals = [
            (scopes, total) for (namespace, scopes), total in self._used.items() if namespace == key.namespace
        ]
        if not totals:
            return
        for version, sign in ((change.before, -1), (change.after, 1)):
            content = version.object() if version is not None else None
            for scopes, total in totals:
                if content is not None and _in_scope(scopes, key.resource, content):
                    add_charges(total, usage(key.resource, content), sign)

    def _forget_unused(self, namespace: str) -> None:
        quotas = {_scopes(record.object()) for record in self._store.list(QUOTAS, namespace)}
        for key in [key for key in self._used if key[0] == namespace and key[1] not in quotas]:
            del self._used[key]

    def check(self, kind: Kind, content: Content, old: Content | None = None) -> None:
        """Refuse what would exceed a quota."""
        if kind.id == QUOTAS:
            self._check_size(kind, content, old)
        if not kind.namespaced or not len(self._store.table(QUOTAS)):
            return
        for record in self._store.list(QUOTAS, content["metadata"]["namespace"]):
            quota = record.object()
            hard = (quota.get("spec") or {}).get("hard") or {}
            if not _in_scope(_scopes(quota), kind.id, content):
                continue
            if kind.id == "pods" and old is None:
                _check_stated(kind, record, hard, content)
            increase = usage(kind.id, content)
            if old is not None:
                add_charges(increase, usage(kind.id, old), -1)
            self._check_room(kind, record, hard, increase, str(content["metadata"].get("name", "")))

    def _check_size(self, kind: Kind, content: Content, old: Content | None) -> None:
        """Of a quota itself."""
        meta = content["metadata"]
        quotas = sum(1 for _ in self._store.list(QUOTAS, meta["namespace"])) + (old is None)
        hard = len((content.get("spec") or {}).get("hard") or ())
        if quotas > MAX_QUOTAS:
            why = f"namespace {meta['namespace']} would have {quotas} quotas, and {MAX_QUOTAS} are allowed"
            raise forbidden(kind, str(meta.get("name", "")), f"{why}: limit more resources in fewer quotas")
        if hard > MAX_HARD:
            why = f"spec.hard limits {hard} resources, and {MAX_HARD} are allowed in one quota"
            raise forbidden(kind, str(meta.get("name", "")), f"{why}: divide them among several quotas")

    def _check_room(
        self, kind: Kind, record: Record, hard: Mapping[str, Any], increase: Charges, name: str
    ) -> None:
        requested = {key: increase[key] for key in hard if increase.get(key, 0) > 0}
        if not requested:
            return
        used = self.used(record)
        over = sorted(key for key in requested if used.get(key, 0) + requested[key] > exact(hard[key]))
        if over:
            limited = ",".join(f"{key}={hard[key]}" for key in over)
            why = (
                f"exceeded quota: {record.key.name}, requested: {_listed(requested, over)},"
                f" used: {_listed(used, over)}, limited: {limited}"
            )
            raise forbidden(kind, name, why)

    def status(self, record: Record) -> Content:
        """The quota's status."""
        hard = (record.object().get("spec") or {}).get("hard") or {}
        used = self.used(record)
        return {"hard": hard, "used": {key: format_charge(key, used.get(key, _ZERO)) for key in sorted(hard)}}


def _check_stated(kind: Kind, record: Record, hard: Mapping[str, Any], pod: Content) -> None:
    """Where a quota limits cpu or memory, every container of a new pod has to state it."""
    missing: dict[str, list[str]] = {}
    for key in hard:
        column, _, name = key.rpartition(".")
        if name not in ("cpu", "memory") or column not in ("", "requests", "limits"):
            continue
        for container in (pod.get("spec") or {}).get("containers") or ():
            resources = container.get("resources") or {}
            if name not in (resources.get(column or "requests") or {}):
                missing.setdefault(key, []).append(str(container.get("name")))
    if missing:
        listed = "; ".join(f"{key} for: {','.join(names)}" for key, names in sorted(missing.items()))
        why = f"failed quota: {record.key.name}: must specify {listed}"
        raise forbidden(kind, str(pod["metadata"].get("name", "")), why)


def _listed(charges: Charges, keys: Iterable[str]) -> str:
    return ",".join(f"{key}={format_charge(key, charges.get(key, _ZERO))}" for key in keys)
