"""One large job: what a look at it costs after one of its pods changed. No API server is needed for that."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from bench.jobs import NAMESPACE, manifest
from bench.run import table
from stromboli.api.types.controlled_pod import Pod, PodStatus
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.job_pods import Member, pod_of
from stromboli.controllers.job.observed_state import ObservedState
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.controllers.job.pod_summary import PodSummary
from stromboli.controllers.job.reconcile import reconcile
from stromboli.controllers.job.tracked_pods import TrackedPods

SIZES = (1_000, 10_000)
"""Pods of the job."""


class Look(Struct):
    """What a look at a large job costs after one of its pods changed, in milliseconds of processor time."""

    pods: int
    kept_up: float
    """With a summary of the pods that is kept up."""
    full: float
    """With one that is counted from scratch."""


def look(count: int, rounds: int = 20) -> Look:
    """The best of some rounds, without an API server: the change of a pod, and the reconcile that follows."""
    job, pods, base = _large_job(count)
    tracked = TrackedPods(time.time)
    tracked.observe(job, pods.values, pods.get)
    kept_up, full = [], []
    for index in range(rounds):
        before = pods[f"large-worker-{index}"]
        now = pods[before.name] = msgspec.structs.replace(before, status=PodStatus(phase="Succeeded"))
        begin = time.process_time()
        tracked.stored(before, now)
        reconcile(replace(base, pods=tracked.observe(job, pods.values, pods.get)))
        kept_up.append(time.process_time() - begin)
        begin = time.process_time()
        reconcile(replace(base, pods=PodSummary.of(job, pods.values())))
        full.append(time.process_time() - begin)
    return Look(count, min(kept_up) * 1000, min(full) * 1000)


def _large_job(count: int) -> tuple[Job, dict[str, Pod], ObservedState]:
    whole = manifest("large")
    whole["metadata"] |= {"uid": "u", "namespace": NAMESPACE}
    whole["spec"]["tasks"][0]["replicas"] = count
    whole["status"] = {"state": {"phase": "Running"}}
    job = msgspec.convert(whole, Job)
    made = [pod_of(Member(job, job.spec.tasks[0], index)) for index in range(count)]
    pods = {
        pod["metadata"]["name"]: msgspec.convert({**pod, "status": {"phase": "Running"}}, Pod) for pod in made
    }
    for number, pod in enumerate(pods.values()):
        pod.metadata.uid = f"p{number}"
    group = msgspec.convert(
        {"metadata": {"name": "large", "uid": "g"}, "status": {"phase": "Running"}}, PodGroup
    )
    queue = msgspec.convert({"metadata": {"name": "default"}}, Queue)
    observed = ObservedState(
        job=job, now=datetime.now(UTC), plugins=JobPlugins(), pods=PodSummary(job), group=group, queue=queue
    )
    return job, dict(pods), replace(observed, cache=reconcile(observed).cache)


def report(results: list[Look], markdown: bool = False) -> str:
    head = ["pods", "kept up ms", "from scratch ms"]
    body = [[f"{result.pods:,}", f"{result.kept_up:.2f}", f"{result.full:.1f}"] for result in results]
    title = "a look at one job after one of its pods changed: the counts kept up, and all pods counted again"
    return "\n".join([title, "", *table([head, *body], markdown)])
