"""The certificate authority of an embedded cluster, created at the first start, and the certificates it signs."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from stromboli.daemon.certificates import Authority, Pair, new_authority
from stromboli.embedded.data_files import DataError, make_folder, read_file, write_secret

LIFETIME = timedelta(days=3650)
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class ClusterAuthority:
    """Signs certificates for the server and for clients; keys are readable by their owner alone."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.certificate_file = folder / "ca.crt"
        make_folder(folder)
        if not os.path.lexists(self.certificate_file):  # its key is written before it
            self._write("ca", new_authority("stromboli-ca", datetime.now(UTC), LIFETIME))
        self._authority = self._load()

    def _load(self) -> Authority:
        key_file = self.folder / "ca.key"
        remedy = (
            f"restore both, or delete {self.certificate_file} and {key_file}: new ones are made at the next start,"
            " and client certificates that the old one signed are no longer accepted"
        )
        pair = Pair(read_file(self.certificate_file, remedy), read_file(key_file, remedy))
        try:
            x509.load_pem_x509_certificates(pair.certificate)
        except ValueError:  # whose text is a link to a FAQ
            raise DataError(f"{self.certificate_file}: no certificate in PEM; {remedy}") from None
        try:
            load_pem_private_key(pair.key, None)
        except (TypeError, ValueError, UnsupportedAlgorithm):
            raise DataError(f"{key_file}: no private key in PEM without a password; {remedy}") from None
        try:
            authority = Authority(pair)
        except ValueError as error:
            raise DataError(
                f"{key_file}: no key of the authority in {self.certificate_file}: {error}; {remedy}"
            ) from None
        now = datetime.now(UTC)
        if not authority.begins <= now <= authority.ends:
            raise DataError(
                f"{self.certificate_file}: valid from {authority.begins:%Y-%m-%d} to {authority.ends:%Y-%m-%d}, and it"
                f" is {now:%Y-%m-%d}; set the clock of this machine, or {remedy}"
            )
        return authority

    def server_context(self, hosts: Sequence[str]) -> ssl.SSLContext:
        """TLS for the server; client certificates are optional."""
        chain, key = self.issue("server", "stromboli", hosts=hosts)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(chain, key)
        context.load_verify_locations(self.certificate_file)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def issue(
        self, file: str, name: str, groups: Sequence[str] = (), hosts: Sequence[str] | None = None
    ) -> tuple[Path, Path]:
        """A certificate and its key, as files: a server's if there are hosts, otherwise a client's."""
        now = datetime.now(UTC)
        if hosts is None:
            pair = self._authority.for_client(name, groups, now, LIFETIME)
        else:
            pair = self._authority.for_server(name, (*SERVER_NAMES, *hosts), now, LIFETIME)
        return self._write(file, pair)

    def _write(self, file: str, pair: Pair) -> tuple[Path, Path]:
        paths = self.folder / f"{file}.crt", self.folder / f"{file}.key"
        write_secret(paths[1], pair.key)
        write_secret(paths[0], pair.certificate)
        return paths
