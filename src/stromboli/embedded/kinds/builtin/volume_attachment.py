"""VolumeAttachments."""

from __future__ import annotations

from stromboli.api.schemas.storage import storage_validation
from stromboli.embedded.kinds.kind import CLUSTER, STATUS, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer


def _row(attachment: Content, now: float) -> Cells:
    spec = nested_map(attachment, "spec")
    return [
        name_of(attachment),
        spec.get("attacher") or "",
        nested_map(spec, "source").get("persistentVolumeName") or "",
        spec.get("nodeName") or "",
        bool(nested_map(attachment, "status").get("attached")),
        age(attachment, now),
    ]


KIND = builtin(
    "storage.k8s.io",
    "volumeattachments",
    "VolumeAttachment",
    "",
    STATUS,
    strategy=Strategy(
        needs_version=True,
        printer=printer("Name | Attacher | PV | Node | Attached | Age", _row),
        problems=storage_validation.attachment_problems,
        update_problems=storage_validation.attachment_update_problems,
    ),
    **CLUSTER,
)
