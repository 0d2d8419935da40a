"""Questions to small clusters, at noon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.manifests.manifest_sources import Source
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.simulator.job_manifests import job_manifests
from stromboli.simulator.what_if.present_cluster import PresentCluster
from stromboli.simulator.what_if.what_if_answer import Answer, SubmittedJobAnswer, WhatIf

Manifest = dict[str, Any]
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
NOW = NOON.timestamp()
HOUR = 3600.0
MINUTE = 60.0
LIMIT = "stromboli.sh/time-limit"
CATALOG = load_catalog()
GANGS = (
    'actions: "enqueue, allocate, backfill"\n'
    "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]"
)
EASY = (
    'actions: "allocate"\n'
    "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: backfill-reservation}]}]"
)
PREEMPTION = (
    'actions: "enqueue, allocate, preempt, backfill"\n'
    "tiers: [{plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]},"
    " {plugins: [{name: predicates}]}]"
)


def limited(limit: str) -> dict[str, str]:
    return {LIMIT: limit}


def running(name: str, on: str, minutes: float = 0, limit: str = "", **terms: Any) -> list[Manifest]:
    """A job that has run on these nodes for some minutes."""
    annotations = limited(limit) if limit else {}
    nodes = on.split()
    manifests = job_manifests(name, pods=len(nodes), running_on=nodes, annotations=annotations, **terms)
    for manifest in manifests:
        if manifest["kind"] == "Pod":
            since = NOON - timedelta(minutes=minutes)
            manifest["status"]["startTime"] = since.isoformat().replace("+00:00", "Z")
    return manifests


def waiting(name: str, limit: str = "", **terms: Any) -> list[Manifest]:
    return job_manifests(name, annotations=limited(limit) if limit else {}, **terms)


def sources(manifests: list[Manifest], file: str) -> list[Source]:
    return [
        Source(file, position, msgspec.json.encode(manifest), of_case=False)
        for position, manifest in enumerate(manifests)
    ]


def question(
    cluster: list[Manifest], submitted: list[Manifest], policy: str = GANGS, assumed: float | None = None
) -> WhatIf:
    present = PresentCluster("cluster.yaml", lambda _: sources(cluster, "cluster.yaml"), NOW)
    in_force = load_policy(policy, CATALOG, "policy.yaml")
    choice = (in_force, in_force.source_name)
    return WhatIf(present, sources(submitted, "job.yaml"), lambda _: choice, CATALOG, assumed)


def ask(
    cluster: list[Manifest], submitted: list[Manifest], policy: str = GANGS, assumed: float | None = None
) -> Answer:
    return question(cluster, submitted, policy, assumed).answer()


def only(answer: Answer) -> SubmittedJobAnswer:
    (job,) = answer.jobs
    return job


def run_time(duration: str) -> dict[str, str]:
    return {names.RUN_TIME: duration}
