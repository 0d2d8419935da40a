"""Who may do what: roles and bindings as they are stored, put to every request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Refusal, forbidden
from stromboli.embedded.rbac import GROUP, Asked, BadReview, Rights, User, answer, escalation, refusal
from stromboli.embedded.rbac.authorizer import KINDS
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change

_STORED = {f"{kind}.{GROUP}": kind for kind in KINDS}


class Access:
    """Rights, kept up with the store."""

    def __init__(self, store: Store):
        self.rights = Rights()
        for resource, kind in _STORED.items():
            for record in store.all(resource):
                self.rights.put(kind, record.object())
        store.subscribe(self._heard)

    def _heard(self, batch: Sequence[Change]) -> None:
        for change in batch:
            kind = _STORED.get(change.key.resource)
            if kind is None:
                continue
            if change.after is not None:
                self.rights.put(kind, change.after.object())
            else:
                self.rights.drop(kind, change.key.namespace, change.key.name)

    def check(self, user: User, asked: Asked) -> None:
        """Refuse what this user may not do."""
        # RBAC treats a namespace as an object of that namespace; messages name it as cluster-scoped.
        scoped = asked._replace(namespace=asked.name) if _is_namespace(asked) else asked
        if not self.rights.allowed(user, scoped).allowed:
            details = {"group": asked.group, "kind": asked.resource, "name": asked.name}
            given = {key: value for key, value in details.items() if value}
            raise Refusal(403, refusal(user, asked), details=given)

    def check_path(self, user: User, path: str, verb: str) -> None:
        """The same for paths that are no objects."""
        asked = Asked(verb, path=path or "/")
        if not self.rights.allowed(user, asked).allowed:
            raise Refusal(403, refusal(user, asked), details={})

    def check_impersonation(self, user: User, name: str, groups: Sequence[str]) -> None:
        """Speaking for others is a right like any other."""
        wanted = [Asked("impersonate", "", "groups", "", group) for group in groups]
        parts = name.split(":")
        if name.startswith("system:serviceaccount:") and len(parts) == 4:
            wanted.append(Asked("impersonate", "", "serviceaccounts", "", parts[3], parts[2]))
        else:
            wanted.append(Asked("impersonate", "", "users", "", name))
        for asked in wanted:
            if not self.rights.allowed(user, asked).allowed:
                raise Refusal(
                    403, refusal(user, asked), details={"name": asked.name[:253], "kind": asked.resource}
                )

    def check_grant(self, user: User, kind: Kind, content: dict[str, Any]) -> None:
        """Nobody writes roles that give more than they have."""
        if kind.id in _STORED and (why := escalation(self.rights, user, kind.plural, content)):
            raise forbidden(kind, str(content["metadata"].get("name", "")), why)

    def review(self, user: User, kind: Kind, body: Any, namespace: str) -> dict[str, Any]:
        """The answer to a question about rights."""
        try:
            if not isinstance(body, dict):
                raise BadReview("a review must be an object")
            reviewed = {**body, "apiVersion": kind.api_version}
            return answer(self.rights, user, kind.kind, reviewed, namespace)
        except BadReview as error:
            raise Refusal(422, f'{kind.kind} "" is invalid: {error}') from None


def _is_namespace(asked: Asked) -> bool:
    return (asked.group, asked.resource) == ("", "namespaces")
