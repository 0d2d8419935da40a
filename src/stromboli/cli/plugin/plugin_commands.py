"""`stromboli plugin new`: the files of a plugin or an action to begin with."""

from __future__ import annotations

import keyword
import re
from importlib.util import find_spec
from pathlib import Path

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.command_group import Command, subcommands

plugin = subcommands("Begin a plugin or an action of your own.")

LONGEST_NAME = 63
OWN_FILES = ("conftest", "tests")
"""Modules that the tests of a plugin have."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@plugin.callback()
def _group() -> None:
    """Keeps `new` a command of the group, as Typer makes the only command of a group its whole."""


@plugin.command(cls=Command)
def new(
    name: str = typer.Argument(help="As a policy names it: small letters, digits and dashes."),
    folder: Path | None = typer.Argument(
        None, metavar="[FOLDER]", show_default=False, help="Where; a new folder of that name unless given."
    ),
    action: bool = typer.Option(False, "--action", show_default=False, help="An action, not a plugin."),
) -> None:
    """Write a plugin or an action that works, a policy that names it, and a test that it passes.

    Files that are there already are not touched: then nothing is written, and the exit status is 2.
    """
    from stromboli.cli.plugin.plugin_templates import new_action, new_plugin

    _check(name)
    folder = Path(name) if folder is None else folder
    made = new_action(name) if action else new_plugin(name)
    if present := [path for path in made.files if (folder / path).exists()]:
        raise Usage(f"{folder / present[0]} is there already: choose another name or folder")
    try:
        for path, text in made.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise Usage(f"{error.filename}: cannot be written: {error.strerror}") from None
    for path in made.files:
        typer.echo(f"{folder / path} written")
    typer.echo(
        f"\nTest it:  pytest {folder / 'tests'}"
        f"\nTry it:   stromboli plan -f CLUSTER --plugins-dir {folder} --policy {folder / 'policy.yaml'}"
        f"\nRun it:   stromboli up --plugins-dir {folder} --policy {folder / 'policy.yaml'}"
    )


def _check(name: str) -> None:
    """A name that may stand in a policy, and that is not taken."""
    from stromboli.extensions import load_catalog

    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise Usage(f"{name!r:.80}: no name; write small letters, digits and dashes, such as my-order")
    catalog = load_catalog()
    if name in catalog.plugins or name in catalog.actions:
        raise Usage(f"{name} is a plugin or an action that comes along: choose another name")
    module = name.replace("-", "_")
    spec = find_spec(module)
    if module in OWN_FILES or (spec is not None and spec.origin):
        raise Usage(f"{module} is a module of Python, pytest or an installed package: choose another name")
