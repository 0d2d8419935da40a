"""Reads a shell script of simple commands: words, `;`, `&&` and `||`. Nothing is evaluated.

Whatever else a shell knows (pipes, loops, conditions, functions, jobs) makes a script `NotSimple`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_SCRIPT = 16 * 1024
"""Characters of a script that is read."""

_OPERATORS = frozenset("|&;<>()")
_PARAMETER = re.compile(
    r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\{[A-Za-z_][A-Za-z0-9_]*(?::?[-+=][^?`$(){}]*)?\})"
)
_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_UNSPLIT = re.compile(r"[^\s*?\[\\]+")
"""A value that stays one word where it is not quoted."""
_OF_SHELLS = {
    "IFS",
    "PWD",
    "OLDPWD",
    "PPID",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "UID",
    "EUID",
    "SHLVL",
    "OPTIND",
    "OPTARG",
}
"""Variables that a shell sets itself, whatever its environment says."""
_SINKS = {"/dev/null": True, "/dev/termination-log": True, "/dev/stdout": False, "/dev/stderr": False}
"""Files that output may be redirected to, and whether it is then missing in the log."""


class NotSimple(Exception):
    """The script has something that only a shell understands."""


@dataclass(slots=True)
class Word:
    """An argument; its text is what the script says, which is not what it becomes if `plain` is false."""

    text: str = ""
    plain: bool = True
    """It has no variables, substitutions or patterns."""
    substitutions: list[str] = field(default_factory=list)
    """Scripts that run to make the word: `$(...)`."""
    expanded: bool = False
    """It has the value of a variable."""
    assignment: bool = False
    """It sets a variable if nothing but such words comes before it."""


@dataclass(slots=True)
class SimpleCommand:
    """A command with its arguments, and the operator before it: `;`, `&&` or `||`."""

    operator: str = ";"
    words: list[Word] = field(default_factory=list)
    silent: bool = False
    """Its output is redirected."""


def parse_script(text: str, variables: Mapping[str, str] | None = None) -> list[SimpleCommand]:
    """The commands of a script, with the values of these variables in it.

    `NotSimple` if it has anything else, or is too long.
    """
    if len(text) > MAX_SCRIPT:
        raise NotSimple(f"more than {MAX_SCRIPT} characters")
    return _Reader(text, variables or {}).commands()


def referenced_variables(text: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that a script uses and neither it nor the shell sets."""
    assigned = set(_ASSIGNED.findall(text)) | _OF_SHELLS
    if "IFS=" in text:
        return {}
    names = dict.fromkeys(_NAME.findall(text))
    return {name: variables[name] for name in names if name in variables and name not in assigned}


