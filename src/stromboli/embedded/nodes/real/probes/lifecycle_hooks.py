"""The lifecycle hooks of containers: `postStart` and `preStop`."""

from __future__ import annotations

import asyncio

from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.probes import http_get
from stromboli.embedded.nodes.real.probes.probe_handlers import (
    MAX_OUTPUT,
    HandlerError,
    execute,
    http_request,
)

HTTP_TIMEOUT = 60.0
"""Seconds for the response to a hook's request; hooks have no timeout of their own."""


def lifecycle_hook(spec: Content, name: str) -> Content | None:
    """The hook of a container, `postStart` or `preStop`."""
    return (spec.get("lifecycle") or {}).get(name) or None


async def run_hook(hook: Content, spec: Content, process: ContainerProcess) -> None:
    """Run a hook to its end; `HandlerError` says why it failed."""
    if hook.get("exec") is not None:
        code, output = await execute(hook["exec"], process, None)
        if code:
            raise HandlerError(f"command exited with {code}: {output}")
    elif hook.get("httpGet") is not None:
        try:  # as for kubelets, any response will do
            await http_request(hook["httpGet"], spec).send(HTTP_TIMEOUT, MAX_OUTPUT)
        except http_get.RequestFailed as error:
            raise HandlerError(str(error)) from None
    elif hook.get("sleep") is not None:
        await asyncio.sleep(float(hook["sleep"].get("seconds") or 0))
    else:
        raise HandlerError("no handler that hooks may have: exec, httpGet or sleep")
