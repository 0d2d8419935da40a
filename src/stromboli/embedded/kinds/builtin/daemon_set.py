"""DaemonSets."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.apps import set_rules
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.kind import IN_ALL, STATUS, Content, builtin
from stromboli.embedded.kinds.pod_owners import SelectingStrategy, image_cells
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import (
    Cells,
    format_labels,
    name_of,
    nested_map,
    printer,
    selector_text,
)

_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def _row(daemon_set: Content, now: float) -> Cells:
    spec, status = nested_map(daemon_set, "spec"), nested_map(daemon_set, "status")
    return [
        name_of(daemon_set),
        *(status.get(count) or 0 for count in _COUNTS),
        format_labels(nested_map(spec, "template", "spec").get("nodeSelector")),
        age(daemon_set, now),
        *image_cells(daemon_set, "spec"),
        selector_text(spec.get("selector")),
    ]


class DaemonSetStrategy(SelectingStrategy):
    kind_name = "DaemonSet"
    rolling_update = "updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}
    printer = printer(
        "Name | Desired# | Current# | Ready# | Up-to-date# | Available# | Node Selector | Age"
        " | Containers+ | Images+ | Selector+",
        _row,
    )

    def owner_problems(self, content: Content) -> Iterable[Problem]:
        yield from super().owner_problems(content)
        yield from set_rules.daemon_set_problems(content["spec"])


KIND = builtin("apps", "daemonsets", "DaemonSet", "ds", STATUS, strategy=DaemonSetStrategy(), **IN_ALL)
