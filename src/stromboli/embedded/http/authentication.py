"""Authenticates requests by bearer token or client certificate, and impersonation."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from stromboli.daemon.request_connection import prove
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.auth.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    Tokens,
    service_account_groups,
    user_of_certificate,
)
from stromboli.embedded.http.user_shares import RETRY_AFTER, share_of
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.rbac.policy_rules import User
from stromboli.embedded.store.object_store import Store

LONGEST_TOKEN = 8192


class Authenticator:
    """The users that tokens and certificates stand for."""

    def __init__(self, store: Store, tokens: Tokens, authorizer: RequestAuthorizer):
        self._store = store
        self._tokens = tokens
        self._authorizer = authorizer

    def user(self, request: web.BaseRequest) -> User:
        """The user of a request, or the one that it impersonates."""
        user = self._authenticate(request)
        if user is None:
            raise StatusError(401, "Unauthorized")
        share = share_of(user)
        if not prove(request, share.owner, share.connections):
            raise StatusError(
                429,
                f"{share.subject} {share.connections} connections open, all with a request under way:"
                " close some, or try again later",
                retry_after=RETRY_AFTER,
            )
        return self._impersonated(user, request.headers)

    def _authenticate(self, request: web.BaseRequest) -> User | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and len(token) < LONGEST_TOKEN:
            return self.user_of_token(token.strip())
        if request.transport is not None and (peer := request.transport.get_extra_info("peercert")):
            return user_of_certificate(peer)
        return None

    def user_of_token(self, token: str) -> User | None:
        claim = self._tokens.verify(token)
        if claim is None:
            return None
        user, uid = claim
        if uid:  # tokens expire with their service account
            _, _, namespace, name = user.name.split(":", 3)
            record = self._store.get("serviceaccounts", namespace, name)
            return user if record is not None and record.meta.uid == uid else None
        return user

    def _impersonated(self, user: User, headers: Any) -> User:
        name = headers.get("Impersonate-User")
        groups = tuple(headers.getall("Impersonate-Group", ()))
        if not name:
            if groups:
                raise bad_request(
                    "Impersonate-Group: says for which groups, but not for whom (Impersonate-User)"
                )
            return user
        self._authorizer.check_impersonation(user, name, groups)
        if name == ANONYMOUS.name:
            return User(name, groups)
        return User(name, (*(groups or service_account_groups(name)), AUTHENTICATED))

    def review(self, content: Any) -> dict[str, Any]:
        """The answer to a TokenReview."""
        spec = content.get("spec") if isinstance(content, dict) else None
        token = spec.get("token") if isinstance(spec, dict) else None
        user = self.user_of_token(token) if isinstance(token, str) else None
        status: dict[str, Any] = {"authenticated": user is not None}
        if user is not None:
            status["user"] = user.info()
        version = "authentication.k8s.io/v1"
        return {"kind": "TokenReview", "apiVersion": version, "metadata": {}, "status": status}
