"""The controllers of Kubernetes' workloads, which kube-controller-manager runs elsewhere.

They are not Volcano's: an embedded cluster runs them, `stromboli controllers` does not.
"""

from __future__ import annotations

from typing import Any

from stromboli.controllers.controller import Controller
from stromboli.controllers.workloads.batch_cronjob.controller import BatchCronJobController
from stromboli.controllers.workloads.batch_job.controller import BatchJobController
from stromboli.controllers.workloads.batch_job.finished_batch_jobs import FinishedBatchJobController
from stromboli.controllers.workloads.batch_job.tracking_finalizers import TrackingFinalizerController
from stromboli.controllers.workloads.daemonset.controller import DaemonSetController
from stromboli.controllers.workloads.deployment.controller import DeploymentController
from stromboli.controllers.workloads.replicaset.controller import (
    ReplicaSetController,
    ReplicationControllerController,
)
from stromboli.controllers.workloads.statefulset.controller import StatefulSetController

WORKLOAD_CONTROLLERS: tuple[type[Controller[Any]], ...] = (
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
    StatefulSetController,
    DaemonSetController,
    BatchJobController,
    FinishedBatchJobController,
    TrackingFinalizerController,
    BatchCronJobController,
)
"""In the order in which they are created."""
