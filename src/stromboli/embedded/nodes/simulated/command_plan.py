"""What the command of a container plainly does: how long it runs, its exit code, and what it prints.

A pure function of command and arguments. Nothing is evaluated; whatever is not certain has no plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import dropwhile
from typing import NamedTuple

from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.simulated.known_variables import container_variables
from stromboli.embedded.nodes.simulated.shell_script import (
    MAX_SCRIPT,
    NotSimple,
    SimpleCommand,
    Word,
    parse_script,
    referenced_variables,
)

MAX_POD_TEXT = 32 * 1024
"""Characters of all commands of a pod; of more, none is read."""
MAX_ARGUMENTS = 256
"""Arguments of a command that is read."""
MAX_DEPTH = 3
"""Substitutions within substitutions."""
_SHELLS = ("sh", "bash", "ash", "dash")
_BUILTINS = ("exec", "exit", "set")
_SHELL_OPTIONS = re.compile(r"-[elux]*c")
_FOLDERS = ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})([smhd]?)")
_DATE_OPTION = re.compile(
    r"\+.*|-u|--utc|--universal|-R|-I[a-z]*|--iso-8601(=[a-z]+)?|--rfc-[0-9a-z=-]+", re.DOTALL
)
_SET_OPTION = re.compile(r"[-+][eux]+")


Values = tuple[tuple[str, str], ...]
"""Variables with their values."""


class Printed(Enum):
    """What a command prints, where the command itself does not say the text."""

    DATE = "date"
    HOSTNAME = "hostname"
    UNKNOWN = "unknown"


class Output(NamedTuple):
    """What a container prints so many seconds after its start."""

    at: float
    text: str | Printed


class CommandPlan(NamedTuple):
    """How a container ends; its run time is infinite if it plainly does not end."""

    run_time: float
    exit_code: int = 0
    outputs: tuple[Output, ...] = ()


class _Effect(NamedTuple):
    seconds: float = 0.0
    code: int = 0
    text: str | Printed = ""


def container_plans(containers: Sequence[Content], pod: NodePod | None = None) -> list[CommandPlan | None]:
    """What the commands of the containers of a pod plainly do; None where that cannot be told."""
    none = [None] * len(containers)
    if sum(len(word) for container in containers for word in _words(container)) > MAX_POD_TEXT:
        return [*none]
    commands = [_command(container, pod) for container in containers]
    if sum(len(word) for command in commands if command for word in command[0]) > MAX_POD_TEXT:
        return [*none]
    return [command_plan(*command) if command is not None else None for command in commands]


def container_plan(container: Content, pod: NodePod | None = None) -> CommandPlan | None:
    """What the command of a container plainly does; None if that cannot be told."""
    return container_plans([container], pod)[0]


def _command(container: Content, pod: NodePod | None) -> tuple[tuple[str, ...], Values] | None:
    """The command line as a kubelet makes it, and the variables that its script uses; None if it is not certain."""
    words = _words(container)
    if not words or len(words) > MAX_ARGUMENTS or sum(map(len, words)) > MAX_SCRIPT:
        return None
    if not any("$" in word for word in words):
        return tuple(words), ()
    variables = container_variables(container, pod)
    try:
        line = tuple(map(variables.expand, words))
    except NotSimple:
        return None
    script = _script(line)
    used = referenced_variables(script, variables.known) if script is not None else {}
    return (line, tuple(used.items())) if sum(map(len, line)) <= MAX_SCRIPT else None


def _words(container: Content) -> list[str]:
    """Arguments without a command are taken for one: what an image starts by itself is not known."""
    fields = (container.get(name) for name in ("command", "args"))
    return [word for words in fields if isinstance(words, list) for word in words if isinstance(word, str)]


@lru_cache(maxsize=256)
def command_plan(words: tuple[str, ...], variables: Values = ()) -> CommandPlan | None:
    """What a command plainly does, with variables that a script uses; replicas share the answer."""
    script = _script(words)
    try:
        if script is None:
            run = _Run()
            run.command([Word(word) for word in words], silent=False)
        else:
            run = _Run(shell=True, errexit="e" in words[1])
            run.script(parse_script(script, dict(variables)))
    except NotSimple:
        return None
    return CommandPlan(run.seconds, run.code, tuple(run.outputs))


def _script(words: Sequence[str]) -> str | None:
    """The script of `sh -c script`."""
    is_shell = len(words) > 2 and _program(words[0]) in _SHELLS and _SHELL_OPTIONS.fullmatch(words[1])
    return words[2] if is_shell else None


def _program(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return name if folder in _FOLDERS else path


@dataclass(slots=True)
class _Run:
    """Counts what commands take and print, one after the other."""

    shell: bool = False
    errexit: bool = False
    depth: int = 0
    seconds: float = 0.0
    code: int = 0
    outputs: list[Output] = field(default_factory=list)
    exited: bool = False

    def script(self, commands: list[SimpleCommand]) -> None:
        for index, command in enumerate(commands):
            skipped = (command.operator == "&&" and self.code) or (command.operator == "||" and not self.code)
            if not skipped:
                self.command(command.words, command.silent)
                last = index + 1 == len(commands) or commands[index + 1].operator == ";"
                self.exited = self.exited or bool(self.errexit and self.code and last)
            if self.exited or math.isinf(self.seconds):
                return

    def command(self, words: list[Word], silent: bool) -> None:
        substituted = self._substitute(words)
        if self.shell:
            words = list(dropwhile(lambda word: word.assignment, words))
        if not words:
            self.code = substituted
            return
        if not words[0].plain or words[0].expanded:
            raise NotSimple("a command of a variable")
        name, arguments = _program(words[0].text), words[1:]
        if self.shell and name in _BUILTINS:
            self._builtin(name, arguments, silent)
            return
        effect = _COMMANDS[name](arguments) if name in _COMMANDS else None
        if effect is None:
            raise NotSimple(name)
        self.seconds += effect.seconds
        self.code = effect.code
        if effect.text and not silent:
            self.outputs.append(Output(self.seconds, effect.text))

    def _builtin(self, name: str, arguments: list[Word], silent: bool) -> None:
        if name == "exec":
            if arguments and arguments[0].text in _BUILTINS:
                raise NotSimple("exec runs programs alone")
            if arguments:
                self.command(arguments, silent)
                self.exited = True
        elif name == "set":
            if not arguments or not all(
                word.plain and _SET_OPTION.fullmatch(word.text) for word in arguments
            ):
                raise NotSimple("set")
            for word in arguments:
                self.errexit = word.text[0] == "-" if "e" in word.text else self.errexit
            self.code = 0
        else:
            self.exited = True
            if arguments and arguments[0].text != "$?":
                code = arguments[0].text
                if len(arguments) > 1 or not arguments[0].plain or not re.fullmatch("[0-9]{1,9}", code):
                    raise NotSimple("exit")
                self.code = int(code) % 256

    def _substitute(self, words: list[Word]) -> int:
        """Run the substitutions of a command first; the exit code of the last."""
        code = 0
        for word in words:
            for script in word.substitutions:
                if self.depth == MAX_DEPTH:
                    raise NotSimple("too many substitutions")
                inner = _Run(True, False, self.depth + 1)
                inner.script(parse_script(script))
                self.seconds += inner.seconds
                code = inner.code
        return code


def _echo(arguments: list[Word]) -> _Effect:
    end = "\n"
    while arguments and arguments[0].text in ("-n", "-e"):
        end = "" if arguments[0].text == "-n" else end
        arguments = arguments[1:]
    return _Effect(text=_text(arguments, end))


def _text(arguments: list[Word], end: str) -> str | Printed:
    if not all(word.plain and "\\" not in word.text for word in arguments):
        return Printed.UNKNOWN
    return " ".join(word.text for word in arguments) + end


def _printf(arguments: list[Word]) -> _Effect | None:
    if not arguments or not arguments[0].plain or arguments[0].text.startswith("-"):
        return None
    form = arguments[0].text.replace("\\n", "\n")
    is_text = len(arguments) == 1 and "%" not in form and "\\" not in form
    return _Effect(text=form if is_text else Printed.UNKNOWN)


def _sleep(arguments: list[Word]) -> _Effect | None:
    seconds = 0.0
    for word in arguments:
        match = _SLEEP.fullmatch(word.text)
        if word.plain and word.text in ("inf", "infinity"):
            seconds = math.inf
        elif not word.plain or match is None:
            return None
        else:
            seconds += float(match[1]) * _UNITS[match[2]]
    return _Effect(seconds) if arguments else None


def _date(arguments: list[Word]) -> _Effect | None:
    if not all(_DATE_OPTION.fullmatch(word.text) for word in arguments):
        return None
    return _Effect(text=Printed.UNKNOWN if arguments else Printed.DATE)


def _cat(arguments: list[Word]) -> _Effect | None:
    """Of files; what is below /dev, /proc and /sys may never end, and standard input may wait."""
    files = [word for word in arguments if not word.text.startswith("-")]
    endless = ("/dev", "/proc", "/sys")
    if not files or len(files) < len(arguments):
        return None
    return None if any(not word.plain or word.text.startswith(endless) for word in files) else _UNKNOWN


def _alone(effect: _Effect) -> Callable[[list[Word]], _Effect | None]:
    """Of a command that plainly ends if it has no arguments but options."""
    return lambda arguments: effect if all(word.text.startswith("-") for word in arguments) else None


_UNKNOWN = _Effect(text=Printed.UNKNOWN)
_COMMANDS: dict[str, Callable[[list[Word]], _Effect | None]] = {
    "true": lambda _: _Effect(),
    ":": lambda _: _Effect(),
    "false": lambda _: _Effect(code=1),
    "echo": _echo,
    "printf": _printf,
    "sleep": _sleep,
    "date": _date,
    "cat": _cat,
    "ls": lambda _: _UNKNOWN,
    "env": _alone(_UNKNOWN),
    "printenv": _alone(_UNKNOWN),
    "hostname": lambda arguments: _UNKNOWN if arguments else _Effect(text=Printed.HOSTNAME),
    "id": lambda _: _UNKNOWN,
    "pwd": _alone(_UNKNOWN),
    "uname": _alone(_UNKNOWN),
    "whoami": _alone(_UNKNOWN),
}
