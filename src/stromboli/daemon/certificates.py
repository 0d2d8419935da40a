"""Certificates that a server issues itself: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
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

_SKEW = timedelta(hours=1)
"""How long before now certificates begin, for clocks that are behind."""


class Pair(NamedTuple):
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Issues certificates for servers and their clients."""

    def __init__(self, pair: Pair) -> None:
        """`ValueError` if the pair is no authority. Of several certificates the first one signs."""
        try:
            key = load_pem_private_key(pair.key, None)
            self._certificate = x509.load_pem_x509_certificates(pair.certificate)[0]
            public = self._certificate.public_key()
        except (TypeError, UnsupportedAlgorithm) as error:  # of a key with a password, or of an unknown sort
            raise ValueError(str(error)) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of an authority is one of an elliptic curve")
        if key.public_key() != public:
            raise ValueError("the key belongs to another certificate")
        self._key = key

    @property
    def begins(self) -> datetime:
        return self._certificate.not_valid_before_utc

    @property
    def ends(self) -> datetime:
        return self._certificate.not_valid_after_utc

    def signed(self, certificate: bytes) -> x509.Certificate | None:
        """The certificate, if this authority signed it."""
        try:
            loaded = x509.load_pem_x509_certificates(certificate)[0]
            loaded.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return None
        return loaded

    def for_server(self, name: str, hosts: Iterable[str], now: datetime, lasts: timedelta) -> Pair:
        """For a server under these names and addresses."""
        names = x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys(hosts)])
        return self._sign(_name(name), ExtendedKeyUsageOID.SERVER_AUTH, names, now, lasts)

    def for_client(self, name: str, groups: Sequence[str], now: datetime, lasts: timedelta) -> Pair:
        """For a user of that name, in these groups."""
        return self._sign(_name(name, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None, now, lasts)

    def _sign(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
        now: datetime,
        lasts: timedelta,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(subject, self._certificate.subject, key, now, lasts)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(signer, critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def new_authority(name: str, now: datetime, lasts: timedelta) -> Pair:
    """A self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, subject, key, now, lasts)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def hosts_of(certificate: x509.Certificate) -> set[str]:
    """The names and addresses that a certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    return {str(name.value) for name in names}


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


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(name: str, groups: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(certificate.public_bytes(Encoding.PEM), pem)
