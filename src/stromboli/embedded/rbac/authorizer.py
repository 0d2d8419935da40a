"""The RBAC authorizer: roles and bindings, indexed by subject, so that a request looks only at bindings of its user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.embedded.rbac.policy_rules import Attributes, PolicyRule, RuleIndex, User, rules_of

MASTERS = "system:masters"
"""Members of this group may do everything."""
Content = dict[str, Any]
Key = tuple[str, str]
"""Namespace, empty for the whole cluster, and name."""

RBAC_RESOURCES = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")


ALL_RULES = PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), non_resource_urls=("*",))


MAX_RULES = 10_000
"""Rules of a user that are listed."""


class Decision(NamedTuple):
    """Whether a request is allowed, and by which binding."""

    allowed: bool
    reason: str = ""


DENIED = Decision(False)


class Role(NamedTuple):
    rules: RuleIndex
    labels: dict[str, str]
    selectors: tuple[LabelSelector, ...] = ()
    """An aggregated role has the rules of the cluster roles that these select instead of its own."""


class Binding(NamedTuple):
    kind: str
    key: Key
    role_kind: str
    role: Key
    subjects: tuple[tuple[str, str], ...]


_NO_RULES = RuleIndex(())
_NO_BINDINGS: dict[tuple[str, Key], Binding] = {}


class Authorizer:
    """Decides requests by the roles and bindings that were `put` and not dropped."""

    def __init__(self, objects: Iterable[tuple[str, Content]] = ()) -> None:
        self._roles: dict[Key, Role] = {}
        self._bindings: dict[tuple[str, Key], Binding] = {}
        self._by_subject: dict[tuple[str, str], dict[tuple[str, Key], Binding]] = {}
        """Bindings by user or group."""
        self._aggregated: dict[Key, RuleIndex] = {}
        for resource, content in objects:
            self.put(resource, content)

    # -- changes

    def put(self, resource: str, content: Content) -> None:
        """A role or binding was added or updated; `resource` is one of `RBAC_RESOURCES`."""
        meta = content.get("metadata") or {}
        key = str(meta.get("namespace") or ""), str(meta.get("name") or "")
        if resource in ("roles", "clusterroles"):
            rules = RuleIndex(rules_of(content))
            self._roles[key] = Role(rules, dict(meta.get("labels") or {}), _selectors(content))
            self._aggregated.clear()
        else:
            self._drop_binding(resource, key)
            binding = self._bindings[resource, key] = _binding(resource, key, content)
            for subject in binding.subjects:
                self._by_subject.setdefault(subject, {})[resource, key] = binding

    def drop(self, resource: str, namespace: str, name: str) -> None:
        if resource in ("roles", "clusterroles"):
            self._roles.pop((namespace, name), None)
            self._aggregated.clear()
        else:
            self._drop_binding(resource, (namespace, name))

    def _drop_binding(self, resource: str, key: Key) -> None:
        binding = self._bindings.pop((resource, key), None)
        for subject in set(binding.subjects) if binding else ():
            bindings = self._by_subject[subject]
            del bindings[resource, key]
            if not bindings:
                del self._by_subject[subject]

    # -- decisions

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if MASTERS in user.groups:
            return Decision(True)
        asked: set[Key] = set()
        for binding, subject in self._bindings_of(user, attributes.namespace):
            if binding.role not in asked and self._role_rules(binding.role).allows(attributes):
                return Decision(True, _reason(binding, subject))
            asked.add(binding.role)
        return DENIED

    def rules_for(self, user: User, namespace: str) -> list[PolicyRule]:
        """The rules of a user in a namespace and at the cluster scope, `MAX_RULES` at most."""
        if MASTERS in user.groups:
            return list(ALL_RULES)
        roles = dict.fromkeys(bound.role for bound, _ in self._bindings_of(user, namespace))
        rules = chain.from_iterable(self._role_rules(role).rules for role in roles)
        return list(dict.fromkeys(islice(rules, MAX_RULES)))

    def rules_of_role(self, kind: str, namespace: str, name: str) -> tuple[PolicyRule, ...] | None:
        """The rules of a role, aggregated ones included; None if there is no such role."""
        key = "" if kind == "ClusterRole" else namespace, name
        return self._role_rules(key).rules if key in self._roles else None

    # -- lookups

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[Binding, tuple[str, str]]]:
        for subject in [("User", user.name), *(("Group", group) for group in user.groups)]:
            for binding in self._by_subject.get(subject, _NO_BINDINGS).values():
                if binding.kind == "clusterrolebindings" or (namespace and binding.key[0] == namespace):
                    yield binding, subject

    def _role_rules(self, key: Key) -> RuleIndex:
        role = self._roles.get(key)
        if role is None:
            return _NO_RULES
        if not role.selectors:
            return role.rules
        if key not in self._aggregated:
            self._aggregated[key] = RuleIndex(self._aggregate(role, {key}))
        return self._aggregated[key]

    def _aggregate(self, role: Role, seen: set[Key]) -> tuple[PolicyRule, ...]:
        """The rules of all selected cluster roles, which may be aggregated too; cycles are cut."""
        aggregated: dict[PolicyRule, None] = {}
        for other, candidate in sorted(self._roles.items()):
            selected = any(matches_labels(selector, candidate.labels) for selector in role.selectors)
            if other[0] or other in seen or not selected:
                continue
            nested = (
                self._aggregate(candidate, seen | {other}) if candidate.selectors else candidate.rules.rules
            )
            aggregated.update(dict.fromkeys(nested))
        return tuple(aggregated)


def _selectors(role: Content) -> tuple[LabelSelector, ...]:
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    try:
        return tuple(msgspec.convert(selector, LabelSelector) for selector in selectors)
    except msgspec.ValidationError:
        return ()


def _binding(resource: str, key: Key, content: Content) -> Binding:
    role = content.get("roleRef") or {}
    kind = str(role.get("kind", ""))
    namespace = "" if kind == "ClusterRole" else key[0]
    subjects = (_subject(subject, key[0]) for subject in content.get("subjects") or ())
    return Binding(
        resource,
        key,
        kind,
        (namespace, str(role.get("name", ""))),
        tuple(subject for subject in subjects if subject[1]),
    )


def _subject(subject: Content, namespace: str) -> tuple[str, str]:
    kind, name = str(subject.get("kind", "")), str(subject.get("name", ""))
    if kind == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
    return kind, name


def _reason(binding: Binding, subject: tuple[str, str]) -> str:
    namespace, name = binding.key
    kind = "RoleBinding" if binding.kind == "rolebindings" else "ClusterRoleBinding"
    target = f"{name}/{namespace}" if namespace else name
    return (
        f'RBAC: allowed by {kind} "{target}" of {binding.role_kind} "{binding.role[1]}"'
        f' to {subject[0]} "{subject[1]}"'
    )


def forbidden_message(user: User, attributes: Attributes) -> str:
    """The message of a forbidden request, as Kubernetes words it."""
    if attributes.path:
        return f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
    scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    target = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    name = f' "{attributes.name}"' if attributes.name else ""
    return (
        f'{target}{name} is forbidden: User "{user.name}" cannot {attributes.verb} resource "{attributes.target}"'
        f' in API group "{attributes.group}" {scope}'
    )
