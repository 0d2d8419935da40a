"""What came of one check."""

from __future__ import annotations

import enum
from typing import NamedTuple


class CheckState(enum.StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Works, and wants looking after."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """Cannot be told, as a right is missing or it does not apply."""


class CheckResult(NamedTuple):
    """What was looked at, how it is, and what to do about it."""

    check: str
    state: CheckState
    text: str
    remedy: str = ""


def ok(check: str, text: str) -> CheckResult:
    return CheckResult(check, CheckState.OK, text)


def warning(check: str, text: str, remedy: str = "") -> CheckResult:
    return CheckResult(check, CheckState.WARNING, text, remedy)


def failed(check: str, text: str, remedy: str = "") -> CheckResult:
    return CheckResult(check, CheckState.FAILED, text, remedy)


def skipped(check: str, text: str, remedy: str = "") -> CheckResult:
    return CheckResult(check, CheckState.SKIPPED, text, remedy)
