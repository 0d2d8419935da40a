"""Output formats: tables, JSON and YAML."""

from __future__ import annotations

import enum
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 160
"""Columns where the output is no terminal."""


class Format(enum.StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class PlanFormat(enum.StrEnum):
    """The same for plans; `jsonl` is one line per case."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"


class StatusFormat(enum.StrEnum):
    """The same for a status; `wide` is a table with more columns."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def console() -> Console:
    """Standard output, as wide as the terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def has_colours() -> bool:
    """Whether standard output shows colours: on a terminal, unless its user wants none ($NO_COLOR)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def write_as(format: Format | PlanFormat | StatusFormat, value: Any) -> None:
    """Write YAML, JSON, or JSON on one line.

    On a terminal only ASCII, with escapes for the rest, as some characters are commands there or turn texts around.
    """
    escape = sys.stdout.isatty()
    if format.value == Format.YAML.value:
        text = yaml_text(value, escape)
    else:
        indent = None if format is PlanFormat.JSONL else 2
        text = json.dumps(value, indent=indent, ensure_ascii=escape)
    typer.echo(text)


def yaml_text(value: Any, escape: bool = False) -> str:
    """Without anchors and aliases: values are repeated."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=not escape, width=WIDE)
    return text.rstrip()
