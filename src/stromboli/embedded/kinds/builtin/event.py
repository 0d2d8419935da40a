"""Events."""

from __future__ import annotations

from stromboli.embedded.kinds.kind import Content, SelectableField, builtin, fields
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import ago
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer


def _row(event: Content, now: float) -> Cells:
    """Old recorders set a count and two times, new ones eventTime and a series."""
    series, source = nested_map(event, "series"), nested_map(event, "source")
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") or event.get("lastTimestamp")
    regarding = nested_map(event, "involvedObject")
    component = source.get("component") or event.get("reportingComponent")
    reporters = [component, source.get("host") or event.get("reportingInstance")]
    return [
        ago(last or first, now),
        event.get("type") or "",
        event.get("reason") or "",
        f"{str(regarding.get('kind', '')).lower()}/{regarding.get('name', '')}",
        regarding.get("fieldPath") or "",
        ", ".join(str(reporter) for reporter in reporters if reporter),
        str(event.get("message") or "").strip(),
        ago(first, now),
        series.get("count") or event.get("count") or 1,
        name_of(event),
    ]


KIND = builtin(
    "",
    "events",
    "Event",
    "ev",
    selectable_fields=fields(
        *(
            f"involvedObject.{name}"
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        ),
        "reason",
        "reportingComponent",
        "type",
    )
    | {"source": SelectableField("source.component", substitute="reportingComponent")},
    strategy=Strategy(
        printer=printer(
            "Last Seen | Type | Reason | Object | Subobject+ | Source+ | Message | First Seen+ | Count#+ | Name+",
            _row,
        )
    ),
)
