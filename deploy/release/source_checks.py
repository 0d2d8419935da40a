"""Is this commit fit to be released? A clean tree, one version everywhere, a changelog, lint and tests."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from deploy.chart import semantic_version
from deploy.release.changelog import CHANGELOG, FRAGMENTS, UNRELEASED, fragments
from deploy.release.release_plan import MINUTE, Outcome, Release, ReleaseError, not_checked, passed, run

LONGEST_LINT = 15 * MINUTE
LONGEST_TESTS = 120 * MINUTE
TESTS = {"test-all": "make", "test-kubernetes": "go", "test-embedded": "kubectl"}
"""Targets of the Makefile, and the program that each needs."""
SOURCE = "src/stromboli/__init__.py"
"""Where the version stands; both packages read it there."""
CHART = "deploy/chart/Chart.yaml"
CHANGED_FILES_SHOWN = 20


def check_tree(release: Release) -> Outcome:
    """Nothing differs from the commit, and its tag, if it has one, is that of the version."""
    changed = run(["git", "status", "--porcelain"], release.root).splitlines()
    if changed:
        shown = "\n".join(changed[:CHANGED_FILES_SHOWN])
        raise ReleaseError(f"{len(changed)} files differ from the commit; commit or remove them:\n{shown}")
    tag = f"v{release.version}"
    tags = run(["git", "tag", "--points-at", release.commit], release.root).split()
    others = [name for name in tags if name.startswith("v") and name != tag]
    if others:
        raise ReleaseError(f"the commit has the tag {others[0]}, and version {release.version} is asked for")
    if tag in tags:
        return passed(f"clean, tagged {tag}")
    return passed(f"clean, commit {release.commit[:12]}", f"there is no tag {tag} yet")


def check_versions(release: Release) -> Outcome:
    """Every file that names a version names this one."""
    named = list(_named_versions(release))
    wrong = [
        f"{where} says {name or 'nothing'}, not {wanted}" for where, name, wanted in named if name != wanted
    ]
    if wrong:
        raise ReleaseError("\n".join(wrong))
    return passed(f"{release.version} in {len({where for where, _, _ in named})} files")


def _named_versions(release: Release) -> Iterator[tuple[str, str, str]]:
    """Where a version is named, what is named there, and what should be."""
    root, version = release.root, release.version
    images = [file for file in sorted(release.tracked("deploy")) if _sets_an_image(root / file)]
    places = [
        (SOURCE, r'^__version__ = "(.*)"$', version),
        ("deploy/Containerfile", r"-t stromboli:(\S+)", version),
        ("docs/install.md", r"\bstromboli:(\d[\w.]*)", version),
        *((file, r"newTag: (\S+)", version) for file in images),
    ]
    if (root / CHART).exists():
        places += [
            (CHART, r"^appVersion: (\S+)$", version),
            (CHART, r"^version: (\S+)$", semantic_version(version)),
        ]
    for file, pattern, wanted in places:
        for name in _names(root / file, pattern):
            yield file, name, wanted


def _sets_an_image(file: Path) -> bool:
    return file.name == "kustomization.yaml" and "newTag:" in file.read_text()


def _names(file: Path, pattern: str) -> list[str]:
    """What a pattern has in its group; a file that names nothing says so by an empty name."""
    return re.findall(pattern, file.read_text(), re.M) or [""]


def check_changelog(release: Release) -> Outcome:
    """The version has a dated section with entries, and no fragment is left; a development version has either."""
    text, uncollected = (release.root / CHANGELOG).read_text(), fragments(release.root)
    if ".dev" in release.version:
        return passed(
            f"{_entries(text, UNRELEASED, len(uncollected))} entries below [{UNRELEASED}] and in {FRAGMENTS},"
            " for a development version"
        )
    collecting = f"python -m deploy.release.changelog {release.version}"
    if uncollected:
        names = ", ".join(each.path.name for each in uncollected[:CHANGED_FILES_SHOWN])
        raise ReleaseError(f"{FRAGMENTS}: {len(uncollected)} uncollected changes: {names}; run: {collecting}")
    head = re.search(rf"^## \[{re.escape(release.version)}\](.*)$", text, re.M)
    if head is None:
        raise ReleaseError(f"{CHANGELOG} has no section for {release.version}; run: {collecting}")
    if not re.fullmatch(r" - \d{4}-\d\d-\d\d", head[1]):
        raise ReleaseError(f"{CHANGELOG}: {head[0]!r} has no date; write ## [{release.version}] - YYYY-MM-DD")
    return passed(f"{_entries(text, release.version)} entries")


def _entries(changelog: str, section: str, uncollected: int = 0) -> int:
    """The number of entries of a section and of its uncollected fragments; none is an error."""
    body = changelog.partition(f"\n## [{section}]")[2].partition("\n## [")[0]
    entries = len(re.findall(r"^- ", body, re.M)) + uncollected
    if not entries:
        raise ReleaseError(f"{CHANGELOG}: the section of {section} is missing or empty")
    return entries


def check_lint(release: Release) -> Outcome:
    """`make lint`: format, lint, types, import rules."""
    if release.skip_tests:
        return not_checked("left out by --skip-tests")
    run(["make", "lint"], release.root, LONGEST_LINT)
    return passed("format, lint, types and import rules")


def check_tests(release: Release) -> Outcome:
    """`make test-all`, and the tests that need more than Python, where the programs are that they need."""
    if release.skip_tests:
        return not_checked("left out by --skip-tests")
    environment = {**release.environment, "STROMBOLI_NEEDS_KUBERNETES": "1"}
    unchecked = untested(release)
    for target in (each for each in TESTS if each not in unchecked):
        run(["make", target], release.root, LONGEST_TESTS, environment)
    return passed(", ".join(f"make {target}" for target in TESTS), *unchecked.values())


def untested(release: Release) -> dict[str, str]:
    """Targets that cannot run on this machine, and why."""
    path = release.environment.get("PATH")
    return {
        target: f"make {target}: there is no {program} here"
        for target, program in TESTS.items()
        if shutil.which(program, path=path) is None
    }
