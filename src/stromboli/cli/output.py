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


class StatusFormat(enum.StrEnum):
    """The same for a status; `wide` is a table with more columns."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def console() -> Console:
    """Standard output, as wide as the terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def write_as(format: Format | PlanFormat | StatusFormat, value: Any) -> None:
    """Write YAML, JSON, or JSON on one line."""
    if format.value == Format.YAML.value:
        text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDE).rstrip()
    else:
        indent = None if format is PlanFormat.JSONL else 2
        text = json.dumps(value, indent=indent, ensure_ascii=False)
    typer.echo(text)


class _Dumper(yaml.SafeDumper):
    """Repeats values instead of using anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
