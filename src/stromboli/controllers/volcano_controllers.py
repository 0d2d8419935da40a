"""The list of Volcano's controllers."""

from __future__ import annotations

from typing import Any

from stromboli.controllers.controller import Controller
from stromboli.controllers.cronjob.controller import CronJobController
from stromboli.controllers.finished_job_gc import GarbageController
from stromboli.controllers.hypernode.controller import HyperNodeController
from stromboli.controllers.job.controller import JobController
from stromboli.controllers.jobflow.controller import JobFlowController
from stromboli.controllers.jobtemplate import JobTemplateController
from stromboli.controllers.podgroup.controller import PodGroupController
from stromboli.controllers.queue.controller import QueueController
from stromboli.controllers.sharding.controller import ShardingController

CONTROLLERS: tuple[type[Controller[Any]], ...] = (
    JobController,
    PodGroupController,
    QueueController,
    GarbageController,
    JobFlowController,
    JobTemplateController,
    CronJobController,
    HyperNodeController,
    ShardingController,
)
"""All controllers, in the order in which they are created."""
