"""`python -m deploy.release.changelog VERSION`: move the fragments of changelog.d into CHANGELOG.md."""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from deploy.release.release_plan import ReleaseError, run

CHANGELOG = "CHANGELOG.md"
FRAGMENTS = "changelog.d"
UNRELEASED = "Unreleased"
"""The section of changes that are in no release yet."""
CATEGORIES = ("added", "changed", "deprecated", "removed", "fixed", "security")


class Fragment(NamedTuple):
    """A change for users, in a file of its own."""

    path: Path
    category: str
    text: str


def fragments(root: Path) -> list[Fragment]:
    """The fragments of a repository by name; a file that is not a fragment is refused."""
    files = sorted(file for file in (root / FRAGMENTS).glob("*") if file.name != "README.md")
    return [_fragment(file) for file in files]


def _fragment(file: Path) -> Fragment:
    name = re.fullmatch(rf"[a-z0-9-]+\.({'|'.join(CATEGORIES)})\.md", file.name)
    if name is None:
        raise ReleaseError(
            f"{FRAGMENTS}/{file.name}: invalid name; use NAME.CATEGORY.md with lower-case letters, digits and"
            f" hyphens in NAME, and one of these categories: {', '.join(CATEGORIES)}"
        )
    text = file.read_text().strip()
    if not text or re.search(r"^([-*#]+ |$)", text, re.M):
        raise ReleaseError(f"{FRAGMENTS}/{file.name}: expected a single paragraph without bullet or heading")
    return Fragment(file, name[1], text)


def collect(root: Path, version: str, date: str) -> int:
    """Give the unreleased entries and all fragments a section of their own; the number of fragments."""
    changelog, collected = root / CHANGELOG, fragments(root)
    head, found, rest = changelog.read_text().partition(f"## [{UNRELEASED}]\n")
    if not found:
        raise ReleaseError(f"{CHANGELOG}: missing section ## [{UNRELEASED}]")
    if f"\n## [{version}]" in head + rest:
        raise ReleaseError(f"{CHANGELOG}: the section of {version} already exists")
    unreleased, next_section, older = rest.partition("\n## [")
    parts = [f"## [{version}] - {date}", unreleased.strip()]
    for category in CATEGORIES:
        entries = [
            textwrap.indent(each.text, "  ").replace("  ", "- ", 1)
            for each in collected
            if each.category == category
        ]
        parts += [f"### {category.capitalize()}", "\n".join(entries)] if entries else []
    section = "\n\n".join(filter(None, parts))
    changelog.write_text(f"{head}{found}\n{section}\n{next_section}{older}")
    for each in collected:
        each.path.unlink()
    return len(collected)


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0 if the fragments are in the changelog, 1 if the changelog or a fragment is invalid."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release.changelog", description=__doc__)
    parser.add_argument("version", metavar="VERSION", help="Version to be released.")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    parser.add_argument("--date", default=today, help="Date of the release. Default: today (UTC).")
    asked = parser.parse_args(arguments)
    try:
        root = Path(run(["git", "rev-parse", "--show-toplevel"], Path.cwd()).strip())
        count = collect(root, asked.version, asked.date)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{CHANGELOG}: section {asked.version} created, {count} fragments collected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
