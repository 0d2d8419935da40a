"""What the webhook server knows of the cluster: its queues from a watch, and single objects on demand."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeVar, cast

import msgspec

from stromboli.admission.rules.admission_table import DELETE, Review
from stromboli.admission.rules.queue_jobs import unfinished_job
from stromboli.admission.rules.rule_context import Context, QueueIndex, Settings
from stromboli.admission.webhook_handler import AdmissionRequest, ContextUnknown
from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import Namespace, PodGroup, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.reflector import Reflector
from stromboli.kube.request import ApiError, NoResponse, Request

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", Namespace, Queue)

LOOKUP_TIMEOUT = 2.0
"""In seconds; the API server gives a webhook ten."""
SEARCH_TIMEOUT = 8.0
"""Seconds that the search for the jobs of a deleted queue may take."""
PAGE = 250
"""Objects that are read at a time."""
JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")


class _ListMeta(msgspec.Struct, gc=False):
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] = []


_read_page = msgspec.json.Decoder(_Page).decode


class ClusterContext:
    """The queues, and the settings in force."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self.settings = settings
        self.queues = QueueIndex()
        self.reflector = Reflector(client, RESOURCES[Queue], Queue, self)
        self._client = client

    async def context_for(self, review: Review, request: AdmissionRequest) -> Context:
        """The context for the rules of one review."""
        spec = request.object.get("spec") if isinstance(request.object, dict) else None
        if review.default is not None:
            return Context(self.queues, await self._namespace_queue(review, request, spec), self.settings)
        if review.resource.kind == "Queue" and request.operation == DELETE:
            return Context(self.queues, None, self.settings, await self._unfinished_job(request.old_object))
        for field in ("queue", "parent"):
            name = spec.get(field) if isinstance(spec, dict) else None
            if isinstance(name, str) and name and self.queues.get(name) is None:
                await self._read_queue(name)
        return Context(self.queues, None, self.settings)

    async def _namespace_queue(self, review: Review, request: AdmissionRequest, spec: Any) -> str | None:
        queue = spec.get("queue") if isinstance(spec, dict) else None
        if review.resource.kind != "PodGroup" or queue != names.DEFAULT_QUEUE or not request.namespace:
            return None
        namespace = await self._read(Namespace, request.namespace)
        return namespace.metadata.annotations.get(names.QUEUE_NAME) if namespace is not None else None

    async def _unfinished_job(self, queue: Any) -> str:
        """Find a job that needs a queue, among PodGroups first: they are smaller, and nearly every job has one."""
        meta = queue.get("metadata") if isinstance(queue, dict) else None
        name = meta.get("name") if isinstance(meta, dict) else None
        if not self.settings.queue_allocated_pods_check or not isinstance(name, str):
            return ""
        try:
            async with asyncio.timeout(SEARCH_TIMEOUT):
                for resource in (RESOURCES[PodGroup], JOBS):
                    if job := await self._search(name, resource):
                        return job
        except (ApiError, NoResponse, TimeoutError, msgspec.DecodeError) as error:
            problem = str(error) or "timed out"
            raise ContextUnknown(
                f"queue {name} cannot be deleted because its jobs cannot be listed: {problem}; try again later"
            ) from error
        return ""

    async def _search(self, queue: str, resource: Resource) -> str:
        """Read page after page until an object is found that needs the queue."""
        token = ""
        while True:
            try:
                page = _read_page(await self._client.list(resource, limit=PAGE, **{"continue": token}))
            except ApiError as error:
                if error.status == 404:  # the kind is not installed
                    return ""
                raise
            job = unfinished_job(queue, resource.kind, page.items)
            token = page.metadata.continue_
            if job or not token:
                return job

    async def _read_queue(self, name: str) -> None:
        """A queue that was created a moment ago may not have come by the watch yet."""
        queue = await self._read(Queue, name)
        if queue is not None and self.queues.get(name) is None:
            self.queues.put(queue)

    async def _read(self, kind: type[Kind], name: str) -> Kind | None:
        try:
            answer = await self._client.send(
                Request("GET", RESOURCES[kind].path(name=name)), timeout=LOOKUP_TIMEOUT
            )
            return decode_as(kind, answer)
        except (ApiError, NoResponse, BadObject, TimeoutError, msgspec.DecodeError) as error:
            if not isinstance(error, ApiError) or error.status != 404:
                log.warning("cannot look up %s %s: %s", kind.__name__, name, error)
            return None

    # -- what the reflector calls

    def put(self, obj: Object, new: bool) -> None:
        self.queues.put(cast(Queue, obj))

    def drop(self, obj: Object) -> None:
        self.queues.drop(obj.name)

    def unusable(self, problem: Any) -> None:
        log.warning("left out: %s", problem)

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)
