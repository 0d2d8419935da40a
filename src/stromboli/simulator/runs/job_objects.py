"""The PodGroup and the pods of a submitted job, as objects of their types: decoding each would take too long."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject
from stromboli.api.manifests.object_defaults import FIRST_CREATION, Priorities, case_defaults
from stromboli.api.object_checks import check_object
from stromboli.api.resources.pod_requests import pod_request
from stromboli.api.resources.resource_lists import resource_list
from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.pod import Pod, PodSpec, PodStatus
from stromboli.api.types.scheduling import PodGroup, PodGroupSpec
from stromboli.simulator.job_manifests import merged, priority_class_name
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob

EPOCH = FIRST_CREATION.timestamp()
"""When a simulation begins, in seconds since 1970."""
LONGEST_TIME = 1e11
"""The last moment at which a job may be submitted, in seconds."""
MOST_PODS = 100_000
"""Pods of a job."""
_SPECS_KEPT = 10_000
_TIE = timedelta(microseconds=1)


def check_job(job: SubmittedJob) -> None:
    """Refuse a job that no simulation can run."""
    if not 0 <= job.submit_time <= LONGEST_TIME:
        raise BadObject("submit_time", f"{job.submit_time!r} is not within 0 and {LONGEST_TIME:.0f} seconds")
    if not job.run_time >= 0:
        raise BadObject("run_time", f"{job.run_time!r} is no time")
    if job.time_limit is not None and not 0 <= job.time_limit < float("inf"):
        raise BadObject("time_limit", f"{job.time_limit!r} is no time")
    if not 1 <= job.pods <= MOST_PODS:
        raise BadObject("pods", f"{job.pods} pods; at least 1 and at most {MOST_PODS}")
    if job.minimum is not None and not 0 <= job.minimum <= job.pods:
        raise BadObject("minimum", f"{job.minimum} of {job.pods} pods")


def duration_text(seconds: float) -> str:
    """A duration as annotations have it."""
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds:f}s"


class JobTemplate(msgspec.Struct):
    """What all pods of a job have in common."""

    group: PodGroup
    spec: PodSpec
    labels: dict[str, str]
    annotations: dict[str, str]
    request: dict[str, int]
    """Of each pod, in the scheduler's own units."""

    def pod(self, ordinal: int, uid: str, node: str = "") -> Pod:
        """A pod that waits to be placed, or that runs on a node already."""
        group = self.group.metadata
        meta = ObjectMeta(
            f"{group.name}-{ordinal}",
            group.namespace,
            uid,
            "",
            group.creation_timestamp,
            None,
            self.labels,
            self.annotations,
        )
        if node:
            spec = msgspec.structs.replace(self.spec, node_name=node)
            return Pod(meta, spec, PodStatus(phase=names.POD_RUNNING, start_time=group.creation_timestamp))
        return Pod(meta, self.spec, PodStatus(phase=names.POD_PENDING))


class JobTemplates:
    """Makes templates of jobs; pods that request the same share their spec."""

    def __init__(self, priorities: Priorities) -> None:
        self._priorities = priorities
        self._specs: dict[bytes, tuple[PodSpec, dict[str, int]]] = {}
        self._last: datetime | None = None
        self._ties = 0

    def template(self, job: SubmittedJob) -> JobTemplate:
        """The template of a job that is submitted now; a job that cannot be used raises `BadObject`."""
        check_job(job)
        spec, request = self._spec(job)
        annotations = dict(job.annotations)
        if job.time_limit is not None:
            annotations[names.TIME_LIMIT] = duration_text(job.time_limit)
        if job.user:
            annotations.setdefault(names.USER, job.user)
        minimum = job.pods if job.minimum is None else job.minimum
        least = {name: amount * minimum for name, amount in request.items()}
        uid = f"PodGroup/{job.namespace}/{job.name}"
        group = PodGroup(
            ObjectMeta(job.name, job.namespace, uid, "", self._created(job), None, {}, annotations),
            PodGroupSpec(
                min_member=minimum,
                queue=job.queue or names.DEFAULT_QUEUE,
                priority_class_name=priority_class_name(job.priority) if job.priority else "",
                min_resources=_named(least) or None,
            ),
        )
        check_object(group)
        labels = dict(job.labels)
        return JobTemplate(group, spec, labels, {names.GROUP_NAME: job.name, **annotations}, request)

    def _created(self, job: SubmittedJob) -> datetime:
        """Jobs of the same moment are created one after the other, in the order of the workload."""
        moment = FIRST_CREATION + timedelta(seconds=job.submit_time)
        self._ties = self._ties + 1 if moment == self._last else 0
        self._last = moment
        return moment + self._ties * _TIE

    def _spec(self, job: SubmittedJob) -> tuple[PodSpec, dict[str, int]]:
        key = msgspec.msgpack.encode((tuple(job.requests.items()), job.priority, job.spec))
        known = self._specs.get(key)
        if known is None:
            if len(self._specs) >= _SPECS_KEPT:
                self._specs.clear()
            known = self._specs[key] = self._new_spec(job)
        return known

    def _new_spec(self, job: SubmittedJob) -> tuple[PodSpec, dict[str, int]]:
        requests = {name: str(amount) for name, amount in job.requests.items()}
        devices = {name: amount for name, amount in requests.items() if "/" in name}
        resources = {"requests": requests, "limits": devices}  # Kubernetes wants both of devices
        spec: dict[str, Any] = {
            "schedulerName": names.SCHEDULER_NAME,
            "containers": [{"name": "main", "resources": resources}],
            "priority": job.priority,
        }
        if job.priority:
            spec["priorityClassName"] = priority_class_name(job.priority)
        pod = decode(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": job.name, "namespace": job.namespace, "labels": dict(job.labels)},
                "spec": merged(spec, job.spec),
            }
        )
        assert isinstance(pod, Pod)
        case_defaults(pod, 0, self._priorities)
        check_object(pod)
        return pod.spec, {name: amount for name, amount in pod_request(pod).items() if amount}


def _named(request: dict[str, int]) -> dict[str, Any]:
    """Amounts as a resource list, of what is requested alone."""
    return {name: text for name, text in resource_list(request).items() if name in request}
