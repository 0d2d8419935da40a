"""`python -m deploy.release`: what it takes, how it ends, and a whole run on a clone of this repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.release.__main__ import SEALING, STEPS, main
from stromboli import __version__
from tests.deploy.release.small_repository import SmallRepository
from tests.deploy.release.test_release_record import documented
from tests.docs.pages import ROOT

NEED_AN_INDEX = {"installation", "image"}
"""Steps that fetch packages."""


@pytest.fixture
def here(repository: SmallRepository, monkeypatch: pytest.MonkeyPatch) -> SmallRepository:
    monkeypatch.chdir(repository.root)
    return repository


def test_a_commit_without_a_tag_needs_a_version(
    here: SmallRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dry-run"]) == 2
    assert (
        "error: the commit has 0 tags that begin with v; set one, or say --version" in capsys.readouterr().err
    )
    here.git("tag", "v1.2.3")
    assert main(["--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("Stromboli 1.2.3, commit ")


def test_a_dry_run_names_all_steps_and_makes_nothing(
    here: SmallRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dry-run", "--version", "1.2.3"]) == 0
    shown = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in shown[: len(STEPS | SEALING)]] == [*STEPS, *SEALING]
    assert not (here.root / "dist").exists()


def test_a_dry_run_of_another_version_names_the_files_that_say_otherwise(
    here: SmallRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dry-run", "--version", "1.2.4", "--only", "versions", "--only", "changelog"]) == 0
    shown = capsys.readouterr().out.partition("On this machine:\n")[2].splitlines()
    assert "  versions: would fail: src/stromboli/__init__.py says 1.2.3, not 1.2.4" in shown
    assert any(line.startswith("  changelog: would fail: CHANGELOG.md has no section") for line in shown)


def test_a_dry_run_names_what_is_missing_on_this_machine(
    here: SmallRepository,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    programs = tmp_path_factory.mktemp("programs")
    git = shutil.which("git")
    assert git is not None
    (programs / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(programs))
    assert main(["--dry-run", "--version", "1.2.3", "--sign-with", "no-key"]) == 0
    assert capsys.readouterr().out.partition("On this machine:\n")[2].splitlines() == [
        "  tests: make test-all: there is no make here",
        "  tests: make test-kubernetes: there is no go here",
        "  tests: make test-embedded: there is no kubectl here",
        "  image: would not be built, only its steps tried: none of podman, buildah, docker answers",
        "  chart: would not be packaged: no helm on PATH, and --helm names none",
        "  signature: would fail: --sign-with no-key: there is no such key",
    ]


def test_a_dry_run_where_nothing_is_missing_says_so(
    here: SmallRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dry-run", "--version", "1.2.3", "--only", "versions", "--only", "build"]) == 0
    assert capsys.readouterr().out.endswith("Nothing is missing on this machine.\n")


def test_an_unknown_step_is_a_wrong_command_line(here: SmallRepository) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--only", "publish"])
    assert end.value.code == 2


def test_it_stops_at_the_first_step_that_fails_and_writes_that_down(
    here: SmallRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    here.edit("CHANGELOG.md", "[1.2.3]", "[1.2.2]")
    here.commit()
    assert main(["--version", "1.2.3", "--skip-tests"]) == 1
    record = json.loads((here.root / "dist" / "release.json").read_text())
    assert [(step["step"], step["result"]) for step in record["steps"]] == [
        ("tree", "passed"),
        ("versions", "passed"),
        ("changelog", "failed"),
    ]
    assert not (here.root / "dist" / "SHA256SUMS").exists()
    assert "twine" not in capsys.readouterr().out


def test_some_steps_alone_work_on_what_is_there(here: SmallRepository) -> None:
    assert main(["--version", "1.2.3", "--only", "build"]) == 0
    assert main(["--version", "1.2.3", "--only", "contents", "--only", "sums"]) == 0
    wheel = here.root / "dist" / "stromboli-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"no zip file")
    assert main(["--version", "1.2.3", "--only", "contents"]) == 1


def test_the_documented_command_is_taken(here: SmallRepository) -> None:
    (arguments,) = re.findall(r'ARGS="(.*)"', documented("make"))
    assert main(["--dry-run", *shlex.split(arguments)]) == 0


def test_the_documentation_names_every_step() -> None:
    text = (ROOT / "docs" / "releasing.md").read_text()
    rows = re.findall(r"^\| (`.+?) \|", text.partition("## Steps")[2], re.M)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [*STEPS, *SEALING]


# -- this repository


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the last commit."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no clone of the repository")
    folder = tmp_path_factory.mktemp("clone") / "stromboli"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


def release(clone: Path, *arguments: str) -> str:
    """What the command prints; it must succeed."""
    ann = {
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "ann@example.com",
        "PYTHONPATH": str(clone / "src"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "deploy.release", "--version", __version__, "--skip-tests", *arguments],
        cwd=clone,
        env={**os.environ, **ann},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("no_engine")
def test_this_repository_can_be_released(clone: Path) -> None:
    steps = [name for name in (*STEPS, *SEALING) if name not in NEED_AN_INDEX]
    output = release(clone, *(part for name in steps for part in ("--only", name)))
    assert "signed off by Ann <ann@example.com>" in output
    record = json.loads((clone / "dist" / "release.json").read_text())
    results = {step["step"]: step["result"] for step in record["steps"]}
    without_helm = {} if shutil.which("helm") else {"chart": "not checked"}
    left_out = {"lint": "not checked", "tests": "not checked", **without_helm}
    assert results == {name: left_out.get(name, "passed") for name in steps if name in STEPS}
    listed = (clone / "dist" / "SHA256SUMS").read_text().split()[1::2]
    assert f"stromboli-{__version__}-py3-none-any.whl" in listed
    assert f"stromboli_vcctl-{__version__}.tar.gz" in listed


@pytest.mark.usefixtures("no_engine")
def test_what_is_released_can_be_installed_and_the_image_be_made(clone: Path, tmp_path: Path) -> None:
    probe = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path), "cronsim"]
    try:
        subprocess.run(probe, check=True, capture_output=True, timeout=60)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("no package index can be reached")
    release(clone, "--only", "build", "--only", "installation", "--only", "image")
