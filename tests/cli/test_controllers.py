"""`stromboli controllers` on the command line: help, and what is wrong with flags, before anything is started."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """The command sets up the log of its process, which is also that of other tests."""
    ours = logging.getLogger("stromboli")
    before = ours.handlers[:], ours.level, ours.propagate
    yield
    ours.handlers[:], ours.propagate = before[0], before[2]
    ours.setLevel(before[1])


def test_help_names_every_flag_with_its_default(run: Run) -> None:
    result = run("controllers", "--help")
    assert result.exit_code == 0
    assert "--worker-threads-for-podgroup" in result.output
    assert "(default *,-sharding-controller)" in result.output
    assert run("controllers", "--version").output.startswith("stromboli ")


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--worker-thread=3"], "did you mean --worker-threads"),
        (["--controllers=*,-gc-contoller"], "did you mean gc-controller"),
        (["--max-requeue-num=many"], "is not a whole number"),
        (["--log-format=xml"], "neither text nor json"),
        (["--leader-elect-lease-duration=1s"], "lease duration must be longer"),
        (["--kubeconfig=/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_flags_that_make_no_sense_are_refused(run: Run, flags: list[str], complaint: str) -> None:
    result = run("controllers", *flags)
    assert result.exit_code != 0
    assert complaint in result.output + result.stderr


def test_a_broken_job_plugin_is_told_before_the_controllers_start(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import nonsense_that_nobody_has\n")
    result = run("controllers", "--plugins-dir", tmp_path)
    assert result.exit_code == 2
    assert "mine.py:1: cannot be imported" in result.output
    assert run("controllers", "--plugins-dir", tmp_path / "nowhere").exit_code == 2
