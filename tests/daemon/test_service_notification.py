"""Whoever starts us is told that we are ready, and nobody else can tell it in our name."""

from __future__ import annotations

import socket
from pathlib import Path

from stromboli.daemon.service_notification import READY, ServiceNotification


def test_who_started_us_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        environment = {"NOTIFY_SOCKET": path}
        notification = ServiceNotification(environment)
        notification.tell(READY, "STATUS=at https://127.0.0.1:1")
        assert listener.recv(1000) == b"READY=1\nSTATUS=at https://127.0.0.1:1"
        assert environment == {}


def test_an_address_without_a_file_works_too() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("")  # any free one
        ServiceNotification({"NOTIFY_SOCKET": "@" + listener.getsockname()[1:].decode()}).tell(READY)
        assert listener.recv(1000) == b"READY=1"


def test_it_does_not_matter_if_nobody_listens(tmp_path: Path) -> None:
    for address in ("", "relative", str(tmp_path / "gone"), "/" + "x" * 200):
        ServiceNotification({"NOTIFY_SOCKET": address}).tell(READY)
