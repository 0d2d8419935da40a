"""What the webhook server knows of the cluster: its queues from a watch, and single objects on demand."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypeVar, cast

import msgspec

from stromboli.admission.rules.admission_table import Review
from stromboli.admission.rules.rule_context import Context, QueueIndex, Settings
from stromboli.admission.webhook_handler import AdmissionRequest
from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import Namespace, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.reflector import Reflector
from stromboli.kube.request import ApiError, NoResponse, Request

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", Namespace, Queue)

LOOKUP_TIMEOUT = 2.0
"""In seconds; the API server gives a webhook ten."""


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
