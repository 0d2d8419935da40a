"""`stromboli up` as a process of its own, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from stromboli.cli.main import app

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: web, tier: front}}
spec:
  schedulerName: volcano
  restartPolicy: Never
  containers: [{name: main, image: none, command: [%s], resources: {requests: {cpu: 100m}}}]
"""


def eventually(holds: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not come about within {seconds:g} s"
        time.sleep(0.1)


class Up:
    """Runs between `with` and its end; `again` starts it anew on its data."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self.options = options
        self.process: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """For kubectl and for our own commands, which find no other cluster."""
        runtime = self.data.parent / "runtime"
        runtime.mkdir(exist_ok=True)
        return os.environ | {
            "KUBECONFIG": str(self.data / "kubeconfig"),
            "XDG_RUNTIME_DIR": str(runtime),
            "XDG_STATE_HOME": str(runtime),
            "HOME": str(self.data.parent),
        }

    def __enter__(self) -> Up:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        command = [sys.executable, "-m", "stromboli", "up", "--data", str(self.data), *self.options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment
        )
        lines = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            lines.append(line)
            if line == "ready\n":
                return
        self.stop()
        raise AssertionError(f"it did not start: {''.join(lines)}")

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """The exit status, and the rest of the output."""
        process, self.process = self.process, None
        if process is None:
            return 0, ""
        process.send_signal(number)
        try:
            output, _ = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            raise AssertionError(f"it did not stop: {output}") from None
        return process.returncode, output

    def run(self, *arguments: str, ok: bool = True, stdin: str | None = None) -> str:
        """The output of a command with this cluster."""
        done = subprocess.run(
            arguments,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            input=stdin,
            check=False,
        )
        assert (done.returncode == 0) is ok, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def kubectl(self, *arguments: str, ok: bool = True, stdin: str | None = None) -> str:
        return self.run("kubectl", *arguments, ok=ok, stdin=stdin)

    def json(self, *arguments: str) -> Any:
        return json.loads(self.kubectl(*arguments, "-o", "json"))

    def stromboli(self, *arguments: str, ok: bool = True) -> str:
        """A command of ours, which is quicker in this process."""
        done = CliRunner().invoke(app, arguments, env=self.environment, catch_exceptions=False)
        assert (done.exit_code == 0) is ok, done.output
        return done.output
