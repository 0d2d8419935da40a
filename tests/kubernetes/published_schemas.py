"""What a server publishes of the fields of its kinds."""

from __future__ import annotations

import json
from typing import Any

from tests.kubernetes.controlplane import ControlPlane


def published_schemas(plane: ControlPlane, root: str, package: str) -> dict[str, dict[str, Any]]:
    """The schemas of one group and version by name, without those of lists."""
    document = json.loads(plane.request("GET", f"/openapi/v3{root}"))
    return {
        name: schema
        for name, schema in document["components"]["schemas"].items()
        if name.startswith(package) and not name.endswith("List")
    }
