"""Changelog fragments: what a release collects, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deploy.release.changelog import CATEGORIES, collect, fragments, main
from deploy.release.release_plan import ReleaseError
from deploy.release.source_checks import check_changelog
from tests.deploy.release.small_repository import SmallRepository

ROOT = Path(__file__).parents[3]


def test_fragments_of_this_repository_are_valid() -> None:
    assert all(each.category in CATEGORIES for each in fragments(ROOT))


def test_collecting_creates_a_dated_section_and_deletes_the_fragments(
    repository: SmallRepository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.edit("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n### Queues\n\n- Trees.\n")
    repository.write("changelog.d/b.fixed.md", "A crash.\n")
    repository.write("changelog.d/z.added.md", "Flag `--last`.\n")
    repository.write("changelog.d/a.added.md", "Flag `--first`,\nwhich takes a number.\n")
    monkeypatch.chdir(repository.root / "docs")
    assert main(["1.3.0", "--date", "2027-03-01"]) == 0
    assert capsys.readouterr().out == "CHANGELOG.md: section 1.3.0 created, 3 fragments collected\n"
    assert (repository.root / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## [Unreleased]\n\n## [1.3.0] - 2027-03-01\n\n### Queues\n\n- Trees.\n\n"
        "### Added\n\n- Flag `--first`,\n  which takes a number.\n- Flag `--last`.\n\n"
        "### Fixed\n\n- A crash.\n\n## [1.2.3] - 2027-01-31\n\n- Something new.\n"
    )
    assert [file.name for file in (repository.root / "changelog.d").iterdir()] == ["README.md"]
    assert check_changelog(repository.release(version="1.3.0")).detail == "4 entries"


def test_a_version_is_collected_once(
    repository: SmallRepository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(repository.root)
    assert main(["1.2.3"]) == 1
    assert capsys.readouterr().err == "error: CHANGELOG.md: the section of 1.2.3 already exists\n"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("new.md", "A flag.\n", r"changelog\.d/new\.md: invalid name"),
        ("new.feature.md", "A flag.\n", "categories: added, changed, deprecated, removed, fixed, security"),
        ("new.added.txt", "A flag.\n", "invalid name"),
        ("new.added.md", "\n", "single paragraph"),
        ("new.added.md", "- A flag.\n", "without bullet"),
        ("new.added.md", "A flag.\n\nAnother one.\n", "single paragraph"),
    ],
)
def test_a_file_that_is_not_a_fragment_is_refused_and_nothing_changes(
    repository: SmallRepository, name: str, text: str, problem: str
) -> None:
    before = (repository.root / "CHANGELOG.md").read_text()
    repository.write(f"changelog.d/{name}", text)
    with pytest.raises(ReleaseError, match=problem):
        collect(repository.root, "1.3.0", "2027-03-01")
    assert (repository.root / "CHANGELOG.md").read_text() == before
    with pytest.raises(ReleaseError, match=problem):
        check_changelog(repository.release())


def test_a_release_with_uncollected_fragments_fails_and_names_the_command(
    repository: SmallRepository,
) -> None:
    repository.write("changelog.d/flag.added.md", "A flag.\n")
    with pytest.raises(ReleaseError) as refusal:
        check_changelog(repository.commit())
    assert str(refusal.value) == (
        "changelog.d: 1 uncollected changes: flag.added.md; run: python -m deploy.release.changelog 1.2.3"
    )


def test_fragments_are_entries_of_a_development_version(repository: SmallRepository) -> None:
    repository.write("changelog.d/flag.added.md", "A flag.\n")
    development = repository.release(version="1.3.0.dev0")
    assert check_changelog(development).detail.startswith("1 entries below [Unreleased] and in changelog.d")


def test_before_the_first_release_no_fragment_is_about_a_defect_that_no_release_had() -> None:
    if re.search(r"^## \[\d", (ROOT / "CHANGELOG.md").read_text(), re.M):
        pytest.skip("only before the first release")
    defects = [
        each.path.name for each in fragments(ROOT) if each.category in ("fixed", "security", "removed")
    ]
    assert defects == [], "see changelog.d/README.md"
