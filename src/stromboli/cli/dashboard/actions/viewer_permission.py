"""Whether a viewer may do what an action does, asked of the API server with his own session."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from stromboli.cli.cluster.cluster_errors import right_text
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, NoResponse, Request

SELF_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW_TIMEOUT = 5.0
"""Seconds for the API server to answer."""


class Permission(NamedTuple):
    """A right to objects of a kind, or to one of them."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""


async def missing_permission(session: ClusterSession, user: str, *ways: Permission) -> str:
    """Which right is missing, if the viewer has none of these; empty if he has one, or it cannot be asked."""
    for way in ways:
        if await _is_allowed(session, way):
            return ""
    first = ways[0]
    return right_text(user, first.verb, first.resource.plural, first.resource.group, first.namespace)


async def _is_allowed(session: ClusterSession, asked: Permission) -> bool:
    attributes = {
        "verb": asked.verb,
        "group": asked.resource.group,
        "resource": asked.resource.plural,
        "namespace": asked.namespace,
        "name": asked.name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
    request = Request("POST", SELF_REVIEWS, msgspec.json.encode(review))
    try:
        answer = msgspec.json.decode(await session.client.send(request, REVIEW_TIMEOUT))
    except (ApiError, NoResponse, msgspec.DecodeError):
        return True  # whoever tries is told by the API server
    status = answer.get("status") if isinstance(answer, dict) else None
    return not isinstance(status, dict) or status.get("allowed") is True
