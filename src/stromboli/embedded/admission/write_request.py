"""A write: its object, its author and its options, from the router to admission."""

from __future__ import annotations

import uuid
from typing import NamedTuple

from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.rbac.policy_rules import User


class WriteRequest(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    """That of the URL, which the object must have; empty for a POST, which takes it from the object."""
    user: User
    subresource: str = ""
    dry_run: bool = False
    manager: str = "unknown"
    validation: str = "Warn"
    server_side_apply: bool = False
    """Apply updates managedFields itself."""
    operation: str = ""
    """CREATE, UPDATE or DELETE, for admission."""
    size: int = 0
    """Bytes of the body."""


def admission_review(request: WriteRequest, content: Content | None, old: Content | None) -> Content:
    """The AdmissionReview that webhooks are sent."""
    kind = request.kind
    version = {"group": kind.group, "version": kind.version}
    body: Content = {
        "uid": str(uuid.uuid4()),
        "kind": {**version, "kind": kind.kind},
        "resource": {**version, "resource": kind.plural},
        "requestKind": {**version, "kind": kind.kind},
        "requestResource": {**version, "resource": kind.plural},
        "name": request.name,
        "operation": request.operation,
        "userInfo": request.user.info(),
        "object": content,
        "oldObject": old,
        "dryRun": request.dry_run,
        "options": None,
    }
    if request.namespace:
        body["namespace"] = request.namespace
    if request.subresource:
        body["subResource"] = body["requestSubResource"] = request.subresource
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": body}
