"""Who asks: the administrator by a token, a service account by one that we signed, others by a certificate."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stromboli.embedded.rbac import User

ISSUER = "https://kubernetes.default.svc"
LONGEST = 24 * 3600 * 365
SHORTEST = 600
DEFAULT_LIFE = 3600
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
SYSTEM = User("system:apiserver", (MASTERS, AUTHENTICATED))
"""The server itself."""


class Claims(msgspec.Struct):
    """What a service account's token says."""

    sub: str
    exp: int
    uid: str = ""
    aud: tuple[str, ...] = ()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Tokens:
    """Makes and reads tokens, signed with a key that only this server has."""

    def __init__(self, key: bytes, admin: str, clock: Callable[[], float] = time.time):
        self._key = key
        self._admin = admin.encode()
        self._clock = clock
        self._known: dict[str, tuple[Claims, User]] = {}

    def issue(
        self, namespace: str, account: str, uid: str, seconds: int, audiences: tuple[str, ...] = ()
    ) -> tuple[str, float]:
        """A token for a service account, and when it expires."""
        now = int(self._clock())
        expires = now + min(max(seconds, SHORTEST), LONGEST)
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
        head = _encoded(msgspec.json.encode({"alg": "HS256", "typ": "JWT"}))
        signed = f"{head}.{_encoded(msgspec.json.encode(claims))}"
        return f"{signed}.{_encoded(self._sign(signed))}", expires

    def _sign(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode(errors="replace"), hashlib.sha256)

    def read(self, token: str) -> tuple[User, str] | None:
        """Whose it is, and the uid of the service account if it is one's; nothing if it is nobody's."""
        if hmac.compare_digest(token.encode(errors="replace"), self._admin):
            return User("admin", (MASTERS, AUTHENTICATED)), ""
        known = self._known.get(token) or self._verified(token)
        if known is None or known[0].exp < self._clock():
            return None
        return known[1], known[0].uid

    def _verified(self, token: str) -> tuple[Claims, User] | None:
        signed, _, signature = token.rpartition(".")
        try:
            if not hmac.compare_digest(_decoded(signature), self._sign(signed)):
                return None
            claims = msgspec.json.decode(_decoded(signed.partition(".")[2]), type=Claims)
        except (binascii.Error, ValueError):
            return None
        if ISSUER not in claims.aud:
            return None
        groups = (*groups_of_account(claims.sub), AUTHENTICATED)
        if len(self._known) > 1000:
            self._known.clear()
        self._known[token] = claims, User(claims.sub, groups, claims.uid)
        return self._known[token]


def groups_of_account(name: str) -> tuple[str, ...]:
    """The groups that every service account is in; none of any other user."""
    parts = name.split(":")
    if len(parts) != 4 or parts[:2] != ["system", "serviceaccount"]:
        return ()
    return "system:serviceaccounts", f"system:serviceaccounts:{parts[2]}"


def user_of_certificate(certificate: Mapping[str, Any] | None) -> User | None:
    """A client certificate that our authority signed: its common name, and its organisations as groups."""
    if not certificate:
        return None
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for key, value in subject if key == "commonName"), "")
    groups = tuple(value for key, value in subject if key == "organizationName")
    return User(name, (*groups, AUTHENTICATED)) if name else None
