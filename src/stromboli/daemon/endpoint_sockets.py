"""The sockets of a daemon's endpoints, opened before anything is served on them.

An address that is in use, or a certificate that cannot be read, ends a process at its start. Serving needs a library
that takes long to import; who connects meanwhile waits.
"""

from __future__ import annotations

import socket
import ssl

from stromboli.daemon.common_options import CommonOptions
from stromboli.daemon.flags import BadFlag
from stromboli.daemon.listening_sockets import open_sockets, split_address

HEALTH, METRICS = "health", "metrics"


class EndpointSockets:
    """Those that the flags enable."""

    def __init__(self, options: CommonOptions, debugging: bool = False) -> None:
        """With `debugging`, there are routes besides the metrics."""
        addresses = {
            HEALTH: options.healthz_address if options.enable_healthz else None,
            METRICS: options.listen_address if options.enable_metrics or debugging else None,
        }
        self._addresses = {name: address for name, address in addresses.items() if address is not None}
        self._sockets: dict[str, list[socket.socket]] = {}
        self.tls = _tls(options) if HEALTH in self._addresses else None
        """For health alone."""
        self.ports: dict[str, int] = {}
        """The port of each server, by name."""

    async def open(self) -> None:
        """Listen, unless that was done already; `OSError` if an address is in use."""
        if self.ports:
            return
        for name, address in self._addresses.items():
            sockets = self._sockets[name] = await open_sockets(*split_address(address))
            self.ports[name] = int(sockets[0].getsockname()[1])

    def take(self) -> dict[str, list[socket.socket]]:
        """The sockets by name, for somebody who serves and closes them."""
        taken, self._sockets = self._sockets, {}
        return taken

    def close(self) -> None:
        """Close those that nobody took."""
        for sockets in self.take().values():
            for listening in sockets:
                listening.close()


def _tls(options: CommonOptions) -> ssl.SSLContext | None:
    """TLS for the health endpoint, if all three files are given."""
    if not (options.ca_cert_file and options.tls_cert_file and options.tls_private_key_file):
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=options.ca_cert_file)
    except OSError as error:
        raise BadFlag(f"--ca-cert-file: {options.ca_cert_file}: no certificates: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    certificate, key = options.tls_cert_file, options.tls_private_key_file
    try:
        context.load_cert_chain(certificate, key, password="")  # never ask on a terminal
    except OSError as error:
        raise BadFlag(
            f"--tls-cert-file {certificate}, --tls-private-key-file {key}: not a certificate and its key as PEM"
            f" without a password: {error}"
        ) from None
    return context
