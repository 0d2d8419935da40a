"""Deployments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.api.schemas.apps.deployment_rules import deployment_problems
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.kind import IN_ALL, SCALE, STATUS, Content, Kind, builtin
from stromboli.embedded.kinds.pod_owners import SelectingStrategy, image_cells
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, nested_map, printer, selector_text


def _row(deployment: Content, now: float) -> Cells:
    spec, status = nested_map(deployment, "spec"), nested_map(deployment, "status")
    return [
        name_of(deployment),
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        age(deployment, now),
        *image_cells(deployment, "spec"),
        selector_text(spec.get("selector")),
    ]


class DeploymentStrategy(SelectingStrategy):
    kind_name = "Deployment"
    rolling_update = "strategy", {"maxUnavailable": "25%", "maxSurge": "25%"}
    printer = printer("Name | Ready | Up-to-date | Available | Age | Containers+ | Images+ | Selector+", _row)

    def owner_problems(self, content: Content) -> Iterable[Problem]:
        yield from super().owner_problems(content)
        yield from deployment_problems(content["spec"])

    def desired(self, kind: Kind, content: Content) -> Any:
        """Rollouts keep their history in annotations."""
        return {"spec": content.get("spec"), "annotations": content["metadata"].get("annotations") or {}}


KIND = builtin(
    "apps", "deployments", "Deployment", "deploy", SCALE, STATUS, strategy=DeploymentStrategy(), **IN_ALL
)
