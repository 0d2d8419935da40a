"""Real servers on 127.0.0.1 for one test: good ones, and every bad one that a caller must survive."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CERTIFICATE = Path(__file__).parent / "self_signed.pem"
"""A key and a certificate for 127.0.0.1 that are good for nothing but tests."""
LONG = 60.0
"""Seconds after which a bad server hangs up: longer than any caller should wait."""


@dataclass
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Reply = bytes | tuple[int, bytes]


@dataclass
class Server:
    """Where it listens, what it was asked, and what it says: set `answer` to change that."""

    url: str
    answer: Callable[[Asked], Reply]
    asked: list[Asked] = field(default_factory=list)


@contextlib.contextmanager
def serving(
    answer: Callable[[Asked], Reply],
    headers: dict[str, str] | None = None,
    secure: bool = False,
    host: str = "127.0.0.1",
) -> Iterator[Server]:
    """A well-behaved server that says what `answer` does; `secure` with a certificate that nobody vouches for."""
    server = Server("", answer)

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(self.command, self.path, dict(self.headers), self.rfile.read(length))
            server.asked.append(asked)
            reply = server.answer(asked)
            status, body = reply if isinstance(reply, tuple) else (200, reply)
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        do_GET = do_POST = _reply

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # a caller that does not believe us hangs up
                super().handle()

        def log_message(self, *_: Any) -> None:
            pass

    listener = ThreadingHTTPServer((host, 0), Handler)
    listener.daemon_threads = True
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        listener.socket = context.wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    server.url = f"http{'s' * secure}://{host}:{listener.server_address[1]}"
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join(5)


@contextlib.contextmanager
def behaving(badly: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """A server that does what it likes with each connection until the test is over; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.02)
    over = threading.Event()

    def handle(link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            link.settimeout(LONG)
            badly(link, over)

    def serve() -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                link, _ = listener.accept()
                threading.Thread(target=handle, args=(link,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join(5)
        listener.close()


def silent(link: socket.socket, over: threading.Event) -> None:
    """Takes the request and says nothing."""
    over.wait(LONG)


def dripping(link: socket.socket, over: threading.Event) -> None:
    """Sends a header without end, a byte at a time: no single read takes long."""
    link.recv(65536)
    link.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not over.wait(0.02):
        link.sendall(b"x")


def dripping_body(link: socket.socket, over: threading.Event) -> None:
    """Sends a body a byte at a time."""
    link.recv(65536)
    link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not over.wait(0.02):
        link.sendall(b" ")


def huge(link: socket.socket, over: threading.Event) -> None:
    """Sends a body without end, as fast as it can."""
    link.recv(65536)
    link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    block = b" " * 65536
    while not over.is_set():
        link.sendall(block)


def rubbish(link: socket.socket, over: threading.Event) -> None:
    """Speaks no HTTP."""
    link.recv(65536)
    link.sendall(bytes(range(256)) * 4)


def cut_short(link: socket.socket, over: threading.Event) -> None:
    """Promises more than it sends."""
    link.recv(65536)
    link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")


def closing(link: socket.socket, over: threading.Event) -> None:
    """Hangs up at once."""


BAD = [silent, dripping, dripping_body, huge, rubbish, cut_short, closing]


def dead() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
