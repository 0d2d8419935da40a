"""Flags as Go programs take them: a frozen dataclass whose fields say how each is parsed.

A flag is `--name value`, `--name=value`, or `--name` alone for a boolean; one dash will do.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from stromboli.api import go_scalars

Options = TypeVar("Options")


class BadFlag(ValueError):
    """An unknown flag, or a value that cannot be parsed; the text says what to do about it."""


# -- parsers of values


def string(value: str) -> str:
    return value


def integer(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise BadFlag("is not a whole number") from None


def positive(value: str) -> int:
    """One at least."""
    if (count := integer(value)) < 1:
        raise BadFlag("is not above 0")
    return count


def number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadFlag("is not a number") from None


def boolean(value: str) -> bool:
    parsed = go_scalars.boolean(value)
    if parsed is None:
        raise BadFlag("is neither true nor false")
    return parsed


def any_duration(value: str) -> float:
    """Also one below 0, where that has a meaning."""
    seconds = go_scalars.duration(value)
    if seconds is None:
        raise BadFlag("is no duration such as 1s or 500ms")
    return seconds


def duration(value: str) -> float:
    seconds = any_duration(value)
    if seconds < 0:
        raise BadFlag("is no duration such as 1s or 500ms")
    return seconds


def comma_separated(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def path(value: str) -> Path | None:
    return Path(value) if value else None


def gates(value: str) -> tuple[tuple[str, bool], ...]:
    values = []
    for part in comma_separated(value):
        name, _, wanted = part.partition("=")
        values.append((name, boolean(wanted)))
    return tuple(values)


@dataclass(frozen=True, slots=True)
class Gates:
    """The feature gates that a program looks at."""

    effective: Collection[str]
    always_on: Collection[str] = ()

    def notes(self, given: Iterable[tuple[str, bool]]) -> Iterator[str]:
        """The gates that change nothing, and why."""
        for name, on in given:
            if name in self.always_on and not on:
                yield f"--feature-gates={name}: cannot be switched off"
            elif name not in self.effective and name not in self.always_on:
                yield f"--feature-gates={name}: has no effect"


# -- flags of a program


def flag(parse: Callable[[str], Any], default: Any, about: str, name: str = "") -> Any:
    """A flag, named like its field unless `name` is given."""
    return field(default=default, metadata={"parse": parse, "about": about, "name": name})


@dataclass(frozen=True, slots=True)
class Accepted:
    """Flags that are accepted and have no effect."""

    why: Mapping[str, str]
    """Why each has no effect."""
    quiet: Mapping[str, str] = field(default_factory=dict)
    """Values that are the same as what we do anyway, so that no note is needed."""
    switches: frozenset[str] = frozenset()


LOGGING = {
    "log-flush-frequency": "every line is written at once",
    "logtostderr": "logs go to standard error",
    "alsologtostderr": "logs go to standard error",
    "stderrthreshold": "logs go to standard error",
    "log-dir": "logs go to standard error",
    "log-file": "logs go to standard error",
    "vmodule": "-v holds for all",
    "skip-headers": "lines have a time and a level",
    "one-output": "logs go to standard error",
    "log-file-max-size": "logs go to standard error",
    "log-backtrace-at": "errors have their trace",
    "add-dir-header": "lines have a time and a level",
    "skip-log-headers": "lines have a time and a level",
}
"""The flags of klog, which all of Volcano's programs have."""
LOGGING_SWITCHES = frozenset(
    {"logtostderr", "alsologtostderr", "skip-headers", "one-output", "add-dir-header", "skip-log-headers"}
)


def parse(kind: Callable[..., Options], accepted: Accepted, arguments: Sequence[str]) -> Options:
    """The options that a command line sets; `BadFlag` if it cannot be parsed. `notes` lists what has no effect."""
    flags = {_name(option): option for option in _flags(kind)}
    values: dict[str, Any] = {}
    notes: list[str] = []
    left = list(arguments)
    while left:
        name, value = _next(left)
        known = flags.get(name)
        if known is None and name not in accepted.why:
            raise BadFlag(_unknown(name, [*flags, *accepted.why]))
        switch = known.metadata["parse"] is boolean if known else name in accepted.switches
        if value is None:
            if not switch and not left:
                raise BadFlag(f"--{name} needs a value")
            value = "true" if switch else left.pop(0)
        if known is None:
            if value != accepted.quiet.get(name):
                notes.append(f"--{name}={value} has no effect: {accepted.why[name]}")
            continue
        try:
            parsed = known.metadata["parse"](value)
        except BadFlag as error:
            raise BadFlag(f"--{name}: {value!r} {error}") from None
        if isinstance(parsed, tuple):
            parsed = (*values.get(known.name, ()), *parsed)
        values[known.name] = parsed
    return kind(**values, notes=tuple(notes))


def _next(left: list[str]) -> tuple[str, str | None]:
    """The next flag, and its value if that is in the same argument."""
    argument = left.pop(0)
    if not argument.startswith("-") or argument in ("-", "--"):
        raise BadFlag(f"{argument}: flags begin with --")
    name, has_value, value = argument.lstrip("-").partition("=")
    return name.replace("_", "-"), value if has_value else None


def usage(kind: type, accepted: Accepted) -> str:
    """All flags, one per line; those that daemons have in common come first."""
    lines = [
        f"  --{_name(option):34}{option.metadata['about']}{_default_text(option)}" for option in _flags(kind)
    ]
    ignored = ", ".join(f"--{name}" for name in accepted.why)
    return "\n".join(lines) + f"\n\nAccepted without effect, as Volcano has them: {ignored}"


def _flags(kind: Any) -> list[Any]:
    return [option for option in fields(kind) if option.metadata]


def _default_text(option: Any) -> str:
    """` (default ...)`, or nothing where that is empty."""
    default = option.default if option.default is not MISSING else ""
    if option.metadata["parse"] in (duration, any_duration):
        text = f"{default:g}s"
    elif isinstance(default, tuple):
        text = ",".join(map(str, default))
    elif isinstance(default, bool):
        text = str(default).lower()
    elif isinstance(default, float):
        text = f"{default:g}"
    else:
        text = "" if default is None else str(default)
    return f" (default {text})" if text else ""


def _name(option: Any) -> str:
    return str(option.metadata["name"] or option.name.replace("_", "-"))


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"--{name} is not known" + (f"; did you mean --{near[0]}?" if near else "; see --help")
