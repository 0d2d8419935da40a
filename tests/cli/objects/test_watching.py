"""`-w`: what changes is shown as it changes, by a process that runs until it is interrupted."""

from __future__ import annotations

import asyncio
import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import JSON, Request
from tests.embedded.background_server import background_server

Manifest = dict[str, Any]
PATIENCE = 60.0


class Watching:
    """A command that goes on, and the lines that it prints."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stromboli", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def line_with(self, text: str) -> str:
        while True:
            line = self._lines.get(timeout=PATIENCE)
            if text in line:
                return line

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=PATIENCE)
        self._thread.join(timeout=PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return status


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("watched")
    with background_server(folder, crds=True):
        yield folder / "kubeconfig"


def create(kubeconfig: Path, path: str, manifest: Manifest) -> None:
    """As the administrator of the kubeconfig."""

    async def send() -> None:
        async with Client(find_access(str(kubeconfig))) as client:
            await client.send_with_retries(Request("POST", path, json.dumps(manifest).encode(), JSON))

    asyncio.run(send())


def pod(name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"volcano.sh/job-name": "train"}},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }


def test_pods_that_come_later_are_shown(server: Path) -> None:
    create(server, "/api/v1/namespaces/default/pods", pod("train-worker-0"))
    watching = Watching("pods", "train", "-w", "--kubeconfig", str(server))
    watching.line_with("train-worker-0")
    create(server, "/api/v1/namespaces/default/pods", pod("train-worker-1"))
    assert watching.line_with("train-worker-1").split()[2] == "Pending"
    assert watching.interrupt() == 130


def test_events_that_come_later_are_shown_once(server: Path) -> None:
    watching = Watching("events", "-w", "-o", "name", "--kubeconfig", str(server))
    for name in ("first", "second"):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "name": "train-worker-0", "namespace": "default"},
            "message": name,
            "reason": "Told",
            "type": "Normal",
        }
        create(server, "/api/v1/namespaces/default/events", event)
        assert watching.line_with(name) == f"event/{name}"
    assert watching.interrupt() == 130
