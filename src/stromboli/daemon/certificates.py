"""Certificates that a server makes for itself: an authority for years, and a certificate for months."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LASTS = timedelta(days=3650)
AUTHORITY_RESERVE = timedelta(days=365)
LASTS = timedelta(days=90)
RESERVE = timedelta(days=30)
"""How long before the end a new one is made."""
_SKEW = timedelta(hours=1)
"""For clocks that are late."""


class Keys(NamedTuple):
    """All of it as PEM. `authority` may hold two while one takes over from the other; the first one signs."""

    authority: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def issue(names: Iterable[str], now: datetime, old: Keys | None = None) -> Keys:
    """A certificate for these names and addresses, from the old authority as long as that one lasts."""
    authority, authority_key, trusted = _authority(now, old)
    key = ec.generate_private_key(ec.SECP256R1())
    names = sorted(set(names))
    certificate = (
        _builder(x509.Name([_common_name(names[0])]), authority.subject, key, now, LASTS)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    return Keys(trusted, _pem_of(authority_key), certificate.public_bytes(Encoding.PEM), _pem_of(key))


def due(keys: Keys, names: Iterable[str], now: datetime) -> bool:
    """Whether it is time for new ones: they end soon, or were made for other names, or cannot be read."""
    try:
        authority, certificate = _first(keys.authority), _first(keys.certificate)
        certificate.verify_directly_issued_by(authority)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        covered = {str(name.value) for name in found}
        load_pem_private_key(keys.authority_key, None)
        load_pem_private_key(keys.key, None)
    except (ValueError, TypeError, x509.ExtensionNotFound, InvalidSignature, UnsupportedAlgorithm):
        return True
    ends_soon = certificate.not_valid_after_utc - now < RESERVE
    authority_ends = authority.not_valid_after_utc - now < AUTHORITY_RESERVE
    return ends_soon or authority_ends or not set(names) <= covered


def _authority(now: datetime, old: Keys | None) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey, bytes]:
    """Who signs, with which key, and all who are to be trusted."""
    if old is not None:
        try:
            certificate, key = _first(old.authority), load_pem_private_key(old.authority_key, None)
        except (ValueError, TypeError):
            return _new_authority(now, b"")
        if isinstance(key, ec.EllipticCurvePrivateKey):
            if certificate.not_valid_after_utc - now >= AUTHORITY_RESERVE:
                return certificate, key, old.authority
            return _new_authority(now, certificate.public_bytes(Encoding.PEM))
    return _new_authority(now, b"")


def _new_authority(
    now: datetime, trusted_still: bytes
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([_common_name("stromboli authority")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, now, AUTHORITY_LASTS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate, key, certificate.public_bytes(Encoding.PEM) + trusted_still


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _SKEW)
        .not_valid_after(now.astimezone(UTC) + lasts)
    )


def _common_name(name: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(NameOID.COMMON_NAME, name[:64])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _first(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificates(pem)[0]


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