class _Reader:
    def __init__(self, text: str, variables: Mapping[str, str]) -> None:
        self._text = text.replace("\\\n", "")
        self._variables = variables
        self._room = MAX_SCRIPT
        """Characters that values may still add."""
        self._at = 0
        self._commands: list[SimpleCommand] = []
        self._command = SimpleCommand()

    def commands(self) -> list[SimpleCommand]:
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in " \t":
                self._at += 1
            elif character == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif character == "\n":
                self._at += 1
                if self._command.words or self._command.operator == ";":
                    self._end_command(";", blank=True)
            elif character in _OPERATORS:
                self._operator(character)
            else:
                self._word()
        if not self._command.words and self._command.operator != ";":
            raise NotSimple("an operator without a command")
        self._end_command(";", blank=True)
        return self._commands

    def _operator(self, character: str) -> None:
        pair = self._text[self._at : self._at + 2]
        if pair in ("&&", "||"):
            self._at += 2
            self._end_command(pair)
        elif character == ";" and pair != ";;":
            self._at += 1
            self._end_command(";")
        elif character == ">":
            self._redirect(stdout=True)
        else:
            raise NotSimple(pair)

    def _end_command(self, operator: str, blank: bool = False) -> None:
        if self._command.words:
            self._commands.append(self._command)
        elif not blank:
            raise NotSimple("an operator without a command")
        self._command = SimpleCommand(operator)

    def _redirect(self, stdout: bool) -> None:
        match = re.compile(r">(?:&([12])(?=[\s;&|]|$)|>?[ \t]*([^\s;&|<>()'\"$`\\]+))").match(
            self._text, self._at
        )
        if match is None or (match[2] is not None and match[2] not in _SINKS):
            raise NotSimple("a redirection")
        self._at = match.end()
        if stdout and match[2] is not None:
            self._command.silent = _SINKS[match[2]]

    def _word(self) -> None:
        start, word = self._at, Word()
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in " \t\n" or character in _OPERATORS:
                break
            if character == "'":
                word.text += self._up_to("'", self._at + 1)
            elif character == '"':
                self._double_quoted(word)
            elif character == "\\":
                word.text += self._escaped()
            elif character in "$`":
                self._expansion(word, quoted=False)
            else:
                word.text += character
                word.plain = (
                    word.plain and character not in "*?[{" and not (character == "~" and start == self._at)
                )
                self._at += 1
        if self._text[self._at : self._at + 1] == ">" and self._text[start : self._at] in ("1", "2"):
            self._redirect(stdout=self._text[start] == "1")
        else:
            word.assignment = _ASSIGNED.match(self._text, start) is not None
            self._command.words.append(word)

    def _double_quoted(self, word: Word) -> None:
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return
            if character in "$`":
                self._expansion(word, quoted=True)
            elif character == "\\" and self._text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\"):
                word.text += self._escaped()
            else:
                word.text += character
                self._at += 1
        raise NotSimple("a quote without an end")

    def _escaped(self) -> str:
        if self._at + 1 >= len(self._text):
            raise NotSimple("a backslash at the end")
        self._at += 2
        return self._text[self._at - 1]

    def _up_to(self, end: str, start: int) -> str:
        """The text from `start` up to `end`, behind which reading goes on."""
        found = self._text.find(end, start)
        if found < 0:
            raise NotSimple(f"no {end}")
        self._at = found + len(end)
        return self._text[start:found]

    def _expansion(self, word: Word, quoted: bool) -> None:
        begin = self._at
        if self._text[begin] == "`":
            word.substitutions.append(self._up_to("`", begin + 1))
            if "\\" in word.substitutions[-1]:
                raise NotSimple("a backslash in a substitution")
        elif self._text.startswith("$((", begin):
            raise NotSimple("arithmetic")
        elif self._text.startswith("$(", begin):
            word.substitutions.append(self._parenthesised(begin + 2))
        elif (match := _PARAMETER.match(self._text, begin)) is not None:
            self._at = match.end()
            if (value := self._value(match[0], quoted)) is not None:
                word.text += value
                word.expanded = True
                return
        elif self._text.startswith("${", begin) or (
            not quoted and self._text[begin + 1 : begin + 2] in ("'", '"')
        ):
            raise NotSimple("a quote or an expansion of a shell")
        else:  # a dollar sign
            word.text += "$"
            self._at += 1
            return
        word.text += self._text[begin : self._at]
        word.plain = False

    def _value(self, parameter: str, quoted: bool) -> str | None:
        """Of `$NAME` or `${NAME}`; None if it is not known, or may become several words."""
        match = _NAME.fullmatch(parameter)
        value = self._variables.get(match[1]) if match is not None else None
        if value is None or not (quoted or _UNSPLIT.fullmatch(value)):
            return None
        self._room -= len(value)
        if self._room < 0:
            raise NotSimple(f"values of more than {MAX_SCRIPT} characters")
        return value

    def _parenthesised(self, start: int) -> str:
        """A parenthesis in quotes leaves a quote without an end in the text, which is therefore not simple."""
        depth = 1
        for match in re.compile("[()]").finditer(self._text, start):
            depth += 1 if match[0] == "(" else -1
            if not depth:
                self._at = match.end()
                return self._text[start : match.start()]
        raise NotSimple("no )")
