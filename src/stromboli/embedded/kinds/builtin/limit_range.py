"""LimitRanges, which are stored and not enforced."""

from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import CREATION_TIMES


def _set_defaults(content: Content) -> None:
    for limit in (content.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            defaults = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            requests = {**(limit.get("min") or {}), **defaults, **(limit.get("defaultRequest") or {})}
            limit |= {
                key: value for key, value in (("default", defaults), ("defaultRequest", requests)) if value
            }


KIND = builtin(
    "",
    "limitranges",
    "LimitRange",
    "limits",
    strategy=Strategy(printer=CREATION_TIMES, set_defaults=_set_defaults),
)
