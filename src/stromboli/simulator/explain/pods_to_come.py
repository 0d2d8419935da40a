"""The pods that a Job gets once it is admitted to its queue, so that a trial shows whether they start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from stromboli.api.decoding import decode, decode_as
from stromboli.api.errors import BadObject
from stromboli.api.manifests.object_defaults import Priorities, apiserver_defaults
from stromboli.api.object_bounds import MAX_PODS
from stromboli.api.types.volcano_job import Job as VolcanoJob
from stromboli.simulator.expansion.planned_job import PlannedJob

if TYPE_CHECKING:
    from stromboli.model.intake.object_intake import Intake
    from stromboli.model.job import Job


def add_pods_to_come(intake: Intake, job: Job, owner: Mapping[str, Any]) -> int:
    """Add the pods that the controller would create for a Volcano Job; return their number, 0 for an invalid Job."""
    try:
        content = decode_as(VolcanoJob, msgspec.json.encode(owner))
        if sum(task.replicas for task in content.spec.tasks) > MAX_PODS:
            return 0
        manifests = list(PlannedJob(content, "", job.name, ()).due_pods(lambda key: None))
        pods = [pod for manifest in manifests if (pod := decode({"kind": "Pod", **manifest})) is not None]
        priorities = Priorities(intake.cluster.objects.priority_classes.values())
        for place, pod in enumerate(pods):
            apiserver_defaults(pod, place, priorities)
            intake.put(pod)
    except BadObject:
        return 0
    intake.cluster.settle()
    for task in job.tasks.values():
        task.created = 0.0  # it does not exist yet
    return len(pods)
