"""Wheels and source distributions: what is refused, and what is said about it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.release.distribution_checks import (
    build_distributions,
    check_contents,
    check_metadata,
    check_sdists,
    compare,
)
from deploy.release.release_plan import ReleaseError, Result
from tests.deploy.release.small_repository import SmallRepository

WHEEL = "stromboli-1.2.3-py3-none-any.whl"
CLOCK = """
import time
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Clock(BuildHookInterface):
    def initialize(self, version, build_data):
        path = self.root + "/src/stromboli/built_at.txt"
        open(path, "w").write(str(time.time_ns()))
"""


def rewrite(wheel: Path, change: Callable[[str, bytes], bytes | None], **added: str) -> None:
    """Change the files of a wheel; None leaves one out."""
    with zipfile.ZipFile(wheel) as old:
        files = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(wheel, "w") as new:
        for name, content in files.items():
            changed = change(name, content)
            if changed is not None:
                new.writestr(name, changed)
        for name, text in added.items():
            new.writestr(name, text)


def test_what_was_built_passes_all_checks(built: SmallRepository) -> None:
    names = sorted(file.name for file in (built.root / "dist").iterdir())
    assert names == [
        WHEEL,
        "stromboli-1.2.3.tar.gz",
        "stromboli_vcctl-1.2.3-py3-none-any.whl",
        "stromboli_vcctl-1.2.3.tar.gz",
    ]
    for check in (check_contents, check_metadata, check_sdists):
        assert check(built.release()).result is Result.PASSED


def test_distributions_of_an_older_version_do_not_stay(built: SmallRepository) -> None:
    (built.root / "dist" / "stromboli-1.2.2.tar.gz").write_bytes(b"")
    build_distributions(built.release())
    assert not (built.root / "dist" / "stromboli-1.2.2.tar.gz").exists()


def test_a_build_that_is_another_each_time_is_refused(repository: SmallRepository) -> None:
    repository.write("hatch_build.py", CLOCK)
    repository.edit(
        "pyproject.toml", "[tool.hatch.version]", "[tool.hatch.build.hooks.custom]\n[tool.hatch.version]"
    )
    with pytest.raises(ReleaseError, match=r"two builds of one commit differ; in .*built_at\.txt"):
        build_distributions(repository.commit())


def test_two_builds_that_differ_in_the_order_of_files_are_told_apart(
    built: SmallRepository, tmp_path: Path
) -> None:
    wheel = built.root / "dist" / WHEEL
    other = tmp_path / "other" / WHEEL
    other.parent.mkdir()
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(other, "w") as new:
        for name in reversed(old.namelist()):
            new.writestr(name, old.read(name))
    with pytest.raises(ReleaseError, match="in the order, the times or the modes of their files"):
        compare([wheel], [other])


def test_files_that_git_does_not_know_are_not_built(repository: SmallRepository) -> None:
    release = repository.release()
    repository.write("src/stromboli/notes.txt", "not committed\n")
    build_distributions(release)
    assert check_contents(release).result is Result.PASSED


@pytest.mark.parametrize("stray", ["stromboli/__pycache__/a.pyc", "tests/test_a.py", "stromboli/secret.txt"])
def test_a_stray_file_in_the_wheel_is_refused(built: SmallRepository, stray: str) -> None:
    rewrite(built.root / "dist" / WHEEL, lambda _, content: content, **{stray: ""})
    with pytest.raises(ReleaseError, match=f"{WHEEL} has {stray}, which does not belong there"):
        check_contents(built.release())


def test_a_file_that_leads_out_of_the_wheel_is_refused(built: SmallRepository) -> None:
    rewrite(built.root / "dist" / WHEEL, lambda _, content: content, **{"../evil.pth": ""})
    with pytest.raises(ReleaseError, match="leads out of its folder"):
        check_contents(built.release())


@pytest.mark.parametrize("asset", ["stromboli/page.css", "stromboli/cli/demo/manifests/00-teams.yaml"])
def test_a_missing_asset_is_refused(built: SmallRepository, asset: str) -> None:
    rewrite(built.root / "dist" / WHEEL, lambda name, content: None if name == asset else content)
    with pytest.raises(ReleaseError, match=f"{WHEEL} lacks {asset}"):
        check_contents(built.release())


def test_checks_without_a_build_say_what_to_run(repository: SmallRepository) -> None:
    with pytest.raises(ReleaseError, match="has 0 distributions, not 4; run the step `build` first"):
        check_contents(repository.release())


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b"Version: 1.2.3", b"Version: 1.2.4", "has version 1.2.4, not 1.2.3"),
        (b"Version: 1.2.3", b"Version: one", "'one' is invalid for 'version'"),
        (b"text/markdown", b"text/plain", "no description in Markdown"),
        (b"# Stromboli", b"", "no description in Markdown"),
    ],
)
def test_metadata_that_an_index_would_refuse_are_refused(
    built: SmallRepository, old: bytes, new: bytes, problem: str
) -> None:
    rewrite(
        built.root / "dist" / WHEEL,
        lambda name, content: content.replace(old, new) if name.endswith("METADATA") else content,
    )
    with pytest.raises(ReleaseError, match=problem):
        check_metadata(built.release())


def test_a_wheel_that_is_not_that_of_its_source_distribution_is_refused(built: SmallRepository) -> None:
    rewrite(
        built.root / "dist" / WHEEL,
        lambda name, content: b"import evil\n" if name == "stromboli/__init__.py" else content,
    )
    with pytest.raises(ReleaseError, match=r"two builds of one commit differ; in stromboli/__init__\.py"):
        check_sdists(built.release())
