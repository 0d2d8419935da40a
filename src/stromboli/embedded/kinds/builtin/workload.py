"""Workloads of `scheduling.k8s.io`."""

from __future__ import annotations

from stromboli.api.schemas.pod_group_rules import WORKLOAD_FIELDS, workload_problems
from stromboli.embedded.kinds.kind import ALPHA, builtin
from stromboli.embedded.kinds.strategy import Strategy, fixed_fields

WORKLOADS = "workloads.scheduling.k8s.io"


KIND = builtin(
    "scheduling.k8s.io",
    "workloads",
    "Workload",
    strategy=Strategy(problems=workload_problems, update_problems=fixed_fields(WORKLOAD_FIELDS)),
    **ALPHA,
)
