"""Where results go: tables for people, JSON and YAML for programs."""

import enum
import json
import sys
from typing import Any

import typer
import yaml
from rich.console import Console

WIDE = 160
"""Columns when nobody watches: a file has no edge."""


class Format(enum.StrEnum):
    """For lists."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class PlanFormat(enum.StrEnum):
    """For plans; `jsonl` is one line per case."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"


class StatusFormat(enum.StrEnum):
    """For what is one thing."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def console() -> Console:
    """Standard output, as wide as it is."""
    watched = sys.stdout.isatty()
    return Console(highlight=False, width=None if watched else WIDE)


def write_as(format: Format, value: Any) -> None:
    """JSON or YAML, as was asked for."""
    (write_yaml if format is Format.YAML else write_json)(value)


def write_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def write_line(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


def write_yaml(value: Any) -> None:
    text = yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=WIDE)
    typer.echo(text.rstrip())


class _Plain(yaml.SafeDumper):
    """Says things twice rather than by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
