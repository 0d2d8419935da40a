"""Numbers and options that pages state are those of the code."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from stromboli.cli.main import app
from tests.docs.pages import PAGES, ROOT

DOCS = ROOT / "docs"
CONFORMANCE = ROOT / "tests" / "conformance"


def deviations() -> list[str]:
    """For each deviation in force, whether it can change placements, as the table states it."""
    table = (DOCS / "deviations.md").read_text().partition("## In force\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert all(len(row) == 6 for row in rows)
    return [row[3] for row in rows]


def counts() -> dict[str, int]:
    """By the words after a number, with `OF` for "of them" and the like."""
    changes = deviations()
    return {
        "conformance cases": len(list(CONFORMANCE.rglob("cases/**/*.json"))),
        "warts": len(json.loads((CONFORMANCE / "warts.json").read_text())),
        "deviations": len(changes),
        "OF change placements": sum(change != "no" for change in changes),
    }


OWN_WORDS = {"warts"}
"""What the README states in other words, which tests/docs/test_readme.py compares."""


def stated(page: Path, words: str) -> list[int]:
    """The numbers that a page states before these words."""
    pattern = words.replace("OF", "(?:of them |of which |)(?:can|may)")
    found = re.findall(rf"\b([\d,]+) (?:documented )?{pattern}\b", re.sub(r"\s+", " ", page.read_text()))
    return [int(number.replace(",", "")) for number in found]


@pytest.mark.parametrize("words", counts())
def test_counts_of_cases_and_deviations_are_current(words: str) -> None:
    real = counts()[words]
    assert stated(ROOT / "README.md", words) or words in OWN_WORDS
    assert stated(DOCS / "deviations.md", words)
    assert {page.name: stated(page, words) for page in PAGES if set(stated(page, words)) - {real}} == {}


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All commands below one, with their full names."""
    command = command.load() if hasattr(command, "load") else command
    for part, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {part}".strip())
    if not hasattr(command, "commands"):
        yield name, command


@cache
def output_formats() -> dict[str, tuple[str, ...]]:
    """The choices of `-o` of each command; none without that option."""
    formats: dict[str, tuple[str, ...]] = {}
    for name, command in commands(get_command(app)):
        options = [option for option in command.params if "-o" in option.opts]
        formats[name] = tuple(getattr(options[0].type, "choices", ())) if options else ()
    return formats


def formats_of(name: str) -> set[tuple[str, ...]]:
    """The output formats of a command, of the subcommands of a group that have any, or of all commands of a name."""
    formats = output_formats()
    if name in formats:
        return {formats[name]}
    below = {choices for each, choices in formats.items() if each.startswith(f"{name} ") and choices}
    return below or {choices for each, choices in formats.items() if each.endswith(f" {name}")}


def test_the_table_of_output_formats_is_current() -> None:
    table = (DOCS / "commands.md").read_text().partition("## Output formats\n")[2].partition("\n## ")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| `")]
    assert len(rows) == 4
    for names, choices in rows:
        expected = tuple(re.findall(r"`(\w+)`", choices))
        for name in re.findall(r"`([\w ]+)`", names):
            assert formats_of(name) == {expected}, name


def test_no_page_installs_an_extra_of_a_package_that_is_not_published() -> None:
    assert [page.name for page in PAGES if "stromboli[" in page.read_text()] == []


EXAMPLE_COMMIT = "0123456789ab"
"""Stands for a commit in sample output."""
COMMIT = re.compile(r"\bcommit `?([0-9a-f]{7,40})\b|`([0-9a-f]{7,12})`")


def commits(text: str) -> set[str]:
    """The commits that a text names, in words or as code."""
    return {first or second for first, second in COMMIT.findall(text)} - {EXAMPLE_COMMIT}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _has_history() -> bool:
    """Whether the commits of this repository can be looked up: not in a source distribution or a shallow clone."""
    try:
        return _git("rev-parse", "--show-toplevel", "--is-shallow-repository").split() == [str(ROOT), "false"]
    except (OSError, subprocess.CalledProcessError):
        return False


@pytest.mark.programs("git")
def test_commits_that_pages_name_belong_to_this_branch() -> None:
    named = {commit: page.name for page in PAGES for commit in commits(page.read_text())}
    assert {"25776cc", "7e6e54c3"} <= named.keys()
    if not _has_history():
        pytest.skip("needs the history of the repository")
    known = _git("rev-list", "HEAD").splitlines()
    unknown = {
        commit: page for commit, page in named.items() if not any(each.startswith(commit) for each in known)
    }
    assert unknown == {}


WITHOUT_MEASUREMENTS = {"What is measured", "On a real API server"}
"""Sections of docs/performance.md of which tables list workloads and aims."""


def test_each_table_of_measurements_says_its_commit_or_date() -> None:
    undated = []
    for section in re.split(r"^#+ ", (DOCS / "performance.md").read_text(), flags=re.M):
        heading = section.partition("\n")[0]
        before, table, _ = section.partition("\n|")
        dated = commits(before) or re.search(r"November 2026|2026-11", before)
        if table and not dated and heading not in WITHOUT_MEASUREMENTS:
            undated.append(heading)
    assert undated == []


@pytest.mark.parametrize("page", ["README.md", "docs/deviations.md", "docs/performance.md"])
def test_components_are_not_named_like_persons(page: str) -> None:
    prose = re.sub(r"`[^`\n]*`", "", (ROOT / page).read_text())
    assert re.findall(r"\b(?i:(?:any|every|no|some)body|whom|whoever)\b.*|\bWho\b.*", prose) == []
