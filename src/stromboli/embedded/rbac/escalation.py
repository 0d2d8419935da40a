"""Escalation check: users grant only permissions that they have, unless they have the verb `escalate` or `bind`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from stromboli.embedded.rbac.authorizer import ALL_RULES, MASTERS, Authorizer
from stromboli.embedded.rbac.policy_rules import GROUP, Attributes, PolicyRule, RuleIndex, User, rules_of

MAX_PERMISSIONS = 100_000
"""Permissions of a role, and comparisons with rules of its author; a larger role needs the verb `escalate`."""
MAX_SHOWN = 5


def escalation_error(authorizer: Authorizer, user: User, resource: str, content: dict[str, Any]) -> str:
    """Why the user may not write this role or binding; empty if they may."""
    meta = content.get("metadata") or {}
    namespace, name = str(meta.get("namespace") or ""), str(meta.get("name") or "")
    if MASTERS in user.groups:
        return ""
    if resource in ("roles", "clusterroles"):
        attributes = Attributes("escalate", GROUP, resource, "", name, namespace)
        rules: tuple[PolicyRule, ...] | None
        rules = ALL_RULES if content.get("aggregationRule") else rules_of(content)
    else:
        role = content.get("roleRef") or {}
        kind, role_name = str(role.get("kind", "")), str(role.get("name", ""))
        plural = "clusterroles" if kind == "ClusterRole" else "roles"
        attributes = Attributes("bind", GROUP, plural, "", role_name, namespace)
        rules = authorizer.rules_of_role(kind, namespace, role_name)
    if authorizer.authorize(user, attributes).allowed:
        return ""
    if rules is None:
        return f'{kind} "{role_name}" not found: only a user with the verb bind may bind a role that does not exist'
    missing = list(islice(_not_covered(rules, authorizer.rules_for(user, namespace)), MAX_SHOWN))
    if not missing:
        return ""
    return (
        f'user "{user.name}" is attempting to grant RBAC permissions not currently held: {", ".join(missing)}'
    )


def _not_covered(rules: Iterable[PolicyRule], held: list[PolicyRule]) -> Iterator[str]:
    """Permissions of these rules that no held rule allows."""
    index, left = RuleIndex(tuple(held)), MAX_PERMISSIONS
    for permission in chain.from_iterable(rule.permissions() for rule in rules):
        left -= 1 + len(index.candidates(permission))
        if left < 0:
            yield f"more than {MAX_PERMISSIONS} rights in one role"
            return
        if not index.allows(permission):
            yield f"{permission.verb} {permission.path or permission.target}"
