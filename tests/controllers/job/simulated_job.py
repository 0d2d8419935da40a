"""A job and its cluster in a dictionary: it is reconciled, and the outcome is executed at once.

Pods live as a kubelet would let them: deleted ones stay terminating until `remove_deleted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.volcano_job import Command, Job, JobStatus
from stromboli.controllers.job.observed_events import GonePod, ReconcileCache, succeeded_pods
from stromboli.controllers.job.observed_state import (
    Attach,
    CreateClaim,
    CreateGroup,
    CreatePod,
    DeleteCommand,
    DeleteGroup,
    DeletePod,
    Detach,
    LiftGate,
    ObservedState,
    Outcome,
    PatchGroup,
    PatchJob,
    SetStatus,
    Write,
)
from stromboli.controllers.job.order.job_order import order_of
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.controllers.job.pod_facts import version_of
from stromboli.controllers.job.pod_summary import PodSummary
from stromboli.controllers.job.reconcile import reconcile
from tests.controllers.in_memory_api import merged

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLUGINS = JobPlugins()
CONTAINER = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}


def task(name: str = "worker", replicas: int = 2, **more: Any) -> dict[str, Any]:
    spec = more.pop("spec", {})
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"containers": [deepcopy(CONTAINER)], **spec}},
        **more,
    }


def policy(action: str, *events: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "events": list(events), **more}


def job_manifest(*tasks: Mapping[str, Any], name: str = "j", **spec: Any) -> dict[str, Any]:
    wanted = list(tasks) or [task()]
    spec.setdefault("minAvailable", sum(task["replicas"] for task in wanted))
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": "u1" if name == "j" else f"u-{name}",
        "creationTimestamp": NOON.isoformat(),
        **spec.pop("metadata", {}),
    }
    return {
        "metadata": metadata,
        "spec": {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "tasks": wanted, **spec},
        "status": spec.pop("status", {}),
    }


def make_job(*tasks: Mapping[str, Any], **spec: Any) -> Job:
    return msgspec.convert(job_manifest(*tasks, **spec), Job)


@dataclass(slots=True)
class SimulatedJob:
    """The cluster of one job."""

    job: Job
    now: datetime = NOON
    pods: dict[str, Pod] = field(default_factory=dict)
    group: PodGroup | None = None
    queue: Queue | None = field(
        default_factory=lambda: msgspec.convert({"metadata": {"name": "default"}}, Queue)
    )
    commands: list[Command] = field(default_factory=list)
    claims: set[str] = field(default_factory=set)
    attached: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    cache: ReconcileCache = field(default_factory=ReconcileCache)
    known: dict[str, GonePod] = field(default_factory=dict)
    """Pods whose deletion by others would be an event, by name."""
    others: dict[str, Job] = field(default_factory=dict)
    """Other jobs of the namespace, by name."""
    plugins: JobPlugins = PLUGINS
    admits: bool = True
    """Whether the scheduler lets the group in at once."""
    events: list[tuple[str, str, str]] = field(default_factory=list)
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    status_writes: int = 0
    serial: int = 0
    requeue_at: datetime | None = None

    # -- what a controller does

    def observed(self) -> ObservedState:
        job = msgspec.convert(msgspec.to_builtins(self.job), Job)
        return ObservedState(
            job=job,
            now=self.now,
            plugins=self.plugins,
            pods=PodSummary.of(job, self.pods.values(), succeeded_pods(job, self.gone())),
            gone=self.gone(),
            group=self.group,
            queue=self.queue,
            command=self.commands[0] if self.commands else None,
            cache=self.cache,
            has_claim=self.claims.__contains__,
            order=order_of(job, self.others.get),
        )

    def gone(self) -> dict[str, GonePod]:
        """Pods that the last reconcile observed, and that are no longer there."""
        now = {pod.metadata.uid for pod in self.pods.values()}
        return {name: pod for name, pod in self.known.items() if pod.uid not in now}

    def reconcile(self) -> Outcome:
        return reconcile(self.observed())

    def step(self) -> Outcome:
        """One reconcile, executed."""
        outcome = self.reconcile()
        self.known = known_pods(self.job, self.pods.values(), outcome)
        for write in outcome.writes:
            self.write(write)
        self.cache = outcome.cache
        self.requeue_at = outcome.requeue_at
        self.events += outcome.events
        if self.admits and self.group is not None and self.group.status.phase in ("", "Pending"):
            self.group.status.phase = "Inqueue"
        return outcome

    def settle(self, most: int = 40) -> SimulatedJob:
        """Until nothing is left to be done."""
        for _ in range(most):
            was_in = self.group is not None and self.group.status.phase not in ("", "Pending")
            outcome = self.step()
            is_in = self.group is not None and self.group.status.phase not in ("", "Pending")
            if not outcome.writes and was_in == is_in:
                return self
        raise AssertionError(f"never quiet: {outcome.writes}")

    def restart(self) -> SimulatedJob:
        """Another controller takes over, which remembers nothing."""
        self.cache, self.known = ReconcileCache(), {}
        return self

    def write(self, write: Write) -> None:  # noqa: PLR0912 - one branch per kind of write
        match write:
            case SetStatus(status):
                self.job.status = msgspec.convert(msgspec.to_builtins(status), JobStatus)
                self.status_writes += 1
            case PatchJob(patch):
                self._patch_job(patch)
            case CreatePod(manifest):
                self._create(manifest)
            case DeletePod(pod, out_of_sync):
                self._delete(pod, out_of_sync)
            case LiftGate(pod):
                self._lift_gate(pod)
            case CreateGroup(manifest):
                assert self.group is None
                self.serial += 1
                self.group = msgspec.convert(manifest, PodGroup)
                self.group.metadata.uid = f"g{self.serial}"
            case PatchGroup(group, changes):
                assert group is self.group
                spec = msgspec.to_builtins(group.spec)
                self.group.spec = msgspec.convert(merged(spec, changes), type(group.spec))
            case DeleteGroup():
                self.group = None
            case CreateClaim(manifest):
                self.claims.add(manifest["metadata"]["name"])
            case Attach(wanted):
                for attachment in wanted:
                    self.attached[attachment.kind, attachment.name] = attachment.manifest
            case Detach(unwanted):
                for attachment in unwanted:
                    self.attached.pop((attachment.kind, attachment.name), None)
            case DeleteCommand(command):
                self.commands.remove(command)

    def _patch_job(self, patch: dict[str, Any]) -> None:
        whole = msgspec.to_builtins(self.job)
        whole["spec"] |= patch.get("spec", {})
        whole["metadata"].setdefault("annotations", {}).update(
            patch.get("metadata", {}).get("annotations", {})
        )
        self.job = msgspec.convert(whole, Job)

    def _create(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        if name in self.pods:
            return
        self.serial += 1
        self.manifests[name] = manifest
        pod = msgspec.convert(msgspec.to_builtins({"metadata": manifest["metadata"]}), Pod)
        pod.metadata.uid = f"p{self.serial}"
        pod.metadata.creation_timestamp = self.now
        pod.status.phase = names.POD_PENDING
        self.pods[name] = pod

    def _delete(self, pod: Pod, out_of_sync: bool) -> None:
        now = self.pods.get(pod.name)
        if now is None or now.metadata.uid != pod.metadata.uid:
            return
        metadata = msgspec.structs.replace(now.metadata, deletion_timestamp=self.now)
        if out_of_sync:
            metadata.annotations = {**metadata.annotations, names.OUT_OF_SYNC: "true"}
        self.pods[pod.name] = msgspec.structs.replace(now, metadata=metadata)

    def _lift_gate(self, pod: Pod) -> None:
        now = self.pods[pod.name]
        annotations = {key: value for key, value in now.metadata.annotations.items() if key != names.AFTER}
        metadata = msgspec.structs.replace(now.metadata, annotations=annotations)
        self.pods[pod.name] = msgspec.structs.replace(now, metadata=metadata)

    # -- what the rest of the cluster does

    def set_pod(self, name: str, phase: str, code: int = 0, **more: Any) -> SimulatedJob:
        """A pod comes into a phase; `name` without the job's."""
        pod = self.pods[f"{self.job.name}-{name}"]
        status: dict[str, Any] = {"phase": phase, **more}
        if phase in ("Failed", "Succeeded"):
            ended = {"exitCode": code, "finishedAt": self.now.isoformat()}
            status.setdefault("containerStatuses", [{"state": {"terminated": ended}}])
        if phase == "Running":
            status.setdefault("containerStatuses", [{"ready": True}])
        kind = type(pod.status)
        self.pods[pod.name] = msgspec.structs.replace(pod, status=msgspec.convert(status, kind))
        return self

    def set_all(self, phase: str) -> SimulatedJob:
        for name, pod in self.pods.items():
            if pod.metadata.deletion_timestamp is None:
                self.set_pod(name.removeprefix(f"{self.job.name}-"), phase)
        return self

    def evict(self, name: str) -> SimulatedJob:
        """Somebody takes a pod away."""
        del self.pods[f"{self.job.name}-{name}"]
        return self

    def remove_deleted(self) -> SimulatedJob:
        """Pods that are being deleted are gone."""
        for name in [name for name, pod in self.pods.items() if pod.metadata.deletion_timestamp is not None]:
            del self.pods[name]
        return self

    def wait(self, seconds: float) -> SimulatedJob:
        self.now += timedelta(seconds=seconds)
        return self

    def ask(self, action: str, **target: str) -> SimulatedJob:
        """A user's command."""
        self.serial += 1
        command = {
            "metadata": {"name": f"c{self.serial}", "namespace": "team", "uid": f"c{self.serial}"},
            "action": action,
            "target": {"kind": "Job", "name": self.job.name, "uid": "u1", **target},
        }
        self.commands.append(msgspec.convert(command, Command))
        return self

    def scale(self, **replicas: int) -> SimulatedJob:
        for task_spec in self.job.spec.tasks:
            task_spec.replicas = replicas.get(task_spec.name, task_spec.replicas)
            if task_spec.min_available is not None:
                task_spec.min_available = min(task_spec.min_available, task_spec.replicas)
        total = sum(task_spec.replicas for task_spec in self.job.spec.tasks)
        self.job.spec.min_available = min(self.job.spec.min_available, total)
        return self

    # -- what a test asks

    @property
    def phase(self) -> str:
        return self.job.status.state.phase

    @property
    def alive(self) -> list[str]:
        """Pods that are not being deleted, without the job's name."""
        return sorted(
            name.removeprefix(f"{self.job.name}-")
            for name, pod in self.pods.items()
            if pod.metadata.deletion_timestamp is None
        )

    @property
    def recorded(self) -> list[tuple[str, str]]:
        """Reason and words of every event."""
        return [(reason, message) for _, reason, message in self.events]


