"""Builds what tests run against, a control plane and Helm, once, into cache folders named by what they are made of."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

SOURCE = Path(__file__).parent / "kubetest"
VERSION = "1.36.3"
_VERSION_PACKAGE = "k8s.io/component-base/version"
_MAJOR, _MINOR, _ = VERSION.split(".")
LINK_FLAGS = (
    f"-s -w -X {_VERSION_PACKAGE}.gitVersion=v{VERSION}"
    f" -X {_VERSION_PACKAGE}.gitMajor={_MAJOR} -X {_VERSION_PACKAGE}.gitMinor={_MINOR}"
)
STAGES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-complete",
    "pod/fast/pod-delete",
)
"""How KWOK lets nodes and pods come, run and go."""
HELM = Path(__file__).parent / "helm"
HELM_PACKAGE = "helm.sh/helm/v4/cmd/helm"
HELM_LINK_FLAGS = "-s -w"
LONGEST_BUILD = 45 * 60


class CannotBuild(Exception):
    """This machine lacks what the build needs; says what."""


def cached() -> Path:
    """Where the program is, or will be."""
    files = (SOURCE / "go.mod", SOURCE / "go.sum", SOURCE / "main.go")
    return cache_folder(files, (LINK_FLAGS, STAGES))


def program() -> Path:
    """The folder with `kubetest` and `kwok-stages.yaml`, built if need be (some minutes, once)."""
    return built_once(cached(), "kubetest", _build)


def helm() -> Path:
    """Helm, in a cache folder of its own, built if need be (two minutes, once)."""
    return built_once(helm_folder(), "helm", _build_helm) / "helm"


def helm_folder() -> Path:
    """Where Helm is, or will be."""
    return cache_folder((HELM / "go.mod", HELM / "go.sum"), (HELM_PACKAGE, HELM_LINK_FLAGS))


def cache_folder(files: Iterable[Path], options: object) -> Path:
    """Where what is made of these files with these options is kept."""
    inputs = hashlib.sha256()
    for file in files:
        inputs.update(file.read_bytes())
    inputs.update(repr(options).encode())
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "stromboli-kubetest" / inputs.hexdigest()[:16]


def built_once(folder: Path, name: str, build: Callable[[Path], None]) -> Path:
    """The folder with the program, built by the first process that asks; others wait for it."""
    if (folder / name).exists():
        return folder
    if shutil.which("go") is None:
        raise CannotBuild("there is no `go` on this machine")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            build(folder)
    return folder


def _build(folder: Path) -> None:
    unfinished = folder / "kubetest.unfinished"
    build_program(SOURCE, ".", LINK_FLAGS, unfinished)
    kwok = _go(
        SOURCE, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok", why="KWOK's module is missing"
    ).strip()
    stages = [(Path(kwok) / "kustomize" / "stage" / f"{name}.yaml").read_text() for name in STAGES]
    (folder / "kwok-stages.yaml").write_text("---\n".join(stages))
    unfinished.rename(folder / "kubetest")


def _build_helm(folder: Path) -> None:
    unfinished = folder / "helm.unfinished"
    build_program(HELM, HELM_PACKAGE, HELM_LINK_FLAGS, unfinished)
    unfinished.rename(folder / "helm")


def build_program(source: Path, package: str, link_flags: str, target: Path) -> None:
    """A program of the module in `source`, from the versions that it pins."""
    _go(source, "mod", "download", why="the Go module proxy cannot be reached, or go.sum does not agree")
    flags = ("-trimpath", "-ldflags", link_flags, "-o", str(target))
    _go(source, "build", *flags, package, why="go build failed")


def _go(source: Path, *arguments: str, why: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly"}
    try:
        done = subprocess.run(
            ("nice", "-n", "15", "go", *arguments),
            cwd=source,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_BUILD,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotBuild(f"{why}: took over {LONGEST_BUILD} seconds") from None
    if done.returncode != 0:
        raise CannotBuild(f"{why}: {done.stderr.strip()[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    print(program(), helm())
