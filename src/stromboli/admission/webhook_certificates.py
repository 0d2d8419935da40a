"""The webhook server's keys: an authority that lasts for years, and a certificate that lasts for months."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from stromboli.daemon.certificates import Authority, Pair, hosts_of, new_authority

AUTHORITY_LASTS = timedelta(days=3650)
AUTHORITY_RESERVE = timedelta(days=365)
LASTS = timedelta(days=90)
RESERVE = timedelta(days=30)
"""How long before the end a new one is made."""


class Keys(NamedTuple):
    """All of it as PEM. `authority` may hold two while one takes over from the other; the first one signs."""

    authority: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def issue(names: Iterable[str], now: datetime, old: Keys | None = None) -> Keys:
    """A certificate for these names and addresses, from the old authority as long as that one lasts."""
    pair = _kept_authority(old, now)
    if pair is None:
        made = new_authority("stromboli admission", now, AUTHORITY_LASTS)
        still = old.authority if old is not None and _authority(old) is not None else b""
        pair = Pair(made.certificate + still, made.key)
    names = sorted(set(names))
    signed = Authority(pair).for_server(names[0], names, now, LASTS)
    return Keys(*pair, *signed)


def due(keys: Keys, names: Iterable[str], now: datetime) -> bool:
    """Whether it is time for new ones: they end soon, or were made for other names, or cannot be read."""
    authority = _authority(keys)
    certificate = authority.signed(keys.certificate) if authority is not None else None
    if authority is None or certificate is None or not _is_key(keys.key):
        return True
    ends_soon = certificate.not_valid_after_utc - now < RESERVE
    authority_ends = authority.ends - now < AUTHORITY_RESERVE
    return ends_soon or authority_ends or not set(names) <= hosts_of(certificate)


def _kept_authority(old: Keys | None, now: datetime) -> Pair | None:
    authority = _authority(old) if old is not None else None
    if old is None or authority is None or authority.ends - now < AUTHORITY_RESERVE:
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
