"""What is submitted, as an API server would take it: admitted, without status, created now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from stromboli.admission.rules.rule_context import QueueIndex
from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject, InputProblem, Unreadable
from stromboli.api.manifests.manifest_sources import Source, find_files, read_sources
from stromboli.api.manifests.object_defaults import FIRST_CREATION
from stromboli.api.types.kinds import CLUSTER_SCOPED, WORKLOADS, kind_of
from stromboli.api.types.scheduling import Queue
from stromboli.controllers.workloads.workload_pods import name_suffix
from stromboli.model.cluster import Cluster
from stromboli.simulator.expansion.observed_objects import ObservedObjects
from stromboli.simulator.expansion.submission import admitted

Manifest = dict[str, Any]
MOST_SUBMITTED = 10_000
"""Objects that are submitted together, at most."""
SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
)
"""Metadata that an API server sets, whatever a manifest says."""


class Refused(ValueError):
    """What is submitted cannot be: the message names the object, what is wrong, and the remedy."""

    def __init__(self, problems: Iterable[InputProblem | str]) -> None:
        super().__init__("\n".join(map(str, problems)))


def read_submitted(paths: Sequence[str]) -> list[Source]:
    """The objects of files, folders and standard input, as they are written."""
    sources: list[Source] = []
    for path in paths:
        try:
            for file in find_files(path):
                sources += read_sources(file)
        except Unreadable as error:
            raise Refused([InputProblem(path, str(error))]) from None
    if len(sources) > MOST_SUBMITTED:
        raise Refused([f"{len(sources)} objects are submitted; at most {MOST_SUBMITTED} are taken together"])
    return sources


class Submission:
    """Objects on their way into a cluster."""

    def __init__(self, cluster: Cluster, now: float, objects: int, namespace: str = "") -> None:
        """`objects`: how many the cluster has; what is submitted is younger than all of them."""
        self._cluster = cluster
        self._namespace = namespace or names.DEFAULT_NAMESPACE
        oldest = FIRST_CREATION + timedelta(seconds=objects + 1)
        self._created = max(datetime.fromtimestamp(now, UTC), oldest)
        self._observed = ObservedObjects()
        self._observed.queues = QueueIndex(
            queue.object for queue in cluster.queues.values() if queue.object is not None
        )

    def prepare(self, sources: Sequence[Source]) -> list[Source]:
        """The objects as the cluster takes them; `Refused` with everything that is wrong."""
        problems: list[InputProblem | str] = []
        prepared: list[Source] = []
        for source in sorted(sources, key=_queues_first):
            try:
                prepared.append(Source(source.file, source.position, self._prepare(source), of_case=False))
            except BadObject as error:
                problems.append(InputProblem.of(source.where, error))
        if problems:
            raise Refused(problems)
        return prepared

    def _prepare(self, source: Source) -> bytes:
        try:
            content = msgspec.json.decode(source.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadObject("", f"cannot be read: {error}") from None
        if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
            raise BadObject("kind", "is missing: a manifest of a Kubernetes object is expected")
        content = self._as_new(content, source.where)
        version, kind = str(content.get("apiVersion") or ""), content["kind"]
        group = version.rpartition("/")[0]
        subject = f"{kind} {self._key(content)}"
        if (group, kind) in WORKLOADS:
            self._check_new(kind, content, subject)
            return msgspec.json.encode(content)
        try:
            content = admitted(group, kind, content, self._observed)
        except BadObject as error:
            raise error.of(subject) from None
        if kind_of(version, kind) is Queue:
            queue = decode(content)
            assert queue is not None
            self._observed.see(queue)
        return msgspec.json.encode(content)

    def _as_new(self, content: Manifest, where: str) -> Manifest:
        """A copy with a name and a namespace, and nothing of what only a server may set."""
        given = content.get("metadata")
        meta = (
            {key: value for key, value in (given or {}).items() if key not in SERVER_FIELDS}
            if isinstance(given, dict)
            else {}
        )
        prefix = meta.get("generateName")
        if not meta.get("name") and isinstance(prefix, str) and prefix:
            meta["name"] = prefix + name_suffix(where)
        if not isinstance(meta.get("name"), str):
            raise BadObject("metadata.name", "is missing", content["kind"])
        if kind_of(str(content.get("apiVersion") or ""), content["kind"]) not in CLUSTER_SCOPED:
            meta["namespace"] = meta.get("namespace") or self._namespace
        meta["creationTimestamp"] = self._created.isoformat()
        self._created += timedelta(microseconds=1)
        return {**{key: value for key, value in content.items() if key != "status"}, "metadata": meta}

    def _check_new(self, kind: str, content: Manifest, subject: str) -> None:
        """A workload of the cluster cannot be submitted again: its PodGroup names it as its owner."""
        meta = content["metadata"]
        for job in self._cluster.jobs.values():
            owner = job.owner
            if owner is not None and (owner.kind, owner.name, job.namespace) == (
                kind,
                meta["name"],
                meta["namespace"],
            ):
                raise BadObject(
                    "metadata.name",
                    f"it is in the cluster already (PodGroup {job.key}); give it another name",
                    subject,
                )

    @staticmethod
    def _key(content: Manifest) -> str:
        meta = content["metadata"]
        return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _queues_first(source: Source) -> bool:
    """Queues come before what names them."""
    return b'"Queue"' not in bytes(source.raw)
