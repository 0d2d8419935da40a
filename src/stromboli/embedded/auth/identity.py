"""Users: the administrator's token, signed tokens of service accounts, and client certificates."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stromboli.embedded.rbac.authorizer import MASTERS
from stromboli.embedded.rbac.policy_rules import User

ISSUER = "https://kubernetes.default.svc"
LONGEST_LIFETIME = 24 * 3600 * 365
SHORTEST_LIFETIME = 600
DEFAULT_LIFETIME = 3600
SHORTEST_SECRET = 16
"""Characters of the administrator's token and of the key that signs tokens."""
AUTHENTICATED = "system:authenticated"

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
APISERVER_USER = User("system:apiserver", (MASTERS, AUTHENTICATED))
"""For writes of the server itself."""


class Claims(msgspec.Struct):
    """The claims of a service account's token that are checked."""

    sub: str
    exp: int
    uid: str = ""
    aud: tuple[str, ...] = ()


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Tokens:
    """Issues and verifies tokens, signed with the key of this server."""

    def __init__(self, key: bytes, admin: str, clock: Callable[[], float] = time.time):
        """`ValueError` if the key or the administrator's token could be guessed."""
        if min(len(key), len(admin)) < SHORTEST_SECRET:
            raise ValueError(f"keys and tokens have at least {SHORTEST_SECRET} characters")
        self._key = key
        self._admin = admin.encode()
        self._clock = clock
        self._verified: dict[str, tuple[Claims, User]] = {}

    def issue(
        self, namespace: str, account: str, uid: str, seconds: int, audiences: tuple[str, ...] = ()
    ) -> tuple[str, float]:
        """A token for a service account, and when it expires."""
        now = int(self._clock())
        expires = now + min(max(seconds, SHORTEST_LIFETIME), LONGEST_LIFETIME)
        claims = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "aud": list(audiences) or [ISSUER],
            "iat": now,
            "nbf": now,
            "exp": expires,
            "uid": uid,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}},
        }
        head = encode_base64url(msgspec.json.encode({"alg": "HS256", "typ": "JWT"}))
        signed = f"{head}.{encode_base64url(msgspec.json.encode(claims))}"
        return f"{signed}.{encode_base64url(self._sign(signed))}", expires

    def _sign(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="replace"), hashlib.sha256)

    def verify(self, token: str) -> tuple[User, str] | None:
        """The user, and the uid of the service account if it is one; None if the token is invalid."""
        if hmac.compare_digest(token.encode(errors="replace"), self._admin):
            return User("admin", (MASTERS, AUTHENTICATED)), ""
        verified = self._verified.get(token) or self._verify_signature(token)
        if verified is None or verified[0].exp < self._clock():
            return None
        claims, user = verified
        return user, claims.uid

    def _verify_signature(self, token: str) -> tuple[Claims, User] | None:
        signed, _, signature = token.rpartition(".")
        try:
            if not hmac.compare_digest(decode_base64url(signature), self._sign(signed)):
                return None
            claims = msgspec.json.decode(decode_base64url(signed.partition(".")[2]), type=Claims)
        except (binascii.Error, ValueError):
            return None
        if ISSUER not in claims.aud:
            return None
        groups = (*service_account_groups(claims.sub), AUTHENTICATED)
        if len(self._verified) > 1000:
            self._verified.clear()
        self._verified[token] = claims, User(claims.sub, groups, claims.uid)
        return self._verified[token]


def service_account_groups(name: str) -> tuple[str, ...]:
    """The groups of a service account; none for other users."""
    parts = name.split(":")
    if len(parts) != 4 or parts[:2] != ["system", "serviceaccount"]:
        return ()
    return "system:serviceaccounts", f"system:serviceaccounts:{parts[2]}"


def user_of_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    """Of a verified client certificate: the common name, and the organizations as groups."""
    if not certificate:
        return None
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for key, value in subject if key == "commonName"), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    return User(name, (*groups, AUTHENTICATED)) if name else None
