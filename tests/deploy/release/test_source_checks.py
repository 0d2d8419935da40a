"""What makes a commit unfit for a release, and what the releaser is told."""

from __future__ import annotations

import shutil

import pytest

from deploy.release.release_plan import ReleaseError, Result
from deploy.release.source_checks import check_changelog, check_lint, check_tests, check_tree, check_versions
from tests.deploy.release.small_repository import VERSION, SmallRepository


def test_a_clean_commit_with_its_tag_has_nothing_left_to_check(repository: SmallRepository) -> None:
    outcome = check_tree(repository.release())
    assert outcome.result is Result.PASSED
    assert outcome.unchecked == (f"there is no tag v{VERSION} yet",)
    repository.git("tag", f"v{VERSION}")
    assert check_tree(repository.release()).unchecked == ()


@pytest.mark.parametrize("path", ["README.md", "src/stromboli/forgotten.py"])
def test_a_tree_that_differs_from_its_commit_is_refused(repository: SmallRepository, path: str) -> None:
    repository.write(path, "changed\n")
    with pytest.raises(ReleaseError, match=f"1 files differ from the commit.*\n.* {path}"):
        check_tree(repository.release())


def test_the_tag_of_another_version_is_refused(repository: SmallRepository) -> None:
    repository.git("tag", "v1.2.4")
    with pytest.raises(
        ReleaseError, match=r"the commit has the tag v1\.2\.4, and version 1\.2\.3 is asked for"
    ):
        check_tree(repository.release())


def test_one_version_everywhere_is_counted(repository: SmallRepository) -> None:
    assert check_versions(repository.release()).detail == "1.2.3 in 5 files"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("src/stromboli/__init__.py", '"1.2.3"', '"1.2.4"'),
        ("deploy/scheduler/kustomization.yaml", "newTag: 1.2.3", "newTag: 1.2.4"),
        ("deploy/Containerfile", "-t stromboli:1.2.3", "-t stromboli:1.2.4"),
        ("deploy/chart/Chart.yaml", "\nversion: 1.2.3", "\nversion: 1.2.4"),
        ("deploy/chart/Chart.yaml", "appVersion: 1.2.3", "appVersion: 1.2.4"),
        ("docs/install.md", "stromboli:1.2.3", "stromboli:1.2.4"),
    ],
)
def test_a_file_with_another_version_is_named(
    repository: SmallRepository, path: str, old: str, new: str
) -> None:
    repository.edit(path, old, new)
    with pytest.raises(ReleaseError) as refusal:
        check_versions(repository.commit())
    assert str(refusal.value) == f"{path} says 1.2.4, not 1.2.3"


def test_a_version_that_is_not_named_any_more_is_missed(repository: SmallRepository) -> None:
    repository.edit("docs/install.md", "stromboli:1.2.3", "stromboli")
    with pytest.raises(ReleaseError, match=r"docs/install\.md says nothing, not 1\.2\.3"):
        check_versions(repository.commit())


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("## [1.2.3] - 2027-01-31", "## [1.2.2] - 2027-01-31", "has no section for 1.2.3"),
        (" - 2027-01-31", "", "has no date"),
        ("- Something new.", "", "the section of 1.2.3 is missing or empty"),
    ],
)
def test_a_changelog_that_says_nothing_of_the_version_is_refused(
    repository: SmallRepository, old: str, new: str, problem: str
) -> None:
    repository.edit("CHANGELOG.md", old, new)
    with pytest.raises(ReleaseError, match=problem):
        check_changelog(repository.commit())


def test_a_development_version_has_its_entries_below_unreleased(repository: SmallRepository) -> None:
    development = repository.release(version="1.3.0.dev0")
    with pytest.raises(ReleaseError, match="the section of Unreleased is missing or empty"):
        check_changelog(development)
    repository.edit("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n- One.\n- Another.\n")
    detail = check_changelog(development).detail
    assert detail == "2 entries below [Unreleased] and in changelog.d, for a development version"


def test_tests_that_were_left_out_are_on_record(repository: SmallRepository) -> None:
    release = repository.release(skip_tests=True)
    for check in (check_lint, check_tests):
        assert check(release).unchecked == ("left out by --skip-tests",)


def test_lint_that_fails_fails_the_release(repository: SmallRepository) -> None:
    repository.write("Makefile", "lint:\n\t@echo 'a line is too long' && false\n")
    with pytest.raises(ReleaseError, match="make lint: ended with 2\na line is too long"):
        check_lint(repository.commit())


def test_tests_that_need_a_program_that_is_missing_are_on_record(
    repository: SmallRepository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    programs = tmp_path_factory.mktemp("programs")
    for name in ("make", "touch"):
        program = shutil.which(name)
        if program is None:
            pytest.skip(f"there is no {name} here")
        (programs / name).symlink_to(program)
    (programs / "kubectl").symlink_to(program)
    repository.write("Makefile", "test-all test-kubernetes test-embedded:\n\t@touch dist-$@\n")
    repository.commit()
    outcome = check_tests(repository.release(environment={"PATH": str(programs)}))
    assert outcome.unchecked == ("make test-kubernetes: there is no go here",)
    made = sorted(file.name for file in repository.root.glob("dist-*"))
    assert made == ["dist-test-all", "dist-test-embedded"]
