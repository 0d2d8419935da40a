"""What the webhook server knows of the cluster: its queues, kept up by a watch, and now and then a look."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from stromboli.admission.rules.admission_table import Review
from stromboli.admission.rules.rule_context import Context, KnownQueues, Settings
from stromboli.admission.webhook_handler import Request
from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import Namespace, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.reflector import Reflector
from stromboli.kube.request import ApiError, NoResponse
from stromboli.kube.request import Request as Ask

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds for a look; the API server waits ten for all of us."""


class Surroundings:
    """The queues, and the settings in force."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self.settings = settings
        self.queues = KnownQueues()
        self.reflector = Reflector(client, RESOURCES[Queue], Queue, self)
        self._client = client

    async def around(self, review: Review, request: Request) -> Context:
        """What the rules of a review may know."""
        spec = request.object.get("spec") if isinstance(request.object, dict) else None
        if review.default is not None:
            return Context(self.queues, await self._queue_of_namespace(review, request, spec), self.settings)
        for field in ("queue", "parent"):
            name = spec.get(field) if isinstance(spec, dict) else None
            if isinstance(name, str) and name and self.queues.get(name) is None:
                await self._look_for_queue(name)
        return Context(self.queues, None, self.settings)

    async def _queue_of_namespace(self, review: Review, request: Request, spec: Any) -> str | None:
        queue = spec.get("queue") if isinstance(spec, dict) else None
        if review.resource.kind != "PodGroup" or queue != names.DEFAULT_QUEUE or not request.namespace:
            return None
        found = await self._look(Namespace, request.namespace)
        return found.metadata.annotations.get(names.QUEUE_NAME) if found is not None else None

    async def _look_for_queue(self, name: str) -> None:
        """A queue that was made a moment ago may not have been heard of yet."""
        found = await self._look(Queue, name)
        if isinstance(found, Queue) and self.queues.get(name) is None:
            self.queues.put(found)

    async def _look(self, kind: type[Object], name: str) -> Object | None:
        try:
            answer = await self._client.send(Ask("GET", RESOURCES[kind].path(name=name)), timeout=PATIENCE)
            return decode_as(kind, answer)
        except (ApiError, NoResponse, BadObject, TimeoutError, msgspec.DecodeError) as error:
            if not isinstance(error, ApiError) or error.status != 404:
                log.warning("cannot look up %s %s: %s", kind.__name__, name, error)
            return None

    # -- a sink of news

    def put(self, thing: Object, new: bool) -> None:
        if isinstance(thing, Queue):
            self.queues.put(thing)

    def drop(self, thing: Object) -> None:
        self.queues.drop(thing.name)

    def unusable(self, problem: Any) -> None:
        log.warning("left out: %s", problem)

    async def wait_for_room(self) -> None:
        await asyncio.sleep(0)
