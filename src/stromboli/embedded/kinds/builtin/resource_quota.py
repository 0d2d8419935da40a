"""ResourceQuotas; what they count is in `admission/resource_quota.py`."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import STATUS, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer


def _row(quota: Content, now: float) -> Cells:
    hard = nested_map(quota, "status", "hard") or nested_map(quota, "spec", "hard")
    used = nested_map(quota, "status", "used")
    requests: list[str] = []
    limits: list[str] = []
    for name in sorted(hard):
        (limits if name.startswith("limits.") else requests).append(
            f"{name}: {used.get(name, '0')}/{hard[name]}"
        )
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age(quota, now)]


KIND = builtin(
    "",
    "resourcequotas",
    "ResourceQuota",
    "quota",
    STATUS,
    strategy=Strategy(counted_by_name=True, printer=printer("Name | Request | Limit | Age", _row)),
)
