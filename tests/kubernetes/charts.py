"""Helm as tests run it: with files of its own, on no cluster or on that of a test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from deploy.chart import FOLDER as CHART
from tests.deploy.manifests import Manifest

NAMESPACE = "volcano-system"
PLACE = ("--namespace", NAMESPACE)
RELEASE = "stromboli"
LONGEST_COMMAND = 120


class HelmFailed(Exception):
    """What Helm said."""


class Helm:
    """The program, with what it keeps in a folder of the test."""

    def __init__(self, program: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self.chart = CHART
        self._program = program
        self._folder = folder
        homes = {f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        self._environment = {**os.environ, **homes, "KUBECONFIG": str(kubeconfig or os.devnull)}

    def run(self, *arguments: str) -> str:
        """The output of a command."""
        done = subprocess.run(
            (str(self._program), *arguments),
            env=self._environment,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=LONGEST_COMMAND,
            check=False,
        )
        if done.returncode != 0:
            raise HelmFailed(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    def template(self, settings: Iterable[str] = (), values: Manifest | None = None) -> list[Manifest]:
        """The objects of the chart with values from a command line (`a.b=c`), or from a file."""
        given = self.given(settings, values)
        return objects(self.run("template", RELEASE, str(self.chart), *PLACE, *given))

    def install(self, *settings: str, release: str = RELEASE, flags: tuple[str, ...] = ()) -> str:
        given = (*flags, *self.given(settings))
        return self.run("install", release, str(self.chart), *PLACE, "--create-namespace", *given)

    def upgrade(self, *settings: str) -> str:
        return self.run("upgrade", RELEASE, str(self.chart), *PLACE, *self.given(settings))

    def rollback(self, revision: int) -> str:
        return self.run("rollback", RELEASE, str(revision), *PLACE)

    def uninstall(self) -> str:
        return self.run("uninstall", RELEASE, *PLACE)

    def given(self, settings: Iterable[str], values: Manifest | None = None) -> list[str]:
        """Values as arguments."""
        arguments = [f"--set={setting}" for setting in settings]
        if values is not None:
            file = self._folder / "given.yaml"
            file.write_text(yaml.safe_dump(values))
            arguments.append(f"--values={file}")
        return arguments


def objects(text: str) -> list[Manifest]:
    """The objects of a stream of YAML."""
    loaded: Iterable[Any] = yaml.load_all(text, yaml.CSafeLoader)
    return [each for each in loaded if each is not None]


def by_name(manifests: Iterable[Manifest]) -> dict[tuple[str, str, str], Manifest]:
    """Objects by kind, namespace and name, each of which is there once."""
    named = [
        ((each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]), each)
        for each in manifests
    ]
    assert len(named) == len(dict(named))
    return dict(named)
