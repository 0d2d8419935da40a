"""The facts of a job or another gang: whose it is, where it is queued, how it may run."""

from __future__ import annotations

from typing import Any

from stromboli.api import names
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, name_of
from stromboli.cli.cluster.group_members import queue_of as queue_of_group
from stromboli.cli.cluster.object_output import NONE
from stromboli.cli.dashboard.pages.page_content import ViewRequest, address, job_address, queue_address
from stromboli.cli.dashboard.pages.page_elements import age, link, short_text
from stromboli.cli.dashboard.reading.gang_reading import GangReading
from stromboli.cli.job.job_columns import (
    duration_of,
    owner_of,
    queue_of,
    spec_of,
    status_of_job,
    whole_number,
)
from stromboli.embedded.tables.age_text import instant
from stromboli.simulator.reports.page.markup import element


def facts_of(request: ViewRequest, reading: GangReading) -> list[tuple[str, object]]:
    """What is shown of a job or another gang, by title."""
    subject = reading.subject
    metadata = subject.get("metadata") or {}
    created = instant(metadata.get("creationTimestamp")) or 0.0
    queue = queue_of(subject) if reading.job is not None else queue_of_group(subject)
    namespace = request.names["namespace"]
    entries: list[tuple[str, object]] = [
        ("Namespace", link(address("/jobs", namespace=namespace), namespace)),
        ("Queue", link(queue_address(queue), queue)),
        (
            "Created",
            element("span", age(created, request.now), f" ago, {metadata.get('creationTimestamp') or '-'}"),
        ),
        ("Priority class", spec_of(subject).get("priorityClassName") or "-"),
        ("Owner", _owner(request, reading)),
        ("Time limit", (metadata.get("annotations") or {}).get(names.TIME_LIMIT) or "none"),
        ("Topology", topology_text(spec_of(subject).get("networkTopology"))),
    ]
    if reading.job is not None:
        entries += _job_facts(reading.job)
    if reading.job is not None and reading.group is not None:
        target = job_address(namespace, name_of(reading.group), "podgroup")
        entries.append(("PodGroup", link(target, short_text(name_of(reading.group), 80))))
    return [(title, short_text(value) if isinstance(value, str) else value) for title, value in entries]


def _job_facts(job: Manifest) -> list[tuple[str, object]]:
    spec = spec_of(job)
    ttl = spec.get("ttlSecondsAfterFinished")
    retries = whole_number(status_of_job(job).get("retryCount"))
    return [
        ("Run time", _run_time(job)),
        ("Retries", f"{retries} of {whole_number(spec.get('maxRetry'))}"),
        ("Scheduler", str(spec.get("schedulerName") or "-")),
        ("Plugins", ", ".join(sorted(map(str, spec.get("plugins") or ()))) or "-"),
        ("Kept after its end", "for ever" if ttl is None else f"{ttl} seconds"),
    ]


def _run_time(job: Manifest) -> str:
    known = duration_of(job)
    return "-" if known == NONE else known


def _owner(request: ViewRequest, reading: GangReading) -> object:
    """What made it; a Job of Volcano's has a page."""
    owner = (
        owner_of(reading.subject) if (reading.subject.get("metadata") or {}).get("ownerReferences") else "-"
    )
    kind, _, name = owner.partition("/")
    namespace = request.names["namespace"]
    if kind == JOBS.kind and f"{namespace}/{name}" in request.records.jobs:
        return link(job_address(namespace, name), short_text(owner, 80))
    return owner


def topology_text(wanted: Any) -> str:
    """Within how much of the network its pods must be."""
    if not isinstance(wanted, dict) or not wanted:
        return "anywhere"
    tier = wanted.get("highestTierName") or wanted.get("highestTierAllowed")
    within = f" within tier {tier}" if tier is not None else ""
    return f"{wanted.get('mode') or 'hard'}{within}"
