"""What a sweep asks of an API server: its Job, the inputs, the pods with their logs, and its claim."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from stromboli.api import names
from stromboli.api.predecessors import ENDED
from stromboli.cli.cluster.cluster_kinds import JOBS, NODES, PODS
from stromboli.cli.following.job_wait import phase_of
from stromboli.kube.api_client import Client, with_query
from stromboli.kube.api_resources import Resource, resource_of
from stromboli.kube.request import ApiError, NoResponse, Request
from stromboli.simulator.sweeps.cluster_job import RUNS_ANNOTATION, Manifest

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
LOG_LINES = 20
LOG_BYTES = 16 * 1024
DELETION_SECONDS = 60.0


class JobNotDeleted(ApiError):
    """A Job of an earlier sweep does not go away."""


class SweepJobRequests:
    """Requests about one Job."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.client = client
        self.namespace = namespace
        self.name = name

    async def job(self) -> Manifest | None:
        return await self._get(JOBS, self.name)

    async def running_job(self) -> Manifest | None:
        """The Job, if it is there and has not ended."""
        job = await self.job()
        if job is None or job["metadata"].get("deletionTimestamp") or phase_of(job) in ENDED:
            return None
        return job

    async def create(self, manifests: list[Manifest]) -> None:
        """Create the Job with its inputs, in the place of one that has ended; the inputs go with the Job."""
        await self._delete_job()
        owned = []
        for manifest in manifests:
            resource = resource_of(manifest)
            with suppress(ApiError):
                await self.client.delete(resource, self.name, self.namespace)
            body = await self.client.create(resource, manifest, self.namespace)
            if resource != JOBS:
                owned.append(resource)
            else:
                await self._own(owned, msgspec.json.decode(body))

    async def _own(self, resources: list[Resource], job: Manifest) -> None:
        owner = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "name": self.name,
            "uid": job["metadata"]["uid"],
        }
        for resource in resources:
            patch = {"metadata": {"ownerReferences": [owner]}}
            await self.client.patch(resource, self.name, patch, self.namespace)

    async def _delete_job(self) -> None:
        if await self.job() is None:
            return
        with suppress(ApiError):
            await self.client.delete(JOBS, self.name, self.namespace, {"propagationPolicy": "Background"})
        for _ in range(int(DELETION_SECONDS / 0.5)):
            if await self.job() is None and not await self.pods():
                return
            await asyncio.sleep(0.5)
        raise JobNotDeleted(
            409,
            "Conflict",
            f"the Job {self.name} of an earlier sweep does not go away; delete it and its pods",
        )

    async def pods(self) -> list[Manifest]:
        """The pods of the Job."""
        selector = f"{names.JOB_NAME}={self.name}"
        body = await self.client.list(PODS, self.namespace, labelSelector=selector)
        items: list[Manifest] = msgspec.json.decode(body).get("items") or []
        return items

    async def log_end(self, pod: str) -> str:
        """The last lines that a pod has printed; nothing if there is no log yet."""
        path = with_query(
            PODS.path(self.namespace, pod, "log"), {"tailLines": LOG_LINES, "limitBytes": LOG_BYTES}
        )
        try:
            return (await self.client.send(Request("GET", path))).decode(errors="replace")
        except (ApiError, NoResponse):
            return ""

    async def has_nodes(self, labels: Mapping[str, str]) -> bool:
        """Whether the cluster has a node with such labels."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        body = await self.client.list(NODES, labelSelector=selector, limit=1)
        return bool(msgspec.json.decode(body).get("items"))

    async def claim(self, name: str) -> Manifest | None:
        return await self._get(CLAIMS, name)

    async def volume(self, name: str) -> Manifest | None:
        return await self._get(VOLUMES, name)

    async def _get(self, resource: Resource, name: str) -> Manifest | None:
        namespace = self.namespace if resource.namespaced else ""
        try:
            found: Manifest = msgspec.json.decode(await self.client.get(resource, name, namespace))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found


def runs_of(job: Manifest) -> int:
    """How many runs a Job was created for."""
    text = (job["metadata"].get("annotations") or {}).get(RUNS_ANNOTATION, "")
    return int(text) if text.isdecimal() else 0
