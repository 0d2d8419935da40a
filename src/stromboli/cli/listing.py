"""`stromboli plugins` and `stromboli actions`: what a policy may name, with every argument."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from stromboli.cli.output import Format, console, write_json
from stromboli.cli.policies import PLUGINS_DIR
from stromboli.engine.arguments import Argument, ByName, declared
from stromboli.engine.catalog import Action
from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog

Extension = Action | type[Plugin]

OUTPUT = typer.Option(Format.TABLE, "-o", "--output")


def plugins(output: Format = OUTPUT, plugins_dir: Path | None = PLUGINS_DIR) -> None:
    """List the plugins that a policy may name, with their arguments."""
    _tell(load_catalog(plugins_dir).plugins, output)


def actions(output: Format = OUTPUT, plugins_dir: Path | None = PLUGINS_DIR) -> None:
    """List the actions that a policy may name, with their arguments."""
    _tell(load_catalog(plugins_dir).actions, output)


def _tell(found: Mapping[str, Extension], output: Format) -> None:
    described = [_described(name, found[name]) for name in sorted(found)]
    if output is Format.JSON:
        write_json(described)
        return
    out = console()
    for one in described:
        out.print(Text(one["name"], style="bold").append(f"  {one['doc']}", "not bold"))
        for argument in one["arguments"]:
            head = Text(f"    {argument['key']}", style="cyan").append(f"  {argument['type']}", "dim")
            default = argument["default"]
            out.print(
                head.append(f", {_shown(default)} unless given" if default not in (None, "") else "", "dim")
            )
            out.print(Text(f"        {argument['doc']}"))


def _described(name: str, extension: Extension) -> dict[str, Any]:
    doc = extension.doc if isinstance(extension, Action) else extension.__doc__ or ""
    return {
        "name": name,
        "doc": " ".join(doc.split()),
        "arguments": [_argument(argument) for argument in declared(extension.Arguments)],
    }


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
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    return str(value)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
