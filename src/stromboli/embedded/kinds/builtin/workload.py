"""Workloads of `scheduling.k8s.io`."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.schemas.pod_group_rules import WORKLOAD_FIELDS, workload_problems
from stromboli.api.schemas.schema_problems import Problem
from stromboli.embedded.kinds.kind import ALPHA, Content, builtin
from stromboli.embedded.kinds.strategy import Strategy, fixed_fields

WORKLOADS = "workloads.scheduling.k8s.io"


class WorkloadStrategy(Strategy):
    def problems(self, content: Content) -> Iterable[Problem]:
        return workload_problems(content)

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return fixed_fields(WORKLOAD_FIELDS)(old, new)


KIND = builtin("scheduling.k8s.io", "workloads", "Workload", strategy=WorkloadStrategy(), **ALPHA)
