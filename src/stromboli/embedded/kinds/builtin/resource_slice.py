"""ResourceSlices."""

from __future__ import annotations

from stromboli.api.schemas.devices import slice_validation
from stromboli.embedded.kinds.kind import CLUSTER, Content, builtin, fields
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer


def _row(resource_slice: Content, now: float) -> Cells:
    spec = nested_map(resource_slice, "spec")
    return [
        name_of(resource_slice),
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        nested_map(spec, "pool").get("name") or "",
        age(resource_slice, now),
    ]


KIND = builtin(
    "resource.k8s.io",
    "resourceslices",
    "ResourceSlice",
    selectable_fields=fields("spec.driver", "spec.nodeName"),
    strategy=Strategy(
        has_generation=True,
        printer=printer("Name | Node | Driver | Pool | Age", _row),
        problems=slice_validation.slice_problems,
        update_problems=slice_validation.slice_update_problems,
    ),
    **CLUSTER,
)
