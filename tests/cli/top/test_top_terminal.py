"""`stromboli top` in a terminal of its own: it is drawn live, obeys keys, and leaves the terminal as it was."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import JSON, Request
from stromboli.simulator.cluster_notation import nodes
from tests.embedded.background_server import background_server
from tests.manifests import group

PATIENCE = 60.0
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()][A-B0-2])")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("watched")
    with background_server(folder, crds=True):
        create(folder / "kubeconfig", "/api/v1/nodes", nodes("n1 cpu=8,memory=32Gi")[0])
        yield folder / "kubeconfig"


def create(kubeconfig: Path, path: str, manifest: dict[str, Any]) -> None:
    async def send() -> None:
        async with Client(find_access(str(kubeconfig))) as client:
            await client.send_with_retries(Request("POST", path, json.dumps(manifest).encode(), JSON))

    asyncio.run(send())


class Terminal:
    """A pseudo-terminal with a command in it."""

    def __init__(self, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stromboli", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        )
        self.text = ""

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def wait_for(self, text: str) -> None:
        """Until this was written since the last time."""
        end = time.monotonic() + PATIENCE
        seen = ""
        while text not in seen:
            assert time.monotonic() < end, f"{text!r} is not in {seen[-3000:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.text += os.read(self.master, 65536).decode(errors="replace")
                seen = _ESCAPES.sub("", self.text)
        self.text = ""

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(server: Path) -> Iterator[Terminal]:
    """With a live screen in it."""
    opened = Terminal("top", "--kubeconfig", str(server))
    yield opened
    opened.close()


def test_top_is_live_obeys_keys_and_leaves_the_terminal_as_it_was(server: Path, terminal: Terminal) -> None:
    terminal.wait_for("Nodes 1")
    create(
        server,
        "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups",
        group("later", 1, phase="Inqueue"),
    )
    terminal.wait_for("default/later")
    terminal.press("5")
    terminal.wait_for("by name")
    terminal.press("s")
    terminal.wait_for("by use")
    terminal.press("/zzz")
    terminal.wait_for("filter: zzz_")
    terminal.press("\rp")
    terminal.wait_for("paused")
    terminal.resize(50, 12)
    terminal.process.send_signal(signal.SIGWINCH)  # as the kernel does for a session of its own
    terminal.wait_for("q quit  Tab view")
    terminal.press("q")
    end = time.monotonic() + PATIENCE
    while terminal.process.poll() is None and time.monotonic() < end:
        if select.select([terminal.master], [], [], 0.2)[0]:
            terminal.text += os.read(terminal.master, 65536).decode(errors="replace")
    assert terminal.process.returncode == 0
    assert "\x1b[?1049l" in terminal.text  # back from the alternate screen
    assert "\x1b[?25h" in terminal.text  # with the cursor
    assert termios.tcgetattr(terminal.slave) == terminal.before
