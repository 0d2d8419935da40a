"""The specification can be relied on: whatever cites it leads somewhere, and its numbers are in order.

How to cite it, and what can be cited, is said in docs/spec/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import ROOT

FILES = sorted((ROOT / "docs" / "spec").glob("[0-9]*.md"))
PLACES = ("src", "tests", "docs", "examples", "bench", "deploy")
WITHDRAWN = {("02", "10"), ("07", "18")}

_NUMBER = r"(?:D\d+|\d+(?:\.\d+)*)"
_LIST = rf"{_NUMBER}(?:(?:, | and | to |-)(?:\d\d )?{_NUMBER})*"
_ANYWHERE = re.compile(rf"(?<![\w.])spec[\s#]+(?P<file>\d\d)\b(?:[\s#]+(?P<list>{_LIST}))?")
_FROM_FILE_TO_FILE = re.compile(rf"(?<![\w.:/-])(?P<file>0\d) (?P<list>{_LIST})\b(?!:\d)")
_WITHIN_A_FILE = re.compile(r"§(?P<list>\d+(?:\.\d+)*(?:-\d+(?:\.\d+)*)?)")
_ANCHOR = re.compile(r"^(?:#{2,3} (\d+(?:\.\d+)*)[. ]|\*\*(\d+(?:\.\d+)+)[* ]|\| (D\d+) \|)", re.MULTILINE)


class Reference(NamedTuple):
    """Where something is cited, and what."""

    line: int
    file: str
    section: str

    def __str__(self) -> str:
        return f"spec {self.file} {self.section}".rstrip()


def _anchors(text: str) -> list[str]:
    """What of a page can be cited, from top to bottom: headings, numbered paragraphs, rows of the register."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [number for groups in _ANCHOR.findall(prose) for number in groups if number]


SECTIONS = {path.name[:2]: _anchors(path.read_text()) for path in FILES}
KNOWN = {(file, number) for file, numbers in SECTIONS.items() for number in ("", *numbers)}


def _references(text: str, own: str = "") -> Iterator[Reference]:
    """Whatever a text cites; a page of the specification (`own`) also says `§3.4` and, of other pages, `02 3.4`."""
    for pattern in (_FROM_FILE_TO_FILE, _WITHIN_A_FILE) if own else (_ANYWHERE,):
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            file = match.groupdict().get("file", own)
            for part in re.split(r", | and | to |-", match["list"] or ""):
                *other, section = part.split(" ")
                file = other[0] if other else file
                yield Reference(line, file, section)


def _problems(text: str, own: str = "") -> list[str]:
    return [
        f"{reference.line}: {reference}"
        for reference in _references(text, own)
        if (reference.file, reference.section) not in KNOWN
    ]


def _texts() -> Iterator[tuple[Path, str]]:
    """Every text that may cite the specification; not this one, which cites what is not there."""
    paths = [path for place in PLACES for path in sorted((ROOT / place).rglob("*"))]
    for path in [*ROOT.glob("*.md"), *paths]:
        if path.is_file() and path != Path(__file__) and "__pycache__" not in path.parts:
            try:
                yield path, path.read_text()
            except UnicodeDecodeError:
                continue


def test_every_reference_leads_to_a_section() -> None:
    texts = [(path, text, path.name[:2] if path in FILES else "") for path, text in _texts()]
    problems = [
        f"{path.relative_to(ROOT)}:{problem}" for path, text, own in texts for problem in _problems(text, own)
    ]
    assert problems == [], "there is no such section in docs/spec"
    assert sum(1 for path, text, own in texts if not own for _ in _references(text)) > 200


def test_all_seven_files_are_there() -> None:
    assert list(SECTIONS) == ["01", "02", "03", "04", "05", "06", "07"]
    assert all(len(numbers) > 10 for numbers in SECTIONS.values())


@pytest.mark.parametrize("file", sorted(SECTIONS))
def test_numbers_are_unique_and_in_order(file: str) -> None:
    numbers = [
        tuple(map(int, section.split("."))) for section in SECTIONS[file] if not section.startswith("D")
    ]
    assert numbers == sorted(set(numbers))
    assert [number for number in numbers if len(number) > 1 and number[:-1] not in numbers] == []
    rows = [int(section[1:]) for section in SECTIONS[file] if section.startswith("D")]
    assert rows == list(range(1, len(rows) + 1))


def test_a_number_that_was_withdrawn_is_not_given_again() -> None:
    assert not WITHDRAWN & KNOWN


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("# quirk: spec 02 3.4: fine", []),
        ("(spec 01 9, 02 0.5), spec 04 2.2-2.4, spec 06 2.7 to 2.15, spec 02 D4; all of spec 05", []),
        ("one\ntwo (spec 02 3.99)", ["2: spec 02 3.99"]),
        ("spec 02 3.4, 3.77, 01 55 and D3", ["1: spec 02 3.77", "1: spec 01 55", "1: spec 01 D3"]),
        ("spec 02 D99, spec 08 1, spec 12", ["1: spec 02 D99", "1: spec 08 1", "1: spec 12"]),
        ("spec 04 2.2-2.44", ["1: spec 04 2.44"]),
        ("# as in spec\n# 02 99", ["1: spec 02 99"]),
        ("a spec of 3.4 pages, a pod.spec 12", []),
    ],
)
def test_a_reference_that_leads_nowhere_is_noticed(text: str, problems: list[str]) -> None:
    assert _problems(text) == problems


def test_so_it_is_within_the_specification() -> None:
    text = "as in §3.4 and §3.99, from §13-66; see 02 0.3, D16 and (01 5.99: why), at 05:00 or 02 10"
    assert _problems(text, own="02") == [
        "1: spec 01 5.99",
        "1: spec 02 10",
        "1: spec 02 3.99",
        "1: spec 02 13",
        "1: spec 02 66",
    ]
