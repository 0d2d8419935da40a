"""CSIDrivers."""

from __future__ import annotations

from stromboli.api.schemas.storage import storage_validation
from stromboli.embedded.kinds.kind import CLUSTER, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import NONE, UNSET, Cells, name_of, nested_map, printer


def _row(driver: Content, now: float) -> Cells:
    spec = nested_map(driver, "spec")
    requests = spec.get("tokenRequests")
    audiences = [str(request.get("audience", "")) for request in requests or ()]
    return [
        name_of(driver),
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(audiences),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(driver, now),
    ]


_PRINTER = printer(
    "Name | AttachRequired | PodInfoOnMount | StorageCapacity | TokenRequests | RequiresRepublish | Modes | Age",
    _row,
)
KIND = builtin(
    "storage.k8s.io",
    "csidrivers",
    "CSIDriver",
    strategy=Strategy(
        needs_version=True,
        printer=_PRINTER,
        set_defaults=storage_validation.set_driver_defaults,
        problems=storage_validation.csi_driver_problems,
        update_problems=storage_validation.csi_driver_update_problems,
    ),
    **CLUSTER,
)
