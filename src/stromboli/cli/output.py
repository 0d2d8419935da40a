"""Output formats: tables, JSON and YAML."""

import enum
import json
import sys
from typing import Any

import typer
import yaml
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


def console() -> Console:
    """Standard output, as wide as the terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def write_as(format: Format, value: Any) -> None:
    """Write JSON or YAML."""
    (write_yaml if format is Format.YAML else write_json)(value)


def write_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def write_line(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


def write_yaml(value: Any) -> None:
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDE)
    typer.echo(text.rstrip())


class _Dumper(yaml.SafeDumper):
    """Repeats values instead of using anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
