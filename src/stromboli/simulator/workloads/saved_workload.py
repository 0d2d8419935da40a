"""Workloads as files of ours: all that a workload holds, read back equal.

As YAML it is one document. As JSON lines it begins with a line about the workload, and a line follows for every node,
object and job; traces of any length are read and written so.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from math import inf, isfinite
from typing import Annotated, Any, cast

import msgspec
import yaml
from msgspec import Meta, Struct

from stromboli.simulator.workloads.generator_schema import API_VERSION
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.simulator.workloads.time_spans import LONGEST_SPAN

WORKLOAD = "Workload"
MAX_SAVED_JOBS = 5_000_000
"""Jobs of a saved workload."""

Seconds = Annotated[float, Meta(ge=0, le=LONGEST_SPAN)]


class SavedJob(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """A job as it is saved; what is left out has the default."""

    name: str
    submit_time: Seconds
    run_time: Seconds | None = None
    """None: it never ends."""
    pods: Annotated[int, Meta(ge=1, le=100_000)] = 1
    minimum: Annotated[int, Meta(ge=0)] | None = None
    requests: dict[str, int | str] = {}
    time_limit: Seconds | None = None
    queue: str = ""
    user: str = ""
    namespace: str = "default"
    priority: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: dict[str, Any] = {}
    running_on: tuple[str, ...] = ()


class SavedWorkload(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """A workload as a document, or without its lists the first of its lines."""

    api_version: str
    kind: str
    name: str
    notes: tuple[str, ...] = ()
    nodes: tuple[dict[str, Any], ...] = ()
    objects: tuple[dict[str, Any], ...] = ()
    jobs: Annotated[tuple[SavedJob, ...], Meta(max_length=MAX_SAVED_JOBS)] = ()


class SavedLine(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line after the first: one of these."""

    node: dict[str, Any] | None = None
    object: dict[str, Any] | None = None
    job: SavedJob | None = None


def restored(saved: SavedWorkload) -> Workload:
    """The workload that was saved; jobs are put into the order of their submission."""
    jobs = sorted(map(_restored_job, saved.jobs), key=lambda job: job.submit_time)
    return Workload(saved.name, tuple(jobs), saved.nodes, saved.objects, saved.notes)


def joined(head: SavedWorkload, lines: Iterable[SavedLine]) -> SavedWorkload:
    """A workload from its first line and those that follow."""
    nodes, objects, jobs = list(head.nodes), list(head.objects), list(head.jobs)
    for line in lines:
        if line.job is not None:
            jobs.append(line.job)
        elif line.node is not None:
            nodes.append(line.node)
        elif line.object is not None:
            objects.append(line.object)
    return msgspec.structs.replace(head, nodes=tuple(nodes), objects=tuple(objects), jobs=tuple(jobs))


def write_json_lines(workload: Workload, path: str) -> None:
    """Write it as JSON lines, compressed if the name ends with `.gz`."""
    with open(path, "wb") as file:
        if not path.endswith(".gz"):
            file.writelines(_encoded_lines(workload))
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
            compressed.writelines(_encoded_lines(workload))


def _encoded_lines(workload: Workload) -> Iterator[bytes]:
    return (msgspec.json.encode(line) + b"\n" for line in _lines(workload))


def write_yaml(workload: Workload, path: str) -> None:
    """Write it as a YAML document for people to read and change."""
    document = SavedWorkload(
        API_VERSION,
        WORKLOAD,
        workload.name,
        workload.notes,
        workload.nodes,
        workload.objects,
        tuple(map(_saved_job, workload.jobs)),
    )
    with open(path, "w", encoding="utf-8") as file:
        yaml.dump(
            msgspec.to_builtins(document), file, _Dumper, sort_keys=False, allow_unicode=True, width=120
        )


class _Dumper(yaml.CSafeDumper):
    """Repeats values instead of using anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _lines(workload: Workload) -> Iterator[SavedWorkload | SavedLine]:
    yield SavedWorkload(API_VERSION, WORKLOAD, workload.name, workload.notes)
    yield from (SavedLine(node=node) for node in workload.nodes)
    yield from (SavedLine(object=object) for object in workload.objects)
    yield from (SavedLine(job=_saved_job(job)) for job in workload.jobs)


def _saved_job(job: SubmittedJob) -> SavedJob:
    return SavedJob(
        job.name,
        job.submit_time,
        job.run_time if isfinite(job.run_time) else None,
        job.pods,
        job.minimum,
        _plain(job.requests),
        job.time_limit,
        job.queue,
        job.user,
        job.namespace,
        job.priority,
        _plain(job.labels),
        _plain(job.annotations),
        _plain(job.spec),
        job.running_on,
    )


def _restored_job(saved: SavedJob) -> SubmittedJob:
    return SubmittedJob(
        saved.name,
        saved.submit_time,
        inf if saved.run_time is None else saved.run_time,
        saved.pods,
        saved.minimum,
        saved.requests,
        saved.time_limit,
        saved.queue,
        saved.user,
        saved.namespace,
        saved.priority,
        saved.labels,
        saved.annotations,
        saved.spec,
        saved.running_on,
    )


def _plain(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return mapping if isinstance(mapping, dict) else cast("dict[str, Any]", dict(mapping))
