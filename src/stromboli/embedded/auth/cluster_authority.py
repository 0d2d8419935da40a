"""The certificate authority of an embedded cluster, created at the first start, and the certificates it signs."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from stromboli.daemon import certificates
from stromboli.daemon.certificates import Pair, new_authority

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
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.certificate_file.exists() or not (folder / "ca.key").exists():
            self._write("ca", new_authority("stromboli-ca", datetime.now(UTC), LIFETIME))
        pair = Pair(self.certificate_file.read_bytes(), (folder / "ca.key").read_bytes())
        self._authority = certificates.Authority(pair)

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


def write_secret(path: Path, content: bytes) -> None:
    """Atomically, readable by the owner alone."""
    unfinished = path.with_suffix(path.suffix + ".new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    unfinished.write_bytes(content)
    unfinished.rename(path)
