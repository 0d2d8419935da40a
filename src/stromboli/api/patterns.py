"""Patterns that users write, matched in linear time by RE2: the syntax and meaning of Go's, which Kubernetes uses.

Linear is not yet short: a large pattern takes milliseconds to compile, and seconds on a long text. So patterns are
bounded in bytes and in memory, those of a definition together (`PatternSet`), and a match in steps: bytes of the text
times instructions of the pattern. `matching` bounds several matches together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2

MAX_PATTERN = 4096
"""Bytes of a pattern."""
MAX_MEMORY = 512 * 1024
"""Bytes that a compiled pattern may take."""
MAX_PATTERNS = 128
"""Compiled patterns that are kept: 64 MiB at most."""
MAX_COMPILED = 32_000
"""Instructions of the different patterns of a definition or an expression together, four bytes counted as one more."""
STEPS_TO_COMPILE = 2000
"""Nanoseconds to compile an instruction or four bytes of a pattern, at most."""
MAX_STEPS = 20_000_000
"""Bytes of texts times instructions of patterns, of a match or of all that `matching` holds: at most some 40 ms."""

_NOT_IN_GO = r"(?:^|[^\\])(?:\\\\)*(\\C)"
_GO_MESSAGES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""Go's messages by those of RE2; all others are the same."""

_steps_left: ContextVar[list[int] | None] = ContextVar("steps_left", default=None)


class PatternError(ValueError):
    """A pattern that is invalid or too large, or a text that is too long for it."""


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in a text."""
    compiled = _compiled(pattern)
    data = text.encode(errors="replace")
    _spend(len(data) * compiled.programsize, pattern)
    return compiled.search(data) is not None


def matching_texts(pattern: str, texts: Iterable[str]) -> Iterator[str]:
    """Those of many texts in which the pattern matches somewhere; the caller bounds them all together."""
    search = _compiled(pattern).search
    return (text for text in texts if search(text.encode(errors="replace")) is not None)


def first_match(text: str, pattern: str) -> str:
    """The first part of a text that the pattern matches; empty if there is none."""
    compiled = _compiled(pattern)
    data = text.encode(errors="replace")
    _spend(len(data) * compiled.programsize, pattern)
    match = compiled.search(data)
    return match.group().decode(errors="replace") if match else ""


def pattern_error(pattern: str) -> str:
    """Why this is not a pattern that may be used, in the words of Go's regexp; empty if it is."""
    try:
        _compiled(pattern)
    except PatternError as error:
        return str(error)
    return ""


class PatternSet:
    """The different patterns of a definition or an expression: each is compiled, so they are bounded together."""

    def __init__(self) -> None:
        self._patterns: set[str] = set()
        self._size = 0

    def add(self, pattern: str) -> None:
        """Take in one more; PatternError if it may not be used, or if there are too many, of which none is compiled."""
        if pattern not in self._patterns and not self.excess:
            self._size += compiled_size(pattern)
            self._patterns.add(pattern)
        if self.excess:
            raise PatternError(self.excess)

    @property
    def excess(self) -> str:
        """Why there may be no more patterns; empty as long as there may."""
        if self._size <= MAX_COMPILED:
            return ""
        return (
            f"all different patterns together may have at most {MAX_COMPILED} instructions: "
            "use fewer, or avoid counted repetitions and classes such as \\pL"
        )


def compiled_size(pattern: str) -> int:
    """Instructions and, for what it takes to read them, bytes of a pattern: what the time to compile it depends on."""
    return program_size(pattern) + len(pattern.encode()) // 4


@lru_cache(4096)
def program_size(pattern: str) -> int:
    """Instructions of a compiled pattern; the time of a match is at most that, times the bytes of the text."""
    return _compiled(pattern).programsize


def steps_to_match(text_bytes: int, pattern: str) -> int:
    """Nanoseconds, at most, to compile a pattern and to match a text of so many bytes once."""
    return STEPS_TO_COMPILE * compiled_size(pattern) + 2 * text_bytes * program_size(pattern)


@contextmanager
def matching() -> Iterator[None]:
    """Let all matches within, such as those of one object, spend `MAX_STEPS` together."""
    token = _steps_left.set([MAX_STEPS])
    try:
        yield
    finally:
        _steps_left.reset(token)


def _spend(steps: int, pattern: str) -> None:
    left = _steps_left.get()
    if left is None:
        left = [MAX_STEPS]
    left[0] -= steps
    if left[0] < 0:
        raise PatternError(
            f"too much text for the pattern `{pattern[:100]}`: bytes of text times instructions of the pattern "
            f"exceed {MAX_STEPS}; shorten the text or simplify the pattern"
        )


@lru_cache(MAX_PATTERNS)
def _compiled(pattern: str) -> re2._Regexp:
    import re2  # only who matches patterns pays for it

    if len(pattern.encode(errors="replace")) > MAX_PATTERN:
        raise PatternError(f"expression too large: it has more than {MAX_PATTERN} bytes")
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    try:
        if pattern != _NOT_IN_GO and re2.compile(_NOT_IN_GO, options).search(pattern.encode()):
            raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
        return re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError(_message(error.args[0])) from None
    except UnicodeEncodeError:
        raise PatternError("error parsing regexp: invalid UTF-8") from None


def _message(message: bytes) -> str:
    """An error of RE2 in the words of Go."""
    why, _, where = message.decode(errors="replace").partition(": ")
    if why == "pattern too large - compile failed":
        return f"expression too large: it needs more than {MAX_MEMORY} bytes of memory"
    return f"error parsing regexp: {_GO_MESSAGES.get(why, why)}" + (f": `{where}`" if where else "")
