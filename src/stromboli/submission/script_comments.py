"""Options in the comments at the top of a script: `#STROMBOLI --gpus 2`, `#SBATCH -N 2 --time=1:00:00`."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from stromboli.submission.bad_request import BadRequest

MARKS = ("#STROMBOLI", "#SBATCH")
MAX_LINES = 1000
"""Lines with options."""
MAX_WORDS = 2000


class ScriptComments(NamedTuple):
    """The words after each mark, line by line."""

    stromboli: list[str]
    sbatch: list[str]


def check_script(text: str, name: str) -> None:
    """As Slurm does: a first line that says what runs it."""
    first = text.partition("\n")[0]
    if not first.startswith("#!"):
        raise BadRequest("script", name, "must begin with #! and what runs it, such as #!/bin/sh")
    if first.endswith("\r"):
        raise BadRequest("script", name, "has lines that end as on Windows; convert it, as with dos2unix")
    if len(first) > 250:
        raise BadRequest("script", name, "has a first line of more than 250 characters, which Linux cuts off")


def read_comments(text: str, name: str) -> ScriptComments:
    """The options of a script; they end at the first line that is neither empty nor a comment."""
    found: dict[str, list[str]] = {mark: [] for mark in MARKS}
    lines = 0
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            break
        mark = next((mark for mark in MARKS if line.startswith(mark)), None)
        if mark is None or not line[len(mark) : len(mark) + 1].isspace():
            continue
        lines += 1
        found[mark] += _words(line[len(mark) :], f"{name} line {number}")
        if lines > MAX_LINES or len(found[mark]) > MAX_WORDS:
            raise BadRequest(name, "", f"more than {MAX_LINES} lines or {MAX_WORDS} words of options")
    return ScriptComments(found["#STROMBOLI"], found["#SBATCH"])


def _words(text: str, where: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if word.startswith("#"):
                break
            words.append(word)
    except ValueError as error:
        raise BadRequest(where, text.strip(), f"quotes do not match: {error}") from None
    return words
