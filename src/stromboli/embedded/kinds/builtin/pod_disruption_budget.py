"""PodDisruptionBudgets; evictions under them are in `objects/disruption_budgets.py`."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.kind import STATUS, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer


def _row(budget: Content, now: float) -> Cells:
    spec = nested_map(budget, "spec")

    def bound(value: Any) -> str:
        return "N/A" if value is None else str(value)

    return [
        name_of(budget),
        bound(spec.get("minAvailable")),
        bound(spec.get("maxUnavailable")),
        nested_map(budget, "status").get("disruptionsAllowed") or 0,
        age(budget, now),
    ]


KIND = builtin(
    "policy",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    "pdb",
    STATUS,
    strategy=Strategy(
        has_generation=True,
        needs_version=True,
        printer=printer("Name | Min Available | Max Unavailable | Allowed Disruptions# | Age", _row),
    ),
)
