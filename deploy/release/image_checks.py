"""The image: built where there is an engine; elsewhere the steps of the Containerfile, run without one.

Without an engine a fresh virtual environment stands in for the base image, and a folder for its root. That shows that
every file is copied which the steps need, that the lock files resolve, and that the entry point runs; not that there is
a base image, or what else is in it.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from deploy.release.release_plan import MINUTE, Outcome, Release, ReleaseError, passed, run

CONTAINERFILE = "deploy/Containerfile"
ENGINES = ("podman", "buildah", "docker")
LONGEST_BUILD = 30 * MINUTE
PLACES = ("/opt/stromboli", "/dist", "/src")
"""Folders of the image that its steps name."""


class Instruction(NamedTuple):
    """A line of a Containerfile."""

    name: str
    text: str


def check_image(release: Release) -> Outcome:
    """Build the image and run it, or try its steps."""
    with tempfile.TemporaryDirectory(prefix="stromboli-release-") as folder:
        os.chmod(folder, 0o755)  # another user runs the entry point
        tree = release.export(Path(folder) / "tree")
        engine = working_engine(release)
        if engine is not None:
            return _built(release, engine, tree)
        return _tried(release, tree, Path(folder) / "image")


def working_engine(release: Release) -> str | None:
    """The first engine that is there and answers."""
    for engine in ENGINES:
        if shutil.which(engine, path=release.environment.get("PATH")) is None:
            continue
        try:
            run([engine, "info"], release.root, 30)
        except ReleaseError:
            continue
        return engine
    return None


def _built(release: Release, engine: str, tree: Path) -> Outcome:
    image = f"stromboli:{release.version}"
    run([engine, "build", "-f", CONTAINERFILE, "-t", image, "."], tree, LONGEST_BUILD)
    if engine == "buildah":
        return passed(f"{image} built by buildah", "the image was not run: buildah does not run images")
    shown = run([engine, "run", "--rm", "--read-only", "--network=none", image, "--version"], tree)
    if release.version not in shown:
        raise ReleaseError(f"{image} --version says {shown.strip()!r}, not {release.version}")
    return passed(f"{image} built by {engine}, runs with a read-only root and without a network")


# -- without an engine


def instructions(text: str) -> list[Instruction]:
    """The lines of a Containerfile, without comments, those that go on joined."""
    joined = re.sub(r"^\s*#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def _tried(release: Release, tree: Path, image: Path) -> Outcome:
    steps = instructions((tree / CONTAINERFILE).read_text())
    base = image / "base"
    image.mkdir()
    environment = {**release.environment, "PATH": f"{base / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    folder = image
    for step in steps:
        if step.name in ("FROM", "WORKDIR"):
            folder = image if step.name == "FROM" else image / step.text.lstrip("/")
            folder.mkdir(parents=True, exist_ok=True)
        elif step.name == "COPY" and not step.text.startswith("--from"):
            _copy(tree, step, folder)
        elif step.name == "RUN":
            if not base.exists():
                run([sys.executable, "-m", "venv", str(base)], tree)
            run(["sh", "-ec", _moved(step.text, image)], folder, LONGEST_BUILD, environment)
    return _started(release, steps, image)


def _copy(tree: Path, step: Instruction, folder: Path) -> None:
    """What a COPY brings, as far as the ignore file lets it pass."""
    *sources, target = step.text.split()
    ignored = (tree / f"{CONTAINERFILE}.dockerignore").read_text().splitlines()
    for source in sources:
        if not (tree / source).exists():
            raise ReleaseError(f"{CONTAINERFILE}: COPY {source}: the repository has no such file")
        if not _reaches_the_builder(source, ignored):
            raise ReleaseError(f"{CONTAINERFILE}: COPY {source}: {CONTAINERFILE}.dockerignore keeps it out")
        if (tree / source).is_dir():
            shutil.copytree(tree / source, folder / target, dirs_exist_ok=True)
        else:
            (folder / target).mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / source, folder / target)


def _reaches_the_builder(source: str, ignored: list[str]) -> bool:
    """Whether the last rule that is about a file, or about a folder above it, lets it pass."""
    passes = True
    for rule in filter(None, map(str.strip, ignored)):
        pattern = rule.removeprefix("!").rstrip("/")
        above = [source, *(str(parent) for parent in Path(source).parents)]
        if any(fnmatch.fnmatch(path, pattern) for path in above if path != "."):
            passes = rule.startswith("!")
    return passes


def _moved(text: str, image: Path) -> str:
    """A command with the folders of the image below ours."""
    for place in PLACES:
        text = re.sub(rf"(?<![\w.]){place}\b", str(image / place.lstrip("/")), text)
    return text


def _started(release: Release, steps: list[Instruction], image: Path) -> Outcome:
    """Run the entry point, as its user and with nothing to write to, as far as this machine lets us."""
    last = {step.name: step.text for step in steps}
    program = image / "opt/stromboli/bin" / json.loads(last["ENTRYPOINT"])[0]
    command = [str(program), "--version"]
    unchecked = [f"no image was built: there is none of {', '.join(ENGINES)} that answers"]
    user, _, group = last["USER"].partition(":")
    as_user = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]
    if _works([*as_user, sys.executable, "-c", ""]):
        command = [*as_user, *command]
    else:
        unchecked.append(f"the entry point ran as this user, not as {last['USER']}")
    read_only = ["unshare", "--mount", "--propagation=private", "sh", "-ec"]
    remount = 'mount -o remount,bind,ro / && exec "$@"'
    if _works([*read_only, remount, "sh", "true"]):
        command = [*read_only, remount, "sh", *command]
    else:
        unchecked.append("the entry point ran with a root that can be written to")
    shown = run(command, image, MINUTE, {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"})
    if release.version not in shown:
        raise ReleaseError(f"{shlex.join(command)} says {shown.strip()!r}, not {release.version}")
    return passed(f"the steps of {CONTAINERFILE} were run, and its entry point", *unchecked)


def _works(command: list[str]) -> bool:
    """Whether this machine lets us do that."""
    try:
        run(command, Path("/"), 30)
    except ReleaseError:
        return False
    return True
