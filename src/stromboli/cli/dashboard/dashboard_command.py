"""`stromboli dashboard`: a cluster in a browser."""

from __future__ import annotations

import asyncio
import enum
import html
import re
import signal
import sys
import tempfile
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage, print_note
from stromboli.cli.cluster.cluster_errors import FORBIDDEN, refusal_text
from stromboli.cli.cluster.on_cluster import on_cluster

if TYPE_CHECKING:
    import ssl

    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.dashboard.server.listening_address import Listening
    from stromboli.cli.dashboard.viewers.one_time_code import OneTimeCode

OPENING_SECONDS = 10.0
"""For a browser to start and read the file that leads it to the dashboard."""


_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?")


class ViewerCheck(enum.StrEnum):
    """How viewers are known."""

    CODE = "code"
    TOKEN = "token"


@on_cluster()
async def dashboard(
    session: ClusterSession,
    listen_address: str = typer.Option(
        "",
        "--listen-address",
        metavar="HOST:PORT",
        show_default="127.0.0.1:7373",
        help="Where to listen; port 0 is any that is free.",
    ),
    authentication: ViewerCheck = typer.Option(
        ViewerCheck.CODE,
        "--authentication",
        help="code: who opens the printed address looks with your rights; token: everybody with a token of his own.",
    ),
    allowed_host: list[str] = typer.Option(
        [],
        "--allowed-host",
        metavar="NAME",
        show_default=False,
        help="Another name of this server; repeatable.",
    ),
    tls_cert_file: Path | None = typer.Option(
        None, "--tls-cert-file", metavar="FILE", show_default=False, help="Speak HTTPS with this certificate."
    ),
    tls_private_key_file: Path | None = typer.Option(
        None, "--tls-private-key-file", metavar="FILE", show_default=False, help="And this key."
    ),
    open_browser: bool = typer.Option(
        False, "--open", show_default=False, help="Open it in the browser of this machine."
    ),
) -> None:
    """Show a cluster in a browser, live: queues, jobs, nodes, topology, the policy and what the scheduler decides.

    It runs beside you, with your rights, until Ctrl-C. The printed address has a code that lets one browser in; a new
    one is printed when it was used. A cluster of `stromboli up` has a dashboard already: without options, its address
    is printed.

    With --authentication token it serves others, as it does in a cluster: each sees and changes what the rights of his
    token allow.

    Exit status 0, 1 if the cluster refuses or does not answer, 2 for a wrong command line.
    """
    tls = _tls(tls_cert_file, tls_private_key_file)
    for name in allowed_host:
        _check_host(name)
    is_plain = not (listen_address or allowed_host or tls or session.namespace_given)
    if session.running is not None and is_plain and authentication is ViewerCheck.CODE:
        from stromboli.cli.dashboard.address_file import read_address

        if address := read_address(Path(session.running.data)):
            _announce(address)
            if open_browser:
                await _open_browser(address)
            return
    from stromboli.cli.dashboard.server.listening_address import LOOPBACK_HOSTS, listen, one_time_code

    host, port = _place(listen_address, authentication)
    if host not in LOOPBACK_HOSTS and tls is None:
        print_note(
            "viewers' tokens travel in plain text: let a proxy with TLS stand in front, or give --tls-cert-file"
        )
    listening = await listen(host, port, tls)
    code = None
    if authentication is ViewerCheck.CODE:
        session = await _within_rights(session)
        code = one_time_code(listening, lambda address: print_note(f"for another browser: {address}"))
    address = listening.address(code.current if code is not None else "")
    _announce(address)
    opening = asyncio.create_task(_open_browser(address)) if open_browser else None
    try:
        await _serve(session, listening, code, tuple(allowed_host))
    finally:
        if opening is not None:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)


def _place(listen_address: str, authentication: ViewerCheck) -> tuple[str, int | None]:
    """Where to listen: on loopback unless somebody says otherwise."""
    from stromboli.cli.dashboard.server.listening_address import LOOPBACK, LOOPBACK_HOSTS
    from stromboli.daemon.flags import BadFlag
    from stromboli.daemon.listening_sockets import split_address

    if not listen_address:
        return LOOPBACK, None
    try:
        host, port = split_address(listen_address)
    except BadFlag as error:
        raise Usage(f"--listen-address {error}") from None
    if host not in LOOPBACK_HOSTS and authentication is ViewerCheck.CODE:
        raise Usage(
            f"--listen-address {listen_address}: whoever has the code has your rights, so others must not reach it;"
            " --authentication token lets everybody look with rights of his own"
        )
    return host or "", port


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Usage("--tls-cert-file and --tls-private-key-file go together")
    import ssl

    for option, file in (("--tls-cert-file", certificate), ("--tls-private-key-file", key)):
        try:
            file.open("rb").close()
        except OSError as error:
            raise Usage(f"{option} {file}: {error.strerror}") from None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise Usage(
            f"--tls-cert-file {certificate} and --tls-private-key-file {key} are no certificate and its key, in PEM:"
            f" {error}"
        ) from None
    return context


def _check_host(name: str) -> None:
    """`Usage` if it is none that a browser could send."""
    if not _HOST.fullmatch(name):
        raise Usage(
            f"--allowed-host {name[:100]!r}: is no name such as dashboard.example.com, with a port or without"
        )


async def _within_rights(session: ClusterSession) -> ClusterSession:
    """Of one namespace, where the user may not list the pods of all."""
    from stromboli.cli.cluster.cluster_kinds import PODS
    from stromboli.kube.request import ApiError

    if session.namespace_given:
        return session
    try:
        await session.client.list(PODS, limit=1)
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        print_note(f"{refusal_text(error)}; only namespace {session.namespace} is shown, -n names another")
        return replace(session, namespace_given=True)
    return session


def _announce(address: str) -> None:
    typer.echo(f"The dashboard is at {address}")
    sys.stdout.flush()


async def _open_browser(address: str) -> None:
    """Through a file that is ours alone: everybody on a machine can read the command line of a browser."""
    with tempfile.TemporaryDirectory(prefix="stromboli-dashboard-") as folder:
        page = Path(folder) / "dashboard.html"
        target = html.escape(address)
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">\n')
        if not await asyncio.to_thread(webbrowser.open, page.as_uri()):
            print_note("no browser could be opened; open the address yourself")
            return
        await asyncio.sleep(OPENING_SECONDS)


async def _serve(
    session: ClusterSession, listening: Listening, code: OneTimeCode | None, allowed_hosts: tuple[str, ...]
) -> None:
    from stromboli.cli.dashboard.server.dashboard_server import DashboardServer
    from stromboli.extensions import load_catalog

    server = DashboardServer(session, load_catalog(), listening, code, allowed_hosts=allowed_hosts)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        await server.start()
        await server.cluster.start()
        await stopped.wait()
    finally:
        await server.stop()
