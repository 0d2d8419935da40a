"""What containers print: asked for from whoever runs them, and passed on as it comes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aiohttp import web

from stromboli.embedded.kinds.status_errors import Refusal, bad_request
from stromboli.embedded.nodes.pod_logs import LogQuery, LogSource
from stromboli.embedded.store.records import Record

_TRUE = ("true", "1", "t", "True")


async def send_log(
    request: web.BaseRequest, source: LogSource | None, record: Record, query: Mapping[str, str]
) -> web.StreamResponse:
    """The log of one container, to its end, or as long as somebody reads."""
    pod = record.object()
    name = record.key.name
    if not (pod.get("spec") or {}).get("nodeName"):
        return web.Response(status=204)
    container = _container(pod, name, query.get("container", ""))
    if source is None:
        raise Refusal(500, f"Internal error occurred: nobody here runs pods, so {name} has no log")
    previous = query.get("previous", "") in _TRUE
    wanted = LogQuery(
        container,
        query.get("follow", "") in _TRUE,
        previous,
        query.get("timestamps", "") in _TRUE,
        _number(query, "tailLines"),
        _since(query),
    )
    pieces = source.log(record.key.namespace, name, wanted)
    if pieces is None:
        if previous:
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        reason = _waits_for(pod, container)
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    left = _number(query, "limitBytes")
    try:
        await response.prepare(request)
        async for piece in pieces:
            await response.write(piece if left is None else piece[:left])
            left = None if left is None else left - len(piece)
            if left is not None and left <= 0:
                break
        await response.write_eof()
    except ConnectionError:
        pass  # the reader left
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()
    return response


def _container(pod: dict[str, Any], name: str, asked: str) -> str:
    spec = pod.get("spec") or {}
    names = [str(one.get("name")) for one in spec.get("containers") or ()]
    others = [str(one.get("name")) for one in spec.get("initContainers") or ()]
    if asked:
        if asked not in (*names, *others):
            raise bad_request(f"container {asked[:253]} is not valid for pod {name}")
        return asked
    if len(names) != 1:
        listed = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    return names[0]


def _waits_for(pod: dict[str, Any], container: str) -> str:
    """Why a container does not run yet, as its status says."""
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        if one.get("name") == container:
            return str(((one.get("state") or {}).get("waiting") or {}).get("reason") or "ContainerCreating")
    return "ContainerCreating"


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not text.isdecimal() or len(text) > 15:
        raise bad_request(f'{name}: Invalid value: "{text[:100]}": must be a number, at least 0')
    return int(text)


def _since(query: Mapping[str, str]) -> float | None:
    seconds = _number(query, "sinceSeconds")
    if seconds is not None:
        return time.time() - seconds
    text = query.get("sinceTime", "")
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise bad_request(f'sinceTime: Invalid value: "{text[:100]}": must be a time') from None
