"""Semantic versions (semver.org) as texts that order as the versions do, so that versions compare as texts.

Build metadata is left out, since versions that differ in it alone are equal.
"""

from __future__ import annotations

import re

_IDENTIFIER = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_NUMBER = r"(0|[1-9][0-9]{0,19})"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_WIDTH = 20
"""Digits of a number of 64 bits."""
_MARK = "v"
_RELEASE = "~"
"""Above every pre-release."""


def ordered_version(text: str, normalize: bool = False) -> str:
    """The version as a text that orders; ValueError if it is none."""
    match = _VERSION.fullmatch(_normalized(text) if normalize else text)
    if match is None:
        raise ValueError(f"{text[:64]!r} is no semantic version")
    *numbers, prerelease = match.groups()
    if any(int(number) >= 2**64 for number in numbers):
        raise ValueError(f"{text[:64]!r} has a number that does not fit 64 bits")
    head = _MARK + "".join(number.rjust(_WIDTH, "0") for number in numbers)
    if prerelease is None:
        return head + _RELEASE
    return head + "".join(_ordered_identifier(part) for part in prerelease.split("."))


def _ordered_identifier(part: str) -> str:
    """Numbers order by value and before all others, which order as texts; a shorter list comes first."""
    return f"0{len(part):05}{part} " if part.isdecimal() else f"1{part} "


def _normalized(text: str) -> str:
    """Without a leading `v` and leading zeros, with the minor and patch numbers that are missing."""
    parts = text.removeprefix("v").split(".", 2)
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise ValueError(f"{text[:64]!r} is too short for a pre-release or build metadata")
    stripped = [re.sub(r"^0+(?=[0-9])", "", part) for part in parts]
    return ".".join([*stripped, "0", "0"][:3])


def is_version(text: str, normalize: bool = False) -> bool:
    try:
        ordered_version(text, normalize)
    except ValueError:
        return False
    return True


def version_number(version: str, place: int) -> int:
    """The major (0), minor (1) or patch (2) number of an ordered version."""
    if not re.fullmatch(rf"v[0-9]{{{3 * _WIDTH}}}[01~].*", version, re.ASCII):
        raise ValueError("no such overload: the target is no version")
    number = int(version[1 + place * _WIDTH :][:_WIDTH])
    return number if number < 2**63 else number - 2**64
