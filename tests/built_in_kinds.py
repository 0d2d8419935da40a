"""Defaults, validation and tables of built-in kinds by the kind of a manifest, for tests without a server."""

from __future__ import annotations

from typing import Any

from stromboli.api.schemas.metadata_rules import metadata_problems
from stromboli.api.schemas.schema_problems import Problem, first_problems
from stromboli.embedded.kinds.builtin_kinds import BUILT_IN, METRICS, strategy_of
from stromboli.embedded.kinds.strategy import DEFAULT, Strategy
from stromboli.embedded.tables.table_printer import AGES, TablePrinter

_STRATEGIES = {kind.kind: kind.strategy for kind in BUILT_IN}
PRINTERS = {
    kind.id: kind.strategy.printer for kind in (*BUILT_IN, *METRICS) if kind.strategy.printer is not AGES
}


def _strategy(kind: str) -> Strategy:
    return _STRATEGIES.get(kind, DEFAULT)


def set_defaults(content: dict[str, Any], kind: str) -> None:
    _strategy(kind).set_defaults(content)


def problems(content: dict[str, Any], kind: str) -> list[Problem]:
    return first_problems(
        metadata_problems(content.get("metadata") or {}, kind), _strategy(kind).problems(content)
    )


def update_problems(old: dict[str, Any], new: dict[str, Any], kind: str) -> list[Problem]:
    return first_problems(_strategy(kind).update_problems(old, new))


def printer_for(resource: str) -> TablePrinter:
    return strategy_of(resource).printer
