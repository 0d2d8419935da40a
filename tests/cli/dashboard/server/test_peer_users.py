"""Whose a connection on this machine is, as the system tells it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from stromboli.cli.dashboard.server import peer_users
from stromboli.cli.dashboard.server.peer_users import PeerUsers, user_of

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:C001 0100007F:1CCD 01 00000000:00000000 00:00000000 00000000  1234        0 1
   1: 0100007F:C002 0100007F:1CCD 06 00000000:00000000 00:00000000 00000000     0        0 2
   2: 0000000000000000FFFF00000100007F:C003 0000000000000000FFFF00000100007F:1CCD 01 0:0 0:0 0  77 0 3
"""
OWN = ("127.0.0.1", 0x1CCD)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tcp").write_text(TABLE)
    monkeypatch.setattr(peer_users, "TABLES", (tmp_path / "tcp", tmp_path / "missing"))


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_connection_of_ours_is_ours(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine does not have that family")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        peer, own = client.getsockname()[:2], client.getpeername()[:2]
        if user_of(peer, own) is None:
            pytest.skip("this system does not tell whose connections are")
        assert user_of(peer, own) == os.getuid()
        assert not PeerUsers().refuses(peer, own)


@pytest.mark.usefixtures("table")
def test_the_table_is_read_for_both_families() -> None:
    assert user_of(("127.0.0.1", 0xC001), OWN) == 1234
    assert user_of(("127.0.0.1", 0xC003), OWN) == 77
    assert user_of(("127.0.0.1", 0xC009), OWN) is None


@pytest.mark.usefixtures("table")
def test_a_connection_that_is_being_closed_is_nobodys_though_the_table_says_root() -> None:
    assert user_of(("127.0.0.1", 0xC002), OWN) is None
    assert PeerUsers(is_known=True).refuses(("127.0.0.1", 0xC002), OWN)


@pytest.mark.usefixtures("table")
def test_other_users_are_refused_unless_nothing_is_told() -> None:
    assert PeerUsers(is_known=True).refuses(("127.0.0.1", 0xC001), OWN)
    assert not PeerUsers(is_known=False).refuses(("127.0.0.1", 0xC001), OWN)


@pytest.mark.usefixtures("table")
def test_who_became_root_by_sudo_has_his_browser_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    assert not PeerUsers(is_known=True).refuses(("127.0.0.1", 0xC001), OWN)
