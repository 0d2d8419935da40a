"""Authorization of requests by the stored RBAC objects."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from stromboli.api.go_scalars import timestamp
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.rbac.access_reviews import BadReview, complete_review
from stromboli.embedded.rbac.authorizer import RBAC_RESOURCES, Authorizer, forbidden_message
from stromboli.embedded.rbac.escalation import escalation_error
from stromboli.embedded.rbac.policy_rules import GROUP, Attributes, User
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change

_RBAC_KINDS = {f"{kind}.{GROUP}": kind for kind in RBAC_RESOURCES}


class RequestAuthorizer:
    """An RBAC authorizer, kept up with the store."""

    def __init__(self, store: Store):
        self._authorizer = Authorizer()
        for resource, kind in _RBAC_KINDS.items():
            for record in store.list(resource):
                with store.reading(record):
                    self._authorizer.put(kind, record.object())
        store.on_commit(self._on_commit)

    def _on_commit(self, batch: Sequence[Change]) -> None:
        for change in batch:
            kind = _RBAC_KINDS.get(change.key.resource)
            if kind is None:
                continue
            if change.after is not None:
                self._authorizer.put(kind, change.after.object())
            else:
                self._authorizer.drop(kind, change.key.namespace, change.key.name)

    def check(self, user: User, attributes: Attributes) -> None:
        """An error if the user may not do this."""
        # RBAC treats a namespace as an object of that namespace; messages name it as cluster-scoped.
        is_namespace = (attributes.group, attributes.resource) == ("", "namespaces")
        scoped = attributes._replace(namespace=attributes.name) if is_namespace else attributes
        if not self._authorizer.authorize(user, scoped).allowed:
            raise _forbidden(user, attributes)

    def allows(self, user: User, attributes: Attributes) -> bool:
        """Whether the user may do this."""
        return self._authorizer.authorize(user, attributes).allowed

    def check_path(self, user: User, path: str, verb: str) -> None:
        """For non-resource URLs."""
        attributes = Attributes(verb, path=path or "/")
        if not self._authorizer.authorize(user, attributes).allowed:
            raise _forbidden(user, attributes)

    def check_impersonation(self, user: User, name: str, groups: Sequence[str]) -> None:
        """The user must have the `impersonate` verb on the user and on each group."""
        needed = [Attributes("impersonate", "", "groups", "", group) for group in groups]
        segments = name.split(":")
        if name.startswith("system:serviceaccount:") and len(segments) == 4:
            needed.append(Attributes("impersonate", "", "serviceaccounts", "", segments[3], segments[2]))
        else:
            needed.append(Attributes("impersonate", "", "users", "", name))
        for attributes in needed:
            if not self._authorizer.authorize(user, attributes).allowed:
                raise _forbidden(user, attributes)

    def check_escalation(self, user: User, kind: Kind, content: dict[str, Any]) -> None:
        """A role or binding may not grant more than its author may do."""
        if kind.id in _RBAC_KINDS and (why := escalation_error(self._authorizer, user, kind.plural, content)):
            raise forbidden(kind, str(content["metadata"].get("name", "")), why)

    def review(self, user: User, kind: Kind, body: Any, namespace: str) -> dict[str, Any]:
        """The answer to a SubjectAccessReview and its relatives."""
        try:
            if not isinstance(body, dict):
                raise BadReview("a review must be an object")
            reviewed = {**body, "apiVersion": kind.api_version}
            answer = complete_review(self._authorizer, user, kind.kind, reviewed, namespace)
            if kind.kind == "SelfSubjectReview":  # by which clients learn what time it is here
                answer["metadata"] = {**answer["metadata"], "creationTimestamp": timestamp(time.time())}
            return answer
        except BadReview as error:
            raise StatusError(422, f'{kind.kind} "" is invalid: {error}') from None


def _forbidden(user: User, attributes: Attributes) -> StatusError:
    details = {"group": attributes.group, "kind": attributes.resource, "name": attributes.name[:253]}
    details = {key: value for key, value in details.items() if value}
    return StatusError(403, forbidden_message(user, attributes), details=details)
