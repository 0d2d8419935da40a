"""`stromboli up` with a log on disk, killed and started again on the same data."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.embedded.up_process import Up

START_LIMIT = 60.0


class ClusterProcess(Up):
    """The process, its log, its address, and what the kernel says of it."""

    def __init__(self, data: Path, *options: str) -> None:
        super().__init__(data, *options)
        self.log = data.parent / "up.log"
        self.outages: list[tuple[float, float]] = []
        """From each kill to the next `ready`, by the steady clock."""
        self._spent_before = 0.0

    def start(self) -> None:
        begin = self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, "-m", "stromboli", "up", "--data", str(self.data), *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)
        deadline = time.monotonic() + START_LIMIT
        while b"\nready\n" not in self.log.read_bytes()[begin:]:
            ended = self.process.poll() is not None
            assert not ended, f"it did not start: {self.log.read_text()[-4000:]}"
            assert time.monotonic() < deadline, f"it did not start within {START_LIMIT:g} s"
            time.sleep(0.02)

    async def kill_and_restart(self) -> None:
        assert self.process is not None
        killed, self._spent_before = time.monotonic(), self.processor_seconds()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        await asyncio.to_thread(self.start)
        self.outages.append((killed, time.monotonic()))

    @property
    def kubeconfig(self) -> Any:
        return json.loads((self.data / "kubeconfig").read_text())

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.kubeconfig["clusters"][0]["cluster"]["server"].rpartition("/")[2].partition(":")
        return host, int(port)

    @property
    def token(self) -> str:
        token: str = self.kubeconfig["users"][0]["user"]["token"]
        return token

    @property
    def authority(self) -> Path:
        return self.data / "pki" / "ca.crt"

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def tracebacks(self) -> list[str]:
        """Each with the lines around it."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [
            "\n".join(lines[max(0, number - 2) : number + 30])
            for number, line in enumerate(lines)
            if "Traceback" in line
        ]

    # -- what the kernel says

    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self._pid}/fd"))

    def processor_seconds(self) -> float:
        """Of all processes since the first start."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return self._spent_before + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def disk(self) -> int:
        """Bytes that the data folder takes on disk."""
        sizes = 0
        for path in self.data.rglob("*"):
            try:
                sizes += path.lstat().st_blocks * 512
            except FileNotFoundError:
                continue
        return sizes

    @property
    def _pid(self) -> int:
        assert self.process is not None
        return self.process.pid
