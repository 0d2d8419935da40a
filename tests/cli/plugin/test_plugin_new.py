"""`stromboli plugin new`: what it writes works as it stands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.mark.parametrize(("name", "more"), [("my-order", ()), ("my-turn", ("--action",))])
def test_a_new_plugin_or_action_passes_its_test_and_its_policy_is_right(
    run: Run, tmp_path: Path, name: str, more: tuple[str, ...]
) -> None:
    folder = tmp_path / "mine"
    made = run("plugin", "new", name, folder, *more)
    assert made.exit_code == 0, made.output
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests")]
    done = subprocess.run(tests, check=False, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    checked = run("policy", "check", folder / "policy.yaml", "--plugins-dir", folder)
    assert checked.exit_code == 0, checked.output
    planned = run(
        "plan", "-f", "examples/two-teams", "--plugins-dir", folder, "--policy", folder / "policy.yaml"
    )
    assert planned.exit_code == 0, planned.output
    assert "bound" in planned.stdout


def test_what_is_there_is_not_touched(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("mine")
    result = run("plugin", "new", "my-order", tmp_path)
    assert (result.exit_code, "is there already" in result.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["policy.yaml"]


@pytest.mark.parametrize(
    "name",
    ["My", "a b", "../x", "-x", "x" * 64, "class", "gang", "allocate", "\x1b[2J", "json", "numpy", "tests"],
)
def test_names_that_no_policy_could_have_or_that_are_taken_are_refused(
    run: Run, tmp_path: Path, name: str
) -> None:
    result = run("plugin", "new", "--", name, tmp_path / "mine")
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert not (tmp_path / "mine").exists()
