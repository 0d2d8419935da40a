"""Commands in containers, attached containers and forwarded ports of real pods."""

from __future__ import annotations

import asyncio
import os

from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.pod_addresses import LOCAL
from stromboli.embedded.nodes.pod_streams import CommandNotStarted, CommandRequest, Socket, StreamRefused
from stromboli.embedded.nodes.real.attached_container import AttachedContainer
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.exec_process import ExecProcess
from stromboli.embedded.nodes.real.process_stdio import ProcessStdio

CONNECT_TIME = 5.0
"""Seconds for a connection to a port of a pod."""
READ_AHEAD = 64 * 1024
"""Bytes that are read from a port before the client of its connection reads."""


async def open_command(
    container: ContainerProcess, request: CommandRequest
) -> ExecProcess | AttachedContainer:
    """Start a command, or attach to the container's own process."""
    if not request.command:
        return AttachedContainer(container, request.stdin)
    if any("\0" in argument for argument in request.command):
        raise CommandNotStarted("a zero byte in the command")
    try:
        if request.tty:
            stdio = await ProcessStdio.pseudo_terminal()
        else:
            stdio = await ProcessStdio.pipes(stdin=request.stdin, stderr=True)
        return await ExecProcess.start(container, request.command, stdio)
    except (ContainerError, OSError) as error:
        raise CommandNotStarted(f"exec: {error}") from None


async def open_port(pod: NodePod, port: int) -> Socket:
    """All pods share the network of this machine, so a port of a pod is a port of the machine."""
    errors = []
    for host in (LOCAL, "::1"):
        try:
            async with asyncio.timeout(CONNECT_TIME):
                return await asyncio.open_connection(host, port, limit=READ_AHEAD)
        except TimeoutError:
            errors.append(f"{host}: no answer within {CONNECT_TIME:g} seconds")
        except OSError as error:
            errors.append(f"{host}: {os.strerror(error.errno).lower() if error.errno else error}")
    raise StreamRefused(
        f"error forwarding port {port} to pod {pod.name}, uid {pod.uid}: nothing listens on it ({', '.join(errors)})"
    )
