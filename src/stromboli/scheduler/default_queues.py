"""Creates the queues that must always exist, at the start (spec 05 10)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from stromboli.api import names
from stromboli.api.types.scheduling import Queue
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.request import Api, ApiError, NoResponse, Request

log = logging.getLogger(__name__)

QUEUES = RESOURCES[Queue]
ATTEMPTS = 60
TIMEOUT = 10.0


class NoQueues(Exception):
    """Why they could not be created."""


async def ensure_queues(
    api: Api, default: str, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Create `root` and the default queue if they are missing; `NoQueues` if that is refused for a minute."""
    for name, reclaimable in ((names.ROOT_QUEUE, False), (default, True)):
        for attempt in range(ATTEMPTS):
            try:
                if await _ensure(api, name, reclaimable):
                    log.info("made queue %s", name)
                break
            except (ApiError, NoResponse) as error:
                why = _explained(error)
                if attempt == ATTEMPTS - 1:
                    raise NoQueues(f"queue {name!r} can be neither found nor made: {why}") from None
                if attempt % 10 == 0:
                    log.warning("queue %s: %s; trying again", name, why)
                await sleep(1.0)


async def _ensure(api: Api, name: str, reclaimable: bool) -> bool:
    """Whether it had to be created."""
    try:
        await api.send(Request("GET", QUEUES.path(name=name)), TIMEOUT)
        return False
    except ApiError as error:
        if error.status != 404:
            raise
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"reclaimable": reclaimable, "weight": 1},
    }
    try:
        await api.send(Request("POST", QUEUES.path(), msgspec.json.encode(body)), TIMEOUT)
    except ApiError as error:
        if error.status != 409:
            raise
        return False
    return True


def _explained(error: Exception) -> str:
    if isinstance(error, ApiError) and error.status == 404:
        return "the API server knows no queues; install the CRDs with `kubectl apply -k deploy/crds`"
    return str(error)
