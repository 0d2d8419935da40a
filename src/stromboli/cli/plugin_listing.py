"""`stromboli plugins` and `stromboli actions`: what a policy may name, with every argument."""

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from stromboli.cli.cli_errors import Usage
from stromboli.cli.output import Format, console, write_as
from stromboli.cli.policy_options import PLUGINS_DIR
from stromboli.engine.catalog import Action
from stromboli.engine.plugin import POINTS, Plugin
from stromboli.engine.rules import points_of
from stromboli.extensions import load_catalog
from stromboli.policy.arguments import Argument, ByName, declared
from stromboli.policy.policy_problems import suggestion

Extension = Action | type[Plugin]

OUTPUT = typer.Option(Format.TABLE, "-o", "--output")


def plugin_names(begun: str) -> list[str]:
    """How the name of a plugin may go on, for shells."""
    return [name for name in sorted(load_catalog().plugins) if name.startswith(begun)]


def action_names(begun: str) -> list[str]:
    """How the name of an action may go on, for shells."""
    return [name for name in sorted(load_catalog().actions) if name.startswith(begun)]


def plugins(
    name: str | None = typer.Argument(None, help="One of them, in detail.", autocompletion=plugin_names),
    output: Format = OUTPUT,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """List the plugins that a policy may name, with their arguments, or show one in detail."""
    found = load_catalog(plugins_dir).plugins
    if name is None:
        _tell(found, output)
    else:
        _tell_one(name, _named(name, found, "plugin"), output)


def actions(
    name: str | None = typer.Argument(None, help="One of them, in detail.", autocompletion=action_names),
    output: Format = OUTPUT,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """List the actions that a policy may name, with their arguments, or show one in detail."""
    found = load_catalog(plugins_dir).actions
    if name is None:
        _tell(found, output)
    else:
        _tell_one(name, _named(name, found, "action"), output)


def _named(name: str, found: Mapping[str, Extension], kind: str) -> Extension:
    if name not in found:
        raise Usage(f'there is no {kind} "{name}"{suggestion(name, found)}')
    return found[name]


def _tell(found: Mapping[str, Extension], output: Format) -> None:
    described = [_described(name, found[name]) for name in sorted(found)]
    if output is not Format.TABLE:
        write_as(output, described)
        return
    out = console()
    for one in described:
        out.print(Text(one["name"], style="bold").append(f"  {one['doc']}", "not bold"))
        _tell_arguments(out, one["arguments"])


def _tell_one(name: str, extension: Extension, output: Format) -> None:
    """All there is to say about one: in full, with its arguments and the points at which it has a say."""
    one = _described(name, extension)
    if output is not Format.TABLE:
        write_as(output, one)
        return
    out = console()
    out.print(Text(name, style="bold"))
    out.print(Text(inspect.cleandoc(_doc(extension))))
    out.print(Text("\nArguments" if one["arguments"] else "\nNo arguments", style="bold"))
    _tell_arguments(out, one["arguments"])
    if one.get("points"):
        out.print(Text("\nTakes part in", style="bold"))
        for point in one["points"]:
            out.print(Text(f"    {point}", style="cyan"))
            out.print(Text(f"        {_question(extension, point)}"))


def _tell_arguments(out: Console, arguments: list[dict[str, Any]]) -> None:
    for argument in arguments:
        head = Text(f"    {argument['key']}", style="cyan").append(f"  {argument['type']}", "dim")
        default = argument["default"]
        out.print(
            head.append(f", {_shown(default)} unless given" if default not in (None, "") else "", "dim")
        )
        out.print(Text(f"        {argument['doc']}"))


def _described(name: str, extension: Extension) -> dict[str, Any]:
    described = {
        "name": name,
        "doc": " ".join(_doc(extension).split()),
        "arguments": [_argument(argument) for argument in declared(extension.Arguments)],
    }
    if not isinstance(extension, Action):
        described["points"] = points_of(extension)
    return described


def _doc(extension: Extension) -> str:
    return extension.doc if isinstance(extension, Action) else extension.__doc__ or ""


def _question(extension: Extension, point: str) -> str:
    """What is asked at a point, by the class that declares it."""
    declaring = Plugin if point in POINTS else extension
    return " ".join((getattr(declaring, point).__doc__ or "").split())


def _argument(argument: Argument) -> dict[str, Any]:
    return {
        "key": argument.spelling,
        "type": argument.type_name,
        "default": _plain(argument.default),
        "doc": argument.doc,
        "aliases": list(argument.aliases),
    }


def _plain(value: Any) -> Any:
    """A default as JSON can have it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, ByName):
        return _plain(value.default)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.spelling: _plain(getattr(value, one.field)) for one in declared(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return str(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(part)}" for key, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
