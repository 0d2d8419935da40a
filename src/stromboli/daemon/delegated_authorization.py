"""Who may use an endpoint: the API server decides, as it does for Kubernetes' own components.

A bearer token becomes a user by a TokenReview, and a SubjectAccessReview says whether roles let that user get or post
the path, or read the object that the request is about. So rights on our endpoints are given like any others, and there
are no passwords of our own.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from stromboli.daemon.delegated_reviews import review_access, review_token
from stromboli.daemon.log_format import about
from stromboli.daemon.request_connection import is_local
from stromboli.kube.request import Api, ApiError, NoResponse

log = logging.getLogger(__name__)

REMEMBERED_FOR = 10.0
"""Seconds for which an answer of the API server is used again."""
MOST_REMEMBERED = 256
"""Answers; beyond that the oldest goes."""
MOST_REVIEWS = 4
"""Requests about which the API server is being asked at a time; beyond that they are refused."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Refusal(NamedTuple):
    """The response to a request that is not allowed."""

    status: int
    message: str


class ObjectAccess(NamedTuple):
    """The right to read an object: whoever may get it, or list all of its kind there, may."""

    group: str
    resource: str
    namespace: str
    name: str

    @property
    def attributes(self) -> list[dict[str, Any]]:
        where = {"group": self.group, "resource": self.resource, "namespace": self.namespace}
        asked = [{"verb": "get", "name": self.name}, {"verb": "list"}]
        return [{"resourceAttributes": {**where, **verb}} for verb in asked]

    @property
    def right(self) -> str:
        """As Kubernetes says which one is missing."""
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'get resource "{self.resource}" in API group "{self.group}" {where}'


class ListAccess(NamedTuple):
    """The right to list all objects of a kind, in all namespaces."""

    group: str
    resource: str

    @property
    def attributes(self) -> list[dict[str, Any]]:
        return [{"resourceAttributes": {"group": self.group, "resource": self.resource, "verb": "list"}}]

    @property
    def right(self) -> str:
        return f'list resource "{self.resource}" in API group "{self.group}" at the cluster scope'


class PathAccess(NamedTuple):
    """The right to use a path."""

    verb: str
    path: str

    @property
    def attributes(self) -> list[dict[str, Any]]:
        return [{"nonResourceAttributes": {"path": self.path, "verb": self.verb}}]

    @property
    def right(self) -> str:
        return f'{self.verb} path "{self.path}": grant access with a ClusterRole that has nonResourceURLs'


RequiredAccess = ObjectAccess | ListAccess | PathAccess
_Key = tuple[bytes, RequiredAccess]
"""The hash of a token, and what it is used for."""


class DelegatedAuthorization:
    """Lets requests through whose bearer token the API server knows and whose user it allows them."""

    def __init__(
        self,
        api: Api,
        clock: Callable[[], float] = time.monotonic,
        rights: str = "deploy/components/debug-endpoints",
    ) -> None:
        """`rights` is where those to ask the API server are given."""
        self._api = api
        self._clock = clock
        self._rights = rights
        self._remembered: dict[_Key, tuple[float, Refusal | None]] = {}
        """Until when, and what."""
        self._reviews = asyncio.Semaphore(MOST_REVIEWS)

    def required(self, handler: Handler) -> Handler:
        """A handler that is called for allowed requests alone."""

        async def respond(request: web.Request) -> web.StreamResponse:
            refusal = await self.refusal(request)
            if refusal is None:
                return await handler(request)
            headers = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else {}
            return web.json_response({"error": refusal.message}, status=refusal.status, headers=headers)

        return respond

    async def refusal(self, request: web.Request, access: RequiredAccess | None = None) -> Refusal | None:
        """Why a request is not allowed; None if it is. Without `access`, the path is what takes a right."""
        if not is_local(request):
            return Refusal(
                403, "answered over loopback alone, as there is no TLS here: kubectl port-forward leads there"
            )
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not (token := token.strip()) or not token.isascii():
            return Refusal(
                401, "a bearer token is needed: kubectl create token, or the token in a kubeconfig file"
            )
        wanted = access or PathAccess(request.method.lower(), request.path)
        key = hashlib.sha256(token.encode()).digest(), wanted
        until, known = self._remembered.get(key, (0.0, None))
        if self._clock() < until:
            return known
        if self._reviews.locked():
            return Refusal(429, f"{MOST_REVIEWS} others are being checked; try again")
        async with self._reviews:
            try:
                refusal = await self._review(token, wanted)
            except (ApiError, NoResponse, msgspec.DecodeError) as error:
                return Refusal(
                    503,
                    f"the API server does not say whether this is allowed: {error};"
                    f" the rights to ask it are in {self._rights}",
                )
        self._remember(key, refusal)
        return refusal

    async def _review(self, token: str, access: RequiredAccess) -> Refusal | None:
        subject = await review_token(self._api, token)
        if subject is None:
            return Refusal(401, "the API server does not know this token")
        allowed = await review_access(self._api, subject, access.attributes)
        name = subject["user"]
        log.info("asked for access", extra=about(user=name, access=access.right, allowed=allowed))
        return None if allowed else Refusal(403, f'User "{name}" cannot {access.right}')

    def _remember(self, key: _Key, refusal: Refusal | None) -> None:
        self._remembered.pop(key, None)
        if len(self._remembered) >= MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[key] = self._clock() + REMEMBERED_FOR, refusal
