"""`stromboli dashboard` as a process: where it listens, what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stromboli.cli.dashboard.address_file import NAME, read_address, remove_address, write_address
from tests.cli.conftest import Run
from tests.embedded.background_server import background_server


def write_kubeconfig(folder: Path) -> None:
    """Of a cluster that nobody answers for."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))


@contextmanager
def started(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The command with a cluster; interrupted at the end, unless it has ended."""
    environment = os.environ | {
        "KUBECONFIG": str(folder / "kubeconfig"),
        "XDG_RUNTIME_DIR": str(folder),
        "HOME": str(folder),
    }
    command = [sys.executable, "-m", "stromboli", "dashboard", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    match = re.fullmatch(r"The dashboard is at (\S+)\n", process.stdout.readline())
    assert match is not None, process.communicate()
    return match[1]


@pytest.mark.slow
def test_the_printed_address_opens_the_dashboard_until_it_is_interrupted(tmp_path: Path) -> None:
    with (
        background_server(tmp_path, crds=True),
        started(tmp_path, "--listen-address", "127.0.0.1:0") as process,
    ):
        address = address_of(process)
        assert address.startswith("http://127.0.0.1:")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address) as page:
            assert page.status == 200
            assert "code=" not in page.url
            assert b"Overview" in page.read()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(address)
        assert process.stderr is not None
        another = process.stderr.readline()
        assert re.search(r"for another browser: http://127\.0\.0\.1:\d+/\?code=\S+", another), another
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.slow
def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_kubeconfig(tmp_path)
        with started(tmp_path, "--listen-address", f"127.0.0.1:{port}") as process:
            _, error = process.communicate(timeout=30)
            assert process.returncode == 1
            assert "in use" in error
            assert "127.0.0.1:0 takes any free port" in error


@pytest.mark.parametrize("address", ["0.0.0.0:0", ":0", "[::]:0", "10.0.0.1:0", "example.com:80"])
def test_with_the_code_of_one_user_nobody_else_is_served(run: Run, tmp_path: Path, address: str) -> None:
    write_kubeconfig(tmp_path)
    done = run("dashboard", "--kubeconfig", tmp_path / "kubeconfig", "--listen-address", address)
    assert done.exit_code == 2
    assert "--authentication token" in done.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--listen-address", "nonsense"], "is no address"),
        (["--listen-address", "127.0.0.1:99999"], "is no address"),
        (["--tls-cert-file", "none.pem"], "go together"),
        (
            ["--tls-cert-file", "none.pem", "--tls-private-key-file", "none.pem"],
            "--tls-cert-file none.pem: No such",
        ),
        (["--allowed-host", "bad host/"], "--allowed-host 'bad host/'"),
        (["--authentication", "password"], "password"),
    ],
)
def test_a_wrong_command_line_is_refused(run: Run, tmp_path: Path, options: list[str], told: str) -> None:
    write_kubeconfig(tmp_path)
    done = run("dashboard", "--kubeconfig", tmp_path / "kubeconfig", *options)
    assert done.exit_code == 2
    assert told in done.output


def test_the_address_of_a_cluster_is_for_its_user_alone(tmp_path: Path) -> None:
    assert read_address(tmp_path) == ""
    write_address(tmp_path, "http://127.0.0.1:7373/?code=a")
    write_address(tmp_path, "http://127.0.0.1:7373/?code=b")
    assert read_address(tmp_path) == "http://127.0.0.1:7373/?code=b"
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == [NAME]
    remove_address(tmp_path)
    remove_address(tmp_path)
    assert read_address(tmp_path) == ""


def test_a_damaged_address_is_read_in_part_at_most(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff" * 10_000)
    assert len(read_address(tmp_path)) <= 1024
