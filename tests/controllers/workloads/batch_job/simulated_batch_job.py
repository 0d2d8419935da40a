"""A Job of `batch/v1` with its pods, synced as its controller does it, on an API server that may fail at any write."""

from __future__ import annotations

import itertools
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from stromboli.api.pods import is_active
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.user_event import UserEvent
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob, BatchJobStatus
from stromboli.controllers.workloads.batch_job.job_pod_control import new_pod
from stromboli.controllers.workloads.batch_job.pod_backoff import PodBackoff
from stromboli.controllers.workloads.batch_job.pod_ends import is_tracked
from stromboli.controllers.workloads.batch_job.reconcile import Decision, finish, reconcile, record

NOW = 1_767_225_600.0
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}}


class Crash(Exception):
    """The controller ends in the middle of a sync."""


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def make_job(status: Any = None, **spec: Any) -> BatchJob:
    defaults = {"parallelism": 1, "template": TEMPLATE, "backoffLimit": 6}
    if not {"parallelism", "completions"} & spec.keys():
        defaults["completions"] = 1
    meta = {"name": "it", "namespace": "ns", "uid": "job-uid", "creationTimestamp": stamp(NOW)}
    return msgspec.convert({"metadata": meta, "spec": {**defaults, **spec}, "status": status or {}}, BatchJob)


class SimulatedBatchJob:
    """`sync` is one sync of the controller; the other methods are what users and nodes do."""

    def __init__(self, status: Any = None, **spec: Any) -> None:
        self.job = make_job(status, **spec)
        self.pods: dict[str, Pod] = {}
        self.now = NOW
        self.events: list[UserEvent] = []
        self.created = 0
        self.most_active = 0
        self.writes_left: int | None = None
        """Writes until the controller crashes."""
        self.requeue_after: float | None = None
        self._backoff = PodBackoff()
        self._numbers = itertools.count(1)

    # -- what is there

    @property
    def status(self) -> BatchJobStatus:
        return self.job.status

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if is_active(pod)]

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]

    @property
    def conditions(self) -> dict[str, str]:
        """Reasons of the conditions that hold."""
        return {each.type: each.reason for each in self.status.conditions if each.status == "True"}

    def indexes(self) -> list[int]:
        """Of the active pods."""
        key = "batch.kubernetes.io/job-completion-index"
        return sorted(int(pod.metadata.annotations[key]) for pod in self.active)

    def of_index(self, index: int) -> Pod:
        (pod,) = (
            pod
            for pod in self.active
            if pod.metadata.annotations["batch.kubernetes.io/job-completion-index"] == str(index)
        )
        return pod

    # -- what others do

    def change(self, **spec: Any) -> None:
        self.job.spec = msgspec.structs.replace(self.job.spec, **spec)

    def end(self, pod: Pod, code: int = 0, ago: float = 3600.0, **status: Any) -> None:
        """The pod's container ended some time ago."""
        ended = {"exitCode": code, "finishedAt": stamp(self.now - ago)}
        containers = [{"name": "main", "state": {"terminated": ended}}]
        content = {"phase": "Failed" if code else "Succeeded", "containerStatuses": containers, **status}
        pod.status = msgspec.convert(content, type(pod.status))

    def delete(self, pod: Pod) -> None:
        pod.metadata.deletion_timestamp = datetime.fromtimestamp(self.now, UTC)
        self._collect()

    def _collect(self) -> None:
        """Pods that are deleted and have no finalizer go."""
        self.pods = {
            uid: pod
            for uid, pod in self.pods.items()
            if is_tracked(pod) or pod.metadata.deletion_timestamp is None
        }

    # -- what the controller does

    def settle(self, rounds: int = 50) -> None:
        """Sync until nothing changes."""
        for _ in range(rounds):
            before = msgspec.json.encode([self.job.status, list(self.pods.values())])
            self.sync()
            if msgspec.json.encode([self.job.status, list(self.pods.values())]) == before:
                return
        raise AssertionError(f"still not settled: {self.job.status}")

    def sync_and_crash(self, writes: int) -> None:
        """A controller that ends after so many writes and forgets everything."""
        self.writes_left = writes
        with suppress(Crash):
            self.sync()
        self.writes_left = None
        self._backoff = PodBackoff()

    def sync(self) -> None:
        if self.job.finished is not None:
            return
        decision = reconcile(self._snapshot_job(), self._snapshot(), self._backoff, self.now)
        self.requeue_after = decision.requeue_after
        if decision.announcement is not None:
            self._write_status(decision.announcement)
        self._change_pods(decision)
        recorded = record(decision, self._snapshot(), self.now)
        released = []
        if recorded.tracking.release:
            self._write_status(recorded.status)
            for pod in recorded.tracking.release:
                self._release(pod)
                released.append(pod)
        self._backoff = decision.view.backoff
        finished = finish(decision, recorded, released, self.now)
        self._write_status(finished.status)
        self.events += [*recorded.events, *finished.events]

    def _snapshot(self) -> list[Pod]:
        return [msgspec.convert(msgspec.to_builtins(pod), Pod) for pod in self.pods.values()]

    def _snapshot_job(self) -> BatchJob:
        return msgspec.convert(msgspec.to_builtins(self.job), BatchJob)

    def _change_pods(self, decision: Decision) -> None:
        changes = decision.changes
        for new in changes.create:
            self._write()
            number = next(self._numbers)
            manifest = new_pod(self.job, new, number)
            manifest["metadata"] |= {"uid": f"uid-{number}", "creationTimestamp": stamp(self.now)}
            pod = msgspec.convert({**manifest, "status": {"phase": "Pending"}}, Pod)
            self.pods[pod.metadata.uid] = pod
            self.created += 1
        for pod in changes.remove:
            self._release(pod)
            self._delete(pod)
        for pod in changes.delete:
            self._delete(pod)
        self.most_active = max(self.most_active, len(self.active))

    def _delete(self, pod: Pod) -> None:
        self._write()
        if pod.metadata.uid in self.pods:
            self.delete(self.pods[pod.metadata.uid])

    def _release(self, pod: Pod) -> None:
        self._write()
        if pod.metadata.uid in self.pods:
            self.pods[pod.metadata.uid].metadata.finalizers = ()
            self._collect()

    def _write_status(self, status: BatchJobStatus) -> None:
        if msgspec.to_builtins(status) != msgspec.to_builtins(self.job.status):
            self._write()
            self.job.status = msgspec.convert(msgspec.to_builtins(status), BatchJobStatus)

    def _write(self) -> None:
        if self.writes_left is not None:
            if not self.writes_left:
                raise Crash
            self.writes_left -= 1
