"""What the targets of the Makefile do, as `make -n` tells it, and that the lock files agree."""

import re
import subprocess
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
    assert "--quiet" not in commands
    assert commands.splitlines()[-1].endswith("stromboli demo")


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
