"""The commands that targets of the Makefile run, by `make --dry-run`, and the versions in the lock files."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def commands_of(target: str) -> str:
    """What a target would run in a fresh clone."""
    make = ["make", "--dry-run", "--always-make", "--no-print-directory", target]
    return subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.programs("make")
def test_the_demo_installs_what_it_needs_and_says_what_it_does() -> None:
    commands = commands_of("demo")
    assert "-r requirements.lock" in commands
    assert "requirements-dev.lock" not in commands
    assert commands.index("Preparing .venv") < commands.index("pip install")
    installations = [line for line in commands.splitlines() if "pip install" in line]
    assert len(installations) == 2
    assert all("pip install -q " in line for line in installations)
    assert commands.splitlines()[-1].endswith("stromboli demo")


STUB = """\
#!/bin/sh
if [ "$*" = "-m venv .venv" ]; then
    mkdir -p .venv/bin
    rm -f .venv/bin/python
    cp "$0" .venv/bin/python
fi
echo "$*" >> calls
"""
"""Stands in for Python: notes its arguments, and makes an environment of itself."""


@pytest.mark.programs("make")
@pytest.mark.parametrize("present", ["nothing", "an environment without pip", "a broken interpreter", "pip"])
def test_an_environment_without_a_working_pip_is_made_again(tmp_path: Path, present: str) -> None:
    for file in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-build.lock"):
        shutil.copy(ROOT / file, tmp_path)
    stub = tmp_path / "stub"
    stub.write_text(STUB)
    stub.chmod(0o755)
    if present == "an environment without pip":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=tmp_path, check=True)
    elif present == "a broken interpreter":
        (tmp_path / ".venv" / "bin").mkdir(parents=True)
        (tmp_path / ".venv" / "bin" / "python").symlink_to(tmp_path / "uninstalled")
    elif present == "pip":
        subprocess.run([stub, "-m", "venv", ".venv"], cwd=tmp_path, check=True)
        (tmp_path / "calls").unlink()
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    subprocess.run(["make", "install", "PYTHON=./stub"], cwd=tmp_path, env=environment, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert ("-m venv .venv" in calls) is (present != "pip")
    assert sum("pip install" in call for call in calls) == 2
    assert (tmp_path / ".venv" / ".installed").exists()


@pytest.mark.programs("make")
@pytest.mark.parametrize("target", ["test", "lint", "bench", "release"])
def test_what_developers_run_installs_the_rest(target: str) -> None:
    assert "-r requirements-dev.lock" in commands_of(target)


def pins(file: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9.-]+==\S+)", (ROOT / file).read_text(), re.MULTILINE))


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-build.lock"])
def test_every_lock_file_pins_the_versions_of_the_development_lock(file: str) -> None:
    assert pins(file)
    assert pins(file) <= pins("requirements-dev.lock")


def test_what_measures_tests_runs_them_with_the_versions_of_the_development_lock() -> None:
    versions = dict(pin.split("==") for pin in pins("requirements-dev.lock"))
    measure = dict(pin.split("==") for pin in pins("requirements-measure.lock"))
    assert {"coverage", "cosmic-ray"} <= measure.keys()
    assert {name: versions.get(name, version) for name, version in measure.items()} == measure
