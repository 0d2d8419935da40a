"""Questions to the API server about others: whose token it is, and what that user may do."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.kube.request import Api, Request

REVIEW_TIMEOUT = 10.0
"""Seconds for the API server to answer."""
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_IDENTITY = ("uid", "groups", "extra")
"""What a user is besides the name."""

Subject = dict[str, Any]
"""A user as access reviews name him."""


class _TokenStatus(msgspec.Struct, gc=False):
    authenticated: bool = False
    user: dict[str, Any] = {}


class _AccessStatus(msgspec.Struct, gc=False):
    allowed: bool = False
    denied: bool = False


class _TokenReview(msgspec.Struct, gc=False):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessReview(msgspec.Struct, gc=False):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)


async def review_token(api: Api, token: str) -> Subject | None:
    """The user of a bearer token; None if the API server does not know it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = msgspec.json.decode(await _create(api, TOKEN_REVIEWS, review), type=_TokenReview).status
    if not answer.authenticated:
        return None
    user = answer.user
    return {
        "user": str(user.get("username") or ""),
        **{key: user[key] for key in _IDENTITY if user.get(key)},
    }


async def review_access(api: Api, subject: Subject, attributes: list[dict[str, Any]]) -> bool:
    """Whether a user may do any of these; what is denied in words of its own ends the search."""
    for asked in attributes:
        spec = {**subject, **asked}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        said = msgspec.json.decode(await _create(api, ACCESS_REVIEWS, review), type=_AccessReview).status
        if said.denied or said.allowed:
            return said.allowed and not said.denied
    return False


async def _create(api: Api, path: str, review: dict[str, Any]) -> bytes:
    return await api.send(Request("POST", path, msgspec.json.encode(review)), REVIEW_TIMEOUT)
