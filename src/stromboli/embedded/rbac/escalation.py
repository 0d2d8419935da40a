"""Nobody grants more than they have, unless they were given the verbs `escalate` and `bind` for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from stromboli.embedded.rbac.authorizer import ALL_RULES, MASTERS, Authorizer
from stromboli.embedded.rbac.policy_rules import GROUP, Attributes, PolicyRule, User, rules_of

MOST = 100_000
"""Single rights in one role that are looked at; one with more is for those who may escalate."""
SHOWN = 5


def escalation_error(rights: Authorizer, user: User, resource: str, thing: dict[str, Any]) -> str:
    """Why somebody may not write this role or binding; empty if they may."""
    meta = thing.get("metadata") or {}
    namespace, name = str(meta.get("namespace") or ""), str(meta.get("name") or "")
    if MASTERS in user.groups:
        return ""
    if resource in ("roles", "clusterroles"):
        asked = Attributes("escalate", GROUP, resource, "", name, namespace)
        rules = ALL_RULES if thing.get("aggregationRule") else rules_of(thing)
    else:
        role = thing.get("roleRef") or {}
        kind, named = str(role.get("kind", "")), str(role.get("name", ""))
        plural = "clusterroles" if kind == "ClusterRole" else "roles"
        asked = Attributes("bind", GROUP, plural, "", named, namespace)
        rules = rights.rules_of_role(kind, namespace, named)
    if rights.authorize(user, asked).allowed:
        return ""
    if not rules and asked.verb == "bind" and not rights.has_role(kind, namespace, named):
        return f'{kind} "{named}" not found: whoever may not bind any role binds one that is there'
    over = list(islice(_beyond(rules, rights.rules_for(user, namespace)), SHOWN))
    if not over:
        return ""
    return f'user "{user.name}" is attempting to grant RBAC permissions not currently held: {", ".join(over)}'


def _beyond(rules: Iterable[PolicyRule], own: list[PolicyRule]) -> Iterator[str]:
    """What of these rules is not covered by one's own."""
    parts = chain.from_iterable(rule.parts() for rule in rules)
    for part in islice(parts, MOST):
        if not any(mine.allows(part) for mine in own):
            yield f"{part.verb} {part.path or part.target}"
    if next(parts, None) is not None:
        yield f"more than {MOST} rights in one role"
