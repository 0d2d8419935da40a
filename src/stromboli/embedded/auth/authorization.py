"""Who may do what: roles and bindings as they are stored, put to every request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Refusal, forbidden
from stromboli.embedded.rbac import (
    GROUP,
    Attributes,
    Authorizer,
    BadReview,
    User,
    complete_review,
    escalation_error,
    forbidden_message,
)
from stromboli.embedded.rbac.authorizer import RBAC_RESOURCES
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change

_STORED = {f"{kind}.{GROUP}": kind for kind in RBAC_RESOURCES}


class Access:
    """The authorizer, kept up with the store."""

    def __init__(self, store: Store):
        self.authorizer = Authorizer()
        for resource, kind in _STORED.items():
            for record in store.all(resource):
                self.authorizer.put(kind, record.object())
        store.subscribe(self._heard)

    def _heard(self, batch: Sequence[Change]) -> None:
        for change in batch:
            kind = _STORED.get(change.key.resource)
            if kind is None:
                continue
            if change.after is not None:
                self.authorizer.put(kind, change.after.object())
            else:
                self.authorizer.drop(kind, change.key.namespace, change.key.name)

    def check(self, user: User, attributes: Attributes) -> None:
        """Refuse what this user may not do."""
        # RBAC treats a namespace as an object of that namespace; messages name it as cluster-scoped.
        scoped = attributes._replace(namespace=attributes.name) if _is_namespace(attributes) else attributes
        if not self.authorizer.authorize(user, scoped).allowed:
            details = {"group": attributes.group, "kind": attributes.resource, "name": attributes.name}
            given = {key: value for key, value in details.items() if value}
            raise Refusal(403, forbidden_message(user, attributes), details=given)

    def check_path(self, user: User, path: str, verb: str) -> None:
        """The same for paths that are no objects."""
        attributes = Attributes(verb, path=path or "/")
        if not self.authorizer.authorize(user, attributes).allowed:
            raise Refusal(403, forbidden_message(user, attributes), details={})

    def check_impersonation(self, user: User, name: str, groups: Sequence[str]) -> None:
        """Speaking for others is a right like any other."""
        wanted = [Attributes("impersonate", "", "groups", "", group) for group in groups]
        parts = name.split(":")
        if name.startswith("system:serviceaccount:") and len(parts) == 4:
            wanted.append(Attributes("impersonate", "", "serviceaccounts", "", parts[3], parts[2]))
        else:
            wanted.append(Attributes("impersonate", "", "users", "", name))
        for attributes in wanted:
            if not self.authorizer.authorize(user, attributes).allowed:
                raise Refusal(
                    403,
                    forbidden_message(user, attributes),
                    details={"name": attributes.name[:253], "kind": attributes.resource},
                )

    def check_grant(self, user: User, kind: Kind, content: dict[str, Any]) -> None:
        """Nobody writes roles that give more than they have."""
        if kind.id in _STORED and (why := escalation_error(self.authorizer, user, kind.plural, content)):
            raise forbidden(kind, str(content["metadata"].get("name", "")), why)

    def review(self, user: User, kind: Kind, body: Any, namespace: str) -> dict[str, Any]:
        """The answer to an access review."""
        try:
            if not isinstance(body, dict):
                raise BadReview("a review must be an object")
            reviewed = {**body, "apiVersion": kind.api_version}
            return complete_review(self.authorizer, user, kind.kind, reviewed, namespace)
        except BadReview as error:
            raise Refusal(422, f'{kind.kind} "" is invalid: {error}') from None


def _is_namespace(attributes: Attributes) -> bool:
    return (attributes.group, attributes.resource) == ("", "namespaces")
