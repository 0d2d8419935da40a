"""What docs/install.md says to type, run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.docs.pages import ROOT, blocks, commands
from tests.kubernetes.controlplane import ControlPlane

PAGE = ROOT / "docs" / "install.md"
MARK = "on: a cluster with Volcano"
LONGEST_COMMAND = 180.0


def lines_of(heading: str) -> list[str]:
    """The commands below a heading, up to the next one."""
    text = PAGE.read_text()
    begin = re.search(rf"^##+ {re.escape(heading)}$", text, re.M)
    assert begin, f"{PAGE.name} has no heading {heading!r}"
    section = re.split(r"^##+ ", text[begin.end() :], maxsplit=1, flags=re.M)[0]
    marked = [block for block in blocks(section) if block.language == "console" and block.mark == MARK]
    lines = [command.line for block in marked for command in commands(block.body)]
    assert lines, f"{heading!r} shows no commands that are marked {MARK!r}"
    return lines


class DocumentedSteps:
    """A folder to type them in, with `kubectl`, `stromboli` and `deploy`."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        (folder / "deploy").symlink_to(ROOT / "deploy")
        kubectl = f'exec {plane.program / "kubetest"} kubectl --kubeconfig {plane.kubeconfig} "$@"'
        stromboli = f'exec {sys.executable} -m stromboli "$@"'
        for name, line in (("kubectl", kubectl), ("stromboli", stromboli)):
            (programs / name).write_text(f"#!/bin/sh\n{line}\n")
            (programs / name).chmod(0o755)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "KUBECONFIG": str(plane.kubeconfig),
            "HOME": str(folder),
        }

    def follow(self, heading: str, after_each: Callable[[str], None] = lambda line: None) -> str:
        """Type all commands below a heading; what they printed."""
        return "".join(self._follow(line, after_each) for line in lines_of(heading))

    def _follow(self, line: str, after_each: Callable[[str], None]) -> str:
        output = self.type(line)
        after_each(line)
        return output

    def edit_manifests(self, old: str, new: str) -> None:
        """What somebody edits in each folder that is applied."""
        (self.folder / "deploy").unlink()
        shutil.copytree(ROOT / "deploy", self.folder / "deploy")
        for file in (self.folder / "deploy").rglob("kustomization.yaml"):
            file.write_text(file.read_text().replace(old, new))

    def type(self, line: str) -> str:
        """Run one command, which must succeed."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_COMMAND,
            check=False,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
        return done.stdout
