"""`stromboli plugins` and `stromboli actions`: what a policy may name, with all arguments."""

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


def plugin_names(prefix: str) -> list[str]:
    """Completions for shells."""
    return [name for name in sorted(load_catalog().plugins) if name.startswith(prefix)]


def action_names(prefix: str) -> list[str]:
    """Completions for shells."""
    return [name for name in sorted(load_catalog().actions) if name.startswith(prefix)]


def plugins(
    name: str | None = typer.Argument(None, help="One of them, in detail.", autocompletion=plugin_names),
    output: Format = OUTPUT,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """List the plugins that a policy may name, with their arguments, or show one in detail."""
    _print(name, load_catalog(plugins_dir).plugins, "plugin", output)


def actions(
    name: str | None = typer.Argument(None, help="One of them, in detail.", autocompletion=action_names),
    output: Format = OUTPUT,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """List the actions that a policy may name, with their arguments, or show one in detail."""
    _print(name, load_catalog(plugins_dir).actions, "action", output)


def _print(name: str | None, extensions: Mapping[str, Extension], kind: str, output: Format) -> None:
    if name is None:
        _print_all(extensions, output)
    elif name in extensions:
        _print_details(name, extensions[name], output)
    else:
        raise Usage(f'there is no {kind} "{name}"{suggestion(name, extensions)}')


def _print_all(extensions: Mapping[str, Extension], output: Format) -> None:
    described = [_described(name, extensions[name]) for name in sorted(extensions)]
    if output is not Format.TABLE:
        write_as(output, described)
        return
    out = console()
    for entry in described:
        out.print(Text(entry["name"], style="bold").append(f"  {entry['doc']}", "not bold"))
        _print_arguments(out, entry["arguments"])


def _print_details(name: str, extension: Extension, output: Format) -> None:
    """The whole documentation, the arguments and the extension points."""
    entry = _described(name, extension)
    if output is not Format.TABLE:
        write_as(output, entry)
        return
    out = console()
    out.print(Text(name, style="bold"))
    out.print(Text(inspect.cleandoc(_doc(extension))))
    out.print(Text("\nArguments" if entry["arguments"] else "\nNo arguments", style="bold"))
    _print_arguments(out, entry["arguments"])
    if entry.get("points"):
        out.print(Text("\nTakes part in", style="bold"))
        for point in entry["points"]:
            out.print(Text(f"    {point}", style="cyan"))
            out.print(Text(f"        {_point_doc(extension, point)}"))


def _print_arguments(out: Console, arguments: list[dict[str, Any]]) -> None:
    for argument in arguments:
        head = Text(f"    {argument['key']}", style="cyan").append(f"  {argument['type']}", "dim")
        default = argument["default"]
        out.print(head.append(f", default {_format(default)}" if default not in (None, "") else "", "dim"))
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


def _point_doc(extension: Extension, point: str) -> str:
    """The documentation of an extension point, from the class that declares it."""
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
    """A default as a value for JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, ByName):
        return _plain(value.default)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            argument.spelling: _plain(getattr(value, argument.field)) for argument in declared(type(value))
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return str(value)


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format(part)}" for key, part in value.items())
    if isinstance(value, list):
        return "; ".join(map(_format, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
