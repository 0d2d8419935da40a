"""Kubernetes' own workloads: the pods that they lack."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.object_bounds import MAX_PODS
from stromboli.controllers.workloads.daemonset.node_eligibility import daemon_nodes
from stromboli.controllers.workloads.workload import (
    ORDERED_READY,
    Manifest,
    Workload,
    counted_pods,
    desired_pods,
)
from stromboli.controllers.workloads.workload_pods import (
    cron_job_run,
    daemon_pod,
    job_pod,
    replica_pod,
    replica_set_of,
    stateful_claims,
    stateful_pod,
)
from stromboli.simulator.expansion.cron_runs import next_run
from stromboli.simulator.expansion.observed_objects import ObservedObjects, OwnerKey
from stromboli.simulator.expansion.submission import stable_uid

_MAKERS: dict[str, Callable[[Workload, int], Manifest]] = {
    "Job": job_pod,
    "ReplicaSet": replica_pod,
    "ReplicationController": replica_pod,
    "StatefulSet": stateful_pod,
}


def read_workload(content: Manifest, observed: ObservedObjects) -> Workload:
    """A workload; one that was never submitted gets the uid that its pods know, or one of its own."""
    workload = decode_as(Workload, msgspec.json.encode(content))
    key = key_of(workload)
    workload.metadata.uid = (
        workload.metadata.uid
        or observed.uids.get(key, "")
        or stable_uid(workload.kind, workload.namespace, workload.name)
    )
    return workload


def key_of(workload: Workload) -> OwnerKey:
    group = workload.api_version.rpartition("/")[0]
    return OwnerKey(group, workload.kind, workload.namespace, workload.name)


@dataclass(slots=True)
class PlannedWorkload:
    """A workload with the ordinals of the pods that it lacks."""

    workload: Workload
    where: str
    subject: str
    """The object of the user: of a ReplicaSet that we made, its Deployment."""
    manifests: list[Manifest] = field(default_factory=list)
    missing: deque[int] = field(default_factory=deque)
    nodes: list[str] = field(default_factory=list)
    """Of a DaemonSet: the nodes that lack a pod."""

    @property
    def name(self) -> str:
        """The name under which the user knows it."""
        return self.subject.rpartition("/")[2]

    @property
    def created(self) -> datetime | None:
        return self.workload.metadata.creation_timestamp

    @property
    def unfinished(self) -> bool:
        """Whether pods are still to be made."""
        return bool(self.missing)

    def due_pods(self, phase_of: Callable[[str], str | None]) -> Iterator[Manifest]:
        """The pods that are made now; a StatefulSet makes the next pod once all before it run."""
        yield from (daemon_pod(self.workload, node) for node in self.nodes)
        self.nodes = []
        while self.missing and self._is_next_due(phase_of):
            ordinal = self.missing.popleft()
            if self.workload.kind == "StatefulSet":
                yield from stateful_claims(self.workload, ordinal)
            yield _MAKERS[self.workload.kind](self.workload, ordinal)

    def waiting(self, phase_of: Callable[[str], str | None]) -> Iterator[str]:
        """A sentence on pods that are not made yet."""
        if self.missing:
            pods = "1 pod more is" if len(self.missing) == 1 else f"{len(self.missing)} pods more are"
            yield f"{self.subject}: {pods} made one after the other, each once those before it run ({ORDERED_READY})"

    def _is_next_due(self, phase_of: Callable[[str], str | None]) -> bool:
        owner = self.workload
        if owner.kind != "StatefulSet" or owner.spec.pod_management_policy != ORDERED_READY:
            return True
        start = owner.spec.ordinals.start
        return all(
            phase_of(f"{owner.namespace}/{owner.name}-{start + ordinal}") == names.POD_RUNNING
            for ordinal in range(self.missing[0])
        )


class KubeWorkloads:
    """Expands workloads of Kubernetes' own kinds."""

    def __init__(self, observed: ObservedObjects, now: float, notes: list[str]) -> None:
        self._observed = observed
        self._now = now
        self._notes = notes

    def plan(self, content: Manifest, where: str) -> PlannedWorkload | None:
        """A workload with what it lacks; None if it is to have no pods now."""
        workload = read_workload(content, self._observed)
        if workload.metadata.deletion_timestamp is not None:
            return None
        subject = workload.subject
        manifests: list[Manifest] = []
        if workload.kind == "CronJob":
            run = self._run_of(workload, bool(content["metadata"].get("uid")))
            if run is None:
                return None
            workload = read_workload(run, self._observed)
        if workload.kind == "Job" and workload.spec.suspend:
            self._notes.append(f"{subject} is suspended (spec.suspend): it has no pods")
            return None
        counted = counted_pods(workload)
        if workload.kind == "Deployment":
            if key_of(workload) in self._observed.owned_sets:
                return None  # its ReplicaSets are among the objects, and looked after there
            manifests = [replica_set_of(workload)]
            workload = read_workload(manifests[0], self._observed)
            manifests[0]["metadata"]["uid"] = workload.metadata.uid
        planned = PlannedWorkload(workload, where, subject, manifests)
        if workload.kind == "DaemonSet":
            self._lack_on_nodes(planned, counted)
        else:
            self._lack(planned, counted)
        return planned if planned.missing or planned.nodes else None

    def _run_of(self, cron: Workload, is_live: bool) -> Manifest | None:
        """The next Job of a CronJob, if that is new; one that a cluster has starts its jobs by itself."""
        if is_live:
            return None
        due = next_run(cron, self._now, self._notes)
        return cron_job_run(cron, f"{cron.name}-{int(due) // 60}") if due is not None else None

    def _lack(self, planned: PlannedWorkload, counted: int) -> None:
        """The first ordinals whose pods do not exist, as many as are missing."""
        owner = planned.workload
        wanted = desired_pods(owner)
        if wanted > MAX_PODS:
            raise BadObject("spec.replicas", f"{wanted} pods; at most {MAX_PODS} are made", planned.subject)
        alive = sum(not pod.ended for pod in self._observed.owned[key_of(owner)])
        lacking = max(0, wanted - max(alive, counted))
        ordinal = 0
        while len(planned.missing) < lacking:
            if _name(owner, ordinal) not in self._observed.pods:
                planned.missing.append(ordinal)
            ordinal += 1

    def _lack_on_nodes(self, planned: PlannedWorkload, counted: int) -> None:
        owner = planned.workload
        alive = [pod for pod in self._observed.owned[key_of(owner)] if not pod.ended]
        served = {pod.node for pod in alive}
        wanted = daemon_nodes(owner, self._observed.nodes)
        lacking = max(0, len(wanted) - max(len(alive), counted))
        planned.nodes = [node for node in wanted if node not in served][:lacking]


def _name(owner: Workload, ordinal: int) -> str:
    name: str = _MAKERS[owner.kind](owner, ordinal)["metadata"]["name"]
    return f"{owner.namespace}/{name}"
