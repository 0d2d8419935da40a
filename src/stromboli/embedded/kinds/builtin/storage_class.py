"""StorageClasses."""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.schemas.storage import storage_validation
from stromboli.embedded.kinds.kind import CLUSTER, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import UNSET, Cells, name_of, nested_map, printer

STORAGE_CLASSES = "storageclasses.storage.k8s.io"
PROVISIONER = "stromboli.sh/folder"
"""Makes volumes that are directories below the data directory."""


def _row(storage_class: Content, now: float) -> Cells:
    marked = nested_map(storage_class, "metadata", "annotations").get(names.DEFAULT_STORAGE_CLASS) == "true"
    return [
        f"{name_of(storage_class)} (default)" if marked else name_of(storage_class),
        storage_class.get("provisioner") or "",
        storage_class.get("reclaimPolicy") or "Delete",
        storage_class.get("volumeBindingMode") or UNSET,
        bool(storage_class.get("allowVolumeExpansion")),
        age(storage_class, now),
    ]


KIND = builtin(
    "storage.k8s.io",
    "storageclasses",
    "StorageClass",
    "sc",
    strategy=Strategy(
        printer=printer(
            "Name | Provisioner | ReclaimPolicy | VolumeBindingMode | AllowVolumeExpansion | Age", _row
        ),
        problems=storage_validation.storage_class_problems,
        update_problems=storage_validation.storage_class_update_problems,
    ),
    **CLUSTER,
)
