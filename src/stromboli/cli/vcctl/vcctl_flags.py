"""Flags as Volcano's command line takes them: `--name value`, `--name=value`, `-n value`, `-nvalue`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Flag(NamedTuple):
    """A flag of a command; a `boolean` needs no value."""

    name: str
    short: str
    default: str
    help: str
    boolean: bool = False
    number: bool = False

    @property
    def spelling(self) -> str:
        return f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"


class FlagError(ValueError):
    """A command line that cannot be read, in the words of Volcano's."""


COMMON = (
    Flag("master", "s", "", "the address of apiserver"),
    Flag("kubeconfig", "k", "", "(optional) absolute path to the kubeconfig file"),
)
LOGGING = (
    Flag("v", "v", "0", "log level for V logs"),
    Flag("vmodule", "", "", "comma-separated list of pattern=N settings for file-filtered logging"),
    Flag("log-flush-frequency", "", "5s", "Maximum number of seconds between log flushes"),
)
"""Accepted and without effect."""
HELP = Flag("help", "h", "false", "help for the command", boolean=True)


class Words(NamedTuple):
    """A command line, read: the value of every flag, and the other words."""

    values: dict[str, str]
    given: frozenset[str]
    rest: list[str]


def parse_words(flags: Sequence[Flag], words: Sequence[str]) -> Words:
    """Read a command line; `_` and `-` are the same in names of flags."""
    known = {flag.name: flag for flag in (*flags, *COMMON, *LOGGING, HELP)}
    shorts = {flag.short: flag for flag in known.values() if flag.short}
    values = {flag.name: flag.default for flag in known.values()}
    given: set[str] = set()
    rest: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            rest += remaining
            break
        if len(word) < 2 or not word.startswith("-"):
            rest.append(word)
            continue
        flag, value = _flag_of(word, known, shorts)
        if value is None and flag.boolean:
            value = "true"
        elif value is None:
            if not remaining:
                raise FlagError(f"flag needs an argument: {_as_given(word, flag)}")
            value = remaining.pop(0)
        values[flag.name] = _checked(flag, value)
        given.add(flag.name)
    return Words(values, frozenset(given), rest)


def with_flags_last(words: Sequence[str]) -> list[str]:
    """A command line whose common flags before the first word, as in `vcctl -v 4 job list`, stand behind the others."""
    known = {flag.name: flag for flag in (*COMMON, *LOGGING, HELP)}
    shorts = {flag.short: flag for flag in known.values() if flag.short}
    begin = 0
    while begin < len(words) and words[begin].startswith("-"):
        flag, value = _flag_of(words[begin], known, shorts)
        begin += 1 if flag.boolean or value is not None else 2
    return [*words[begin:], *words[:begin]]


def _flag_of(word: str, known: dict[str, Flag], shorts: dict[str, Flag]) -> tuple[Flag, str | None]:
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        flag = known.get(name.replace("_", "-"))
        if flag is None:
            raise FlagError(f"unknown flag: --{name}")
        return flag, value if equals else None
    flag = shorts.get(word[1])
    if flag is None:
        raise FlagError(f"unknown shorthand flag: {word[1]!r} in {word}")
    return flag, word[2:].removeprefix("=") or None


def _as_given(word: str, flag: Flag) -> str:
    return word if word.startswith("--") else f"{flag.short!r} in {word}"


def _checked(flag: Flag, value: str) -> str:
    problem = ""
    if flag.number and (not re.fullmatch(r"[+-]?[0-9]{1,10}", value) or abs(int(value)) >= 2**31):
        problem = f'strconv.ParseInt: parsing "{value}": invalid syntax'
    if flag.boolean and value not in ("true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE"):
        problem = f'strconv.ParseBool: parsing "{value}": invalid syntax'
    if problem:
        raise FlagError(f'invalid argument "{value}" for "{flag.spelling}" flag: {problem}')
    return str(value[0].lower() in "t1").lower() if flag.boolean else value


def usage(path: str, flags: Sequence[Flag], commands: Sequence[tuple[str, str]] = ()) -> str:
    """What a command and its flags, or a group and its commands, are."""
    lines = ["Usage:"]
    if commands:
        widest = max(len(name) for name, _ in commands)
        lines += [f"  {path} [command]", "", "Available Commands:"]
        lines += [f"  {name:{widest}} {help}" for name, help in commands]
        return "\n".join([*lines, "", f'Use "{path} [command] --help" for more information about a command.'])
    lines += [f"  {path} [flags]", "", "Flags:"]
    spellings = [_with_type(flag) for flag in (*flags, HELP, *COMMON)]
    widest = max(map(len, spellings))
    for flag, spelling in zip((*flags, HELP, *COMMON), spellings, strict=True):
        default = f' (default "{flag.default}")' if flag.default not in ("", "0", "false") else ""
        lines.append(f"{spelling:{widest}}   {flag.help}{default}")
    return "\n".join(lines)


def _with_type(flag: Flag) -> str:
    kind = "" if flag.boolean else " int32" if flag.number else " string"
    return f"  {f'-{flag.short}, ' if flag.short else '    '}--{flag.name}{kind}"
