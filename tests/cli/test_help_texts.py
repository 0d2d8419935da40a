"""Help is for users: no references to the specification, and each default once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from stromboli.cli.command_group import LazyCommand
from stromboli.cli.main import app
from stromboli.extensions import load_catalog

CATALOG = load_catalog()
INTERNAL = re.compile(r"\bspec \d|quirk", re.IGNORECASE)
DEFAULT = re.compile(r"\(default\b|\[default: |\bby default\b")
ENTRY = re.compile(r"^ {0,4}(?=-)", re.MULTILINE)
"""The start of an option in a help text."""
TERMINAL = 78
"""Characters of a line of help in a terminal of 80 columns."""


def commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and group, however deep."""
    yield path
    loaded = command.load() if isinstance(command, LazyCommand) else command
    for name, inner in getattr(loaded, "commands", {}).items():
        yield from commands(inner, (*path, name))


def help_texts() -> Iterator[tuple[str, ...]]:
    for path in commands(get_command(app)):
        yield (*path, "--help")
    yield from (("plugins", name) for name in CATALOG.plugins)
    yield from (("actions", name) for name in CATALOG.actions)
    yield from (("plugins",), ("actions",))


ALL = list(help_texts())


def test_every_kind_of_command_is_walked() -> None:
    assert {
        ("plan", "--help"),
        ("scheduler", "--help"),
        ("policy", "check", "--help"),
        ("plugins", "sla"),
    } <= set(ALL)


@pytest.mark.parametrize("arguments", ALL, ids=" ".join)
def test_help_is_for_users(arguments: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert shown.exit_code == 0
    assert shown.output.strip()
    assert not INTERNAL.search(shown.output), shown.output
    if arguments[-1] != "--help":
        return
    for entry in ENTRY.split(shown.output):
        assert len(DEFAULT.findall(entry)) < 2, entry


@pytest.mark.parametrize("group", ["node", "service", "workload"])
def test_lists_of_commands_within_a_group_are_not_cut_short(group: str) -> None:
    shown = CliRunner().invoke(app, [group, "--help"], catch_exceptions=False).output
    listed = shown.partition("Commands:\n")[2].splitlines()
    assert listed
    assert [line for line in listed if line.endswith("...") or len(line) > TERMINAL] == []
