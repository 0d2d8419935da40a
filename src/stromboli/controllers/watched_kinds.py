"""Which kinds controllers read and write, where they live, and a pod with just what controllers read of it."""

from __future__ import annotations

from msgspec import field

from stromboli.api.types.cronjob import CronJob
from stromboli.api.types.jobflow import JobFlow, JobTemplate
from stromboli.api.types.meta import Int32, LabelSelector, Object, Record
from stromboli.api.types.pod import PodResources, SchedulingGroup
from stromboli.api.types.scheduling import PodGroup, PriorityClass, Queue
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.api.types.volcano_job import Command, Job, JobPod, JobPodStatus
from stromboli.kube.api_resources import RESOURCES, Resource


class PodSpec(PodResources):
    """What is counted of a pod, and who places it."""

    scheduler_name: str = ""
    node_name: str = ""
    priority_class_name: str = ""
    scheduling_group: SchedulingGroup | None = None


class PodStatus(JobPodStatus):
    pod_ip: str = field(default="", name="podIP")


class Pod(JobPod):
    """A pod as all controllers see it, so that pods are watched once: its marks, its fate, and what it asks for."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class WorkloadSpec(Record):
    replicas: Int32 = 1
    selector: LabelSelector | None = None


class WorkloadStatus(Record):
    update_revision: str = ""


class ReplicaSet(Object):
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


class StatefulSet(Object):
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)


BATCH, FLOW = "batch.volcano.sh", "flow.volcano.sh"
PLACES: dict[type[Object], Resource] = {
    Pod: Resource("", "v1", "pods", "Pod"),
    ReplicaSet: Resource("apps", "v1", "replicasets", "ReplicaSet"),
    StatefulSet: Resource("apps", "v1", "statefulsets", "StatefulSet"),
    PodGroup: RESOURCES[PodGroup],
    Queue: RESOURCES[Queue],
    PriorityClass: RESOURCES[PriorityClass],
    PersistentVolumeClaim: RESOURCES[PersistentVolumeClaim],
    Job: Resource(BATCH, "v1alpha1", "jobs", "Job"),
    CronJob: Resource(BATCH, "v1alpha1", "cronjobs", "CronJob"),
    JobFlow: Resource(FLOW, "v1alpha1", "jobflows", "JobFlow"),
    JobTemplate: Resource(FLOW, "v1alpha1", "jobtemplates", "JobTemplate"),
    Command: Resource("bus.volcano.sh", "v1alpha1", "commands", "Command"),
}
"""Where every kind lives that a controller watches."""


def api_version(thing: Object) -> str:
    """As manifests and owner references write it."""
    return PLACES[type(thing)].api_version


def controlled_by(owner: Object) -> dict[str, object]:
    """The reference by which `owner` is the controller of what it makes."""
    return {
        "apiVersion": api_version(owner),
        "kind": type(owner).__name__,
        "name": owner.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
