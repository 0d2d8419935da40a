"""Builds the control plane that the tests run against, once, into a cache folder named by what it is made of."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
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
LONGEST_BUILD = 45 * 60


class CannotBuild(Exception):
    """This machine lacks what the build needs; says what."""


def cached() -> Path:
    """Where the program is, or will be."""
    inputs = hashlib.sha256()
    for file in (SOURCE / "go.mod", SOURCE / "go.sum", SOURCE / "main.go"):
        inputs.update(file.read_bytes())
    inputs.update(repr((LINK_FLAGS, STAGES)).encode())
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "stromboli-kubetest" / inputs.hexdigest()[:16]


def program() -> Path:
    """The folder with `kubetest` and `kwok-stages.yaml`, built if need be (some minutes, once)."""
    folder = cached()
    if (folder / "kubetest").exists():
        return folder
    if shutil.which("go") is None:
        raise CannotBuild("there is no `go` on this machine")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "kubetest").exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    unfinished = folder / "kubetest.unfinished"
    _go("mod", "download", why="the Go module proxy cannot be reached, or go.sum does not agree")
    _go("build", "-trimpath", "-ldflags", LINK_FLAGS, "-o", str(unfinished), ".", why="go build failed")
    kwok = _go("list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok", why="KWOK's module is missing").strip()
    stages = [(Path(kwok) / "kustomize" / "stage" / f"{name}.yaml").read_text() for name in STAGES]
    (folder / "kwok-stages.yaml").write_text("---\n".join(stages))
    unfinished.rename(folder / "kubetest")


def _go(*arguments: str, why: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=readonly"}
    try:
        done = subprocess.run(
            ("nice", "-n", "15", "go", *arguments),
            cwd=SOURCE,
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
    print(program())
