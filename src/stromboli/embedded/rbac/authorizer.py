"""Roles and bindings, indexed by whom they speak of, so that a request looks only at what is said of its user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.rbac.policy_rules import Attributes, PolicyRule, User, rules_of

MASTERS = "system:masters"
"""Whoever is in this group may do everything, whatever roles say."""
Thing = dict[str, Any]
Key = tuple[str, str]
"""Namespace, empty for the whole cluster, and name."""

RBAC_RESOURCES = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")


ALL_RULES = PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), non_resource_urls=("*",))


class Decision(NamedTuple):
    """Yes or no, and by which binding."""

    allowed: bool
    reason: str = ""


NO = Decision(False)


class Role(NamedTuple):
    rules: tuple[PolicyRule, ...]
    labels: dict[str, str]
    selectors: tuple[LabelSelector, ...] = ()
    """Of the roles whose rules it gathers instead of having its own."""


class Binding(NamedTuple):
    kind: str
    key: Key
    role_kind: str
    role: Key
    subjects: tuple[tuple[str, str], ...]


class Authorizer:
    """What everybody may do. Told of every role and binding that comes, changes or goes."""

    def __init__(self, things: Iterable[tuple[str, Thing]] = ()) -> None:
        self._roles: dict[Key, Role] = {}
        self._bindings: dict[tuple[str, Key], Binding] = {}
        self._of: dict[tuple[str, str], dict[tuple[str, Key], Binding]] = defaultdict(dict)
        """Bindings by the user or group that they speak of."""
        self._gathered: dict[Key, tuple[PolicyRule, ...]] = {}
        for resource, thing in things:
            self.put(resource, thing)

    # -- news

    def put(self, resource: str, thing: Thing) -> None:
        """A role or binding is there, or is another now; `resource` is one of `RBAC_RESOURCES`."""
        meta = thing.get("metadata") or {}
        key = str(meta.get("namespace") or ""), str(meta.get("name") or "")
        if resource in ("roles", "clusterroles"):
            self._roles[key] = Role(rules_of(thing), dict(meta.get("labels") or {}), _selectors(thing))
            self._gathered.clear()
        else:
            self._unbind(resource, key)
            binding = _binding(resource, key, thing)
            self._bindings[resource, key] = binding
            for subject in binding.subjects:
                self._of[subject][resource, key] = binding

    def drop(self, resource: str, namespace: str, name: str) -> None:
        """A role or binding is gone."""
        if resource in ("roles", "clusterroles"):
            self._roles.pop((namespace, name), None)
            self._gathered.clear()
        else:
            self._unbind(resource, (namespace, name))

    def _unbind(self, resource: str, key: Key) -> None:
        old = self._bindings.pop((resource, key), None)
        for subject in old.subjects if old is not None else ():
            left = self._of.get(subject)
            if left is not None:
                left.pop((resource, key), None)
                if not left:
                    del self._of[subject]

    # -- questions

    def authorize(self, user: User, asked: Attributes) -> Decision:
        """Whether somebody may do something, and who said so."""
        if MASTERS in user.groups:
            return Decision(True)
        for binding, subject in self._bindings_of(user, asked.namespace):
            if any(rule.allows(asked) for rule in self._rules(binding)):
                return Decision(True, _reason(binding, subject))
        return NO

    def rules_for(self, user: User, namespace: str) -> list[PolicyRule]:
        """Everything that somebody may do in a namespace and in the cluster."""
        if MASTERS in user.groups:
            return list(ALL_RULES)
        found = dict.fromkeys(
            rule for binding, _ in self._bindings_of(user, namespace) for rule in self._rules(binding)
        )
        return list(found)

    def rules_of_role(self, kind: str, namespace: str, name: str) -> tuple[PolicyRule, ...]:
        """What a role grants, with what it gathers from others."""
        return self._role_rules(("" if kind == "ClusterRole" else namespace, name))

    def has_role(self, kind: str, namespace: str, name: str) -> bool:
        return ("" if kind == "ClusterRole" else namespace, name) in self._roles

    # -- the way there

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[Binding, tuple[str, str]]]:
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for subject in subjects:
            for (kind, (where, _)), binding in self._of.get(subject, {}).items():
                if kind == "clusterrolebindings" or (where == namespace and namespace):
                    yield binding, subject

    def _rules(self, binding: Binding) -> tuple[PolicyRule, ...]:
        return self._role_rules(binding.role)

    def _role_rules(self, key: Key) -> tuple[PolicyRule, ...]:
        role = self._roles.get(key)
        if role is None:
            return ()
        if not role.selectors:
            return role.rules
        if key not in self._gathered:
            self._gathered[key] = self._gather(key, role, {key})
        return self._gathered[key]

    def _gather(self, key: Key, role: Role, seen: set[Key]) -> tuple[PolicyRule, ...]:
        """The rules of all cluster roles with the labels; they may gather in their turn, but not in a circle."""
        found: dict[PolicyRule, None] = {}
        for other, candidate in sorted(self._roles.items()):
            if (
                other[0]
                or other in seen
                or not any(matches_labels(s, candidate.labels) for s in role.selectors)
            ):
                continue
            rules = self._gather(other, candidate, seen | {other}) if candidate.selectors else candidate.rules
            found.update(dict.fromkeys(rules))
        return tuple(found)


def _selectors(thing: Thing) -> tuple[LabelSelector, ...]:
    wanted = (thing.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    try:
        return tuple(msgspec.convert(selector, LabelSelector) for selector in wanted)
    except msgspec.ValidationError:
        return ()


def _binding(resource: str, key: Key, thing: Thing) -> Binding:
    role = thing.get("roleRef") or {}
    kind = str(role.get("kind", ""))
    where = "" if kind == "ClusterRole" else key[0]
    subjects = (_subject(subject, key[0]) for subject in thing.get("subjects") or ())
    return Binding(
        resource,
        key,
        kind,
        (where, str(role.get("name", ""))),
        tuple(subject for subject in subjects if subject[1]),
    )


def _subject(subject: Thing, namespace: str) -> tuple[str, str]:
    kind, name = str(subject.get("kind", "")), str(subject.get("name", ""))
    if kind == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
    return kind, name


def _reason(binding: Binding, subject: tuple[str, str]) -> str:
    namespace, name = binding.key
    kind = "RoleBinding" if binding.kind == "rolebindings" else "ClusterRoleBinding"
    shown = f"{name}/{namespace}" if namespace else name
    return (
        f'RBAC: allowed by {kind} "{shown}" of {binding.role_kind} "{binding.role[1]}"'
        f' to {subject[0]} "{subject[1]}"'
    )


def forbidden_message(user: User, asked: Attributes) -> str:
    """Why a request is forbidden, in the words that Kubernetes uses."""
    if asked.path:
        return f'forbidden: User "{user.name}" cannot {asked.verb} path "{asked.path}"'
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    shown = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    named = f' "{asked.name}"' if asked.name else ""
    return (
        f'{shown}{named} is forbidden: User "{user.name}" cannot {asked.verb} resource "{asked.target}"'
        f' in API group "{asked.group}" {where}'
    )
