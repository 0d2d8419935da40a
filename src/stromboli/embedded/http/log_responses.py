"""Container logs: read from the nodes, and streamed to the client."""

from __future__ import annotations

import time
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any

from aiohttp import HttpVersion11, web

from stromboli.daemon.request_connection import stream
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.query_parameters import Query, read_flag, read_number
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.nodes.pod_logs import LogQuery, LogSource
from stromboli.embedded.store.records import Record


async def send_log(
    request: web.BaseRequest, source: LogSource | None, record: Record, query: Query
) -> web.StreamResponse:
    """The log of one container, to its end; with `follow` as long as the client reads."""
    pod = record.object()
    name = record.key.name
    if not (pod.get("spec") or {}).get("nodeName"):
        return web.Response(status=204)
    container = container_name(pod, name, query.get("container", ""))
    if source is None:
        raise StatusError(500, f"Internal error occurred: nobody here runs pods, so {name} has no log")
    previous = read_flag(query, "previous")
    log_query = LogQuery(
        container,
        read_flag(query, "follow"),
        previous,
        read_flag(query, "timestamps"),
        read_number(query, "tailLines"),
        _since(query),
    )
    chunks = source.log(record.key.namespace, name, log_query)
    if chunks is None:
        if previous:
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        raise bad_request(f'container "{container}" in pod "{name}" is {_stage(pod, container)}')
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    if request.version >= HttpVersion11:
        response.enable_chunked_encoding()
    left = read_number(query, "limitBytes")
    async with aclosing(chunks):
        with suppress(ConnectionError):  # the client left
            if log_query.follow:
                stream(request)
            await response.prepare(request)
            async for chunk in chunks:
                await response.write(chunk if left is None else chunk[:left])
                left = None if left is None else left - len(chunk)
                if left is not None and left <= 0:
                    break
            await response.write_eof()
    return response


def container_name(pod: dict[str, Any], name: str, requested: str) -> str:
    """The container that is asked for: the only one if none is named."""
    spec = pod.get("spec") or {}
    names = [str(container.get("name")) for container in spec.get("containers") or ()]
    init_names = [str(container.get("name")) for container in spec.get("initContainers") or ()]
    if requested:
        if requested not in (*names, *init_names):
            raise bad_request(f"container {requested[:253]} is not valid for pod {name}")
        return requested
    if len(names) != 1:
        listed = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    return names[0]


def _stage(pod: dict[str, Any], container: str) -> str:
    """Why a container has no log, by its status, in a kubelet's words."""
    status = pod.get("status") or {}
    for each in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        if each.get("name") == container:
            state = each.get("state") or {}
            if state.get("terminated"):
                return "terminated"
            reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
            return f"waiting to start: {reason}"
    return "waiting to start: ContainerCreating"


def _since(query: Query) -> float | None:
    seconds = read_number(query, "sinceSeconds")
    if seconds is not None:
        return time.time() - seconds
    text = query.get("sinceTime", "")
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise bad_request(f'sinceTime: Invalid value: "{text[:100]}": must be a time') from None