def known_pods(job: Job, pods: Iterable[Pod], outcome: Outcome) -> dict[str, GonePod]:
    """The pods whose deletion by others would be an event: those of the job's version that we do not delete."""
    deleted = {write.pod.name for write in outcome.writes if isinstance(write, DeletePod)}
    return {
        pod.name: GonePod.of(pod)
        for pod in pods
        if pod.name not in deleted
        and version_of(pod) >= job.status.version
        and names.OUT_OF_SYNC not in pod.metadata.annotations
    }


def running(*tasks: Mapping[str, Any], **spec: Any) -> SimulatedJob:
    """A job all of whose pods run."""
    simulated = SimulatedJob(make_job(*tasks, **spec)).settle()
    return simulated.set_all("Running").settle()


def in_phase(phase: str, *tasks: Mapping[str, Any], **spec: Any) -> SimulatedJob:
    """A job that was brought into a phase the way users would."""
    simulated = running(*tasks, **spec)
    command = {
        "Aborting": "AbortJob",
        "Aborted": "AbortJob",
        "Completing": "CompleteJob",
        "Completed": "CompleteJob",
        "Terminating": "TerminateJob",
        "Terminated": "TerminateJob",
        "Restarting": "RestartJob",
    }
    if phase == "Pending":
        simulated.set_all("Pending").settle()
    elif phase == "Failed":
        simulated.set_all("Failed").settle()
    elif phase in command:
        simulated.ask(command[phase]).settle()
        if phase in ("Aborted", "Completed", "Terminated"):
            simulated.remove_deleted().settle()
    assert simulated.phase == phase, (simulated.phase, phase)
    return simulated


def copied(simulated: SimulatedJob) -> SimulatedJob:
    return replace(simulated, pods=dict(simulated.pods))
