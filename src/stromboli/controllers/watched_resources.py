"""Where on an API server the kinds live that controllers watch."""

from stromboli.api.types import controlled_pod, scheduling
from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.cronjob import CronJob
from stromboli.api.types.jobflow import JobFlow, JobTemplate
from stromboli.api.types.meta import Object
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.scheduling import PodGroup, PriorityClass, Queue
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.api.types.volcano_job import Command, Job
from stromboli.controllers.watched_kinds import (
    HyperNode,
    Node,
    PlacedPod,
    Pod,
    ReplicaSet,
    StatefulSet,
)
from stromboli.controllers.workloads import workload_kinds
from stromboli.controllers.workloads.batch_cronjob.batch_cronjob_kind import BatchCronJob
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob
from stromboli.controllers.workloads.controller_revisions import ControllerRevision
from stromboli.controllers.workloads.daemonset import daemon_set
from stromboli.controllers.workloads.statefulset import stateful_set
from stromboli.kube.api_resources import RESOURCES, Resource

_BATCH, _FLOW = "batch.volcano.sh", "flow.volcano.sh"
WATCHED_RESOURCES: dict[type[Object], Resource] = {
    Pod: Resource("", "v1", "pods", "Pod"),
    PlacedPod: Resource("", "v1", "pods", "Pod"),
    Node: Resource("", "v1", "nodes", "Node", namespaced=False),
    HyperNode: RESOURCES[scheduling.HyperNode],
    ConfigMap: RESOURCES[ConfigMap],
    ReplicaSet: Resource("apps", "v1", "replicasets", "ReplicaSet"),
    StatefulSet: Resource("apps", "v1", "statefulsets", "StatefulSet"),
    NodeShard: RESOURCES[NodeShard],
    PodGroup: RESOURCES[PodGroup],
    Queue: RESOURCES[Queue],
    PriorityClass: RESOURCES[PriorityClass],
    PersistentVolumeClaim: RESOURCES[PersistentVolumeClaim],
    Job: Resource(_BATCH, "v1alpha1", "jobs", "Job"),
    CronJob: Resource(_BATCH, "v1alpha1", "cronjobs", "CronJob"),
    JobFlow: Resource(_FLOW, "v1alpha1", "jobflows", "JobFlow"),
    JobTemplate: Resource(_FLOW, "v1alpha1", "jobtemplates", "JobTemplate"),
    controlled_pod.Pod: Resource("", "v1", "pods", "Pod"),
    workload_kinds.Deployment: Resource("apps", "v1", "deployments", "Deployment"),
    workload_kinds.ReplicaSet: Resource("apps", "v1", "replicasets", "ReplicaSet"),
    workload_kinds.ReplicationController: Resource(
        "", "v1", "replicationcontrollers", "ReplicationController"
    ),
    stateful_set.StatefulSet: Resource("apps", "v1", "statefulsets", "StatefulSet"),
    daemon_set.DaemonSet: Resource("apps", "v1", "daemonsets", "DaemonSet"),
    daemon_set.Node: Resource("", "v1", "nodes", "Node", namespaced=False),
    ControllerRevision: Resource("apps", "v1", "controllerrevisions", "ControllerRevision"),
    BatchJob: Resource("batch", "v1", "jobs", "Job"),
    BatchCronJob: Resource("batch", "v1", "cronjobs", "CronJob"),
    Command: Resource("bus.volcano.sh", "v1alpha1", "commands", "Command"),
}
