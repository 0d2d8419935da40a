"""The controllers of Kubernetes' workloads, which kube-controller-manager runs elsewhere.

They are not Volcano's: an embedded cluster runs them, `stromboli controllers` does not.
"""

from __future__ import annotations

from typing import Any

from stromboli.controllers.workloads.daemonset.controller import DaemonSetController
from stromboli.controllers.workloads.deployment.controller import DeploymentController
from stromboli.controllers.workloads.replicaset.controller import (
    ReplicaSetController,
    ReplicationControllerController,
)
from stromboli.controllers.workloads.statefulset.controller import StatefulSetController
from stromboli.controllers.workloads.workload_controller import WorkloadController

WORKLOAD_CONTROLLERS: tuple[type[WorkloadController[Any]], ...] = (
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
    StatefulSetController,
    DaemonSetController,
)
"""In the order in which they are created."""
