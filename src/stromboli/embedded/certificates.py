"""The authority of an embedded cluster and the certificates it signs: made at the first start, and kept."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = datetime.timedelta(days=3650)
NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class Authority:
    """Signs for the server and for its clients. Keys are readable by their owner alone."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.file = folder / "ca.crt"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.file.exists() or not (folder / "ca.key").exists():
            key = ec.generate_private_key(ec.SECP256R1())
            name = _name("stromboli-ca")
            authority = (
                _builder(name, name, key.public_key())
                .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
                .add_extension(_usage(signs=True), critical=True)
                .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
                .sign(key, hashes.SHA256())
            )
            _write(folder / "ca.key", _pem(key))
            _write(self.file, authority.public_bytes(serialization.Encoding.PEM))
        self._certificate = x509.load_pem_x509_certificate(self.file.read_bytes())
        loaded = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        self._key = loaded

    def server(self, hosts: Sequence[str]) -> ssl.SSLContext:
        """TLS for the server; clients may show a certificate of ours."""
        chain, key = self.folder / "server.crt", self.folder / "server.key"
        self.issue("server", "stromboli", (), hosts)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(chain, key)
        context.load_verify_locations(self.file)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def issue(
        self, file: str, name: str, groups: Sequence[str] = (), hosts: Sequence[str] | None = None
    ) -> tuple[Path, Path]:
        """A certificate and its key, as files: a server's if there are hosts, otherwise a client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if hosts is None else ExtendedKeyUsageOID.SERVER_AUTH
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._certificate.public_key())
        builder = (
            _builder(_name(name, groups), self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
            )
        )
        if hosts is not None:
            names = x509.SubjectAlternativeName([_host(one) for one in dict.fromkeys((*NAMES, *hosts))])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        paths = self.folder / f"{file}.crt", self.folder / f"{file}.key"
        _write(paths[1], _pem(key))
        _write(paths[0], certificate.public_bytes(serialization.Encoding.PEM))
        return paths


def _name(name: str, groups: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFE)
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


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_suffix(path.suffix + ".new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    unfinished.write_bytes(content)
    unfinished.rename(path)
