"""The webhook server's keys: an authority that is valid for years, and a certificate that is valid for months."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from stromboli.daemon.certificates import Authority, Pair, hosts_of, new_authority

AUTHORITY_VALIDITY = timedelta(days=3650)
AUTHORITY_RENEW_BEFORE = timedelta(days=365)
VALIDITY = timedelta(days=90)
RENEW_BEFORE = timedelta(days=30)
"""How long before it ends a certificate is renewed."""


class Keys(NamedTuple):
    """All as PEM. `authority` holds two certificates while one replaces the other; the first one signs."""

    authority: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def issue(names: Iterable[str], now: datetime, old: Keys | None = None) -> Keys:
    """A certificate for these names and addresses, signed by the old authority while that one is valid."""
    pair = _valid_authority(old, now)
    if pair is None:
        new = new_authority("stromboli admission", now, AUTHORITY_VALIDITY)
        previous = old.authority if old is not None and _authority(old) is not None else b""
        pair = Pair(new.certificate + previous, new.key)
    names = sorted(set(names))
    signed = Authority(pair).for_server(names[0], names, now, VALIDITY)
    return Keys(*pair, *signed)


def needs_renewal(keys: Keys, names: Iterable[str], now: datetime) -> bool:
    """Whether the keys end soon, are for other names, or cannot be read."""
    authority = _authority(keys)
    certificate = authority.signed(keys.certificate) if authority is not None else None
    if authority is None or certificate is None or not _is_key(keys.key):
        return True
    ends_soon = certificate.not_valid_after_utc - now < RENEW_BEFORE
    authority_ends = authority.ends - now < AUTHORITY_RENEW_BEFORE
    return ends_soon or authority_ends or not set(names) <= hosts_of(certificate)


def _valid_authority(old: Keys | None, now: datetime) -> Pair | None:
    authority = _authority(old) if old is not None else None
    if old is None or authority is None or authority.ends - now < AUTHORITY_RENEW_BEFORE:
        return None
    return Pair(old.authority, old.authority_key)


def _authority(keys: Keys) -> Authority | None:
    try:
        return Authority(Pair(keys.authority, keys.authority_key))
    except (ValueError, TypeError):
        return None


def _is_key(pem: bytes) -> bool:
    try:
        load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        return False
    return True
