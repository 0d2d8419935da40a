"""Commands in containers, attached containers and forwarded ports: requested by the API server, provided by nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from stromboli.embedded.nodes.node_types import NodePod


class StreamRefused(Exception):
    """What was requested is not possible; the text is for the user."""


class CommandNotStarted(Exception):
    """There is no such command, or it cannot be run; the text is for the user."""


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """A command to run in a container (`kubectl exec`), or its own process to be attached to."""

    container: str
    command: tuple[str, ...] = ()
    """Empty to attach."""
    stdin: bool = False
    tty: bool = False


class Output(Protocol):
    async def read(self) -> bytes:
        """The next piece; empty at the end."""


class Input(Protocol):
    async def write(self, piece: bytes) -> bool:
        """Returns once there is room for more; False if nobody reads any more."""

    def end(self) -> None: ...


class Stdio(Protocol):
    """Standard input and output of a process."""

    @property
    def stdin(self) -> Input | None: ...

    @property
    def stdout(self) -> Output: ...

    @property
    def stderr(self) -> Output | None:
        """None if it goes where the output goes."""

    def resize(self, rows: int, columns: int) -> None:
        """The size of the terminal, if there is one."""


class RemoteProcess(Protocol):
    """A process and who uses it; a command that still runs at the end is ended, an attached container is left."""

    @property
    def stdio(self) -> Stdio: ...

    async def wait(self) -> int:
        """The exit code; `StreamRefused` if the process cannot be followed any longer."""


Remote = AbstractAsyncContextManager[RemoteProcess]
Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class StreamRuntime(Protocol):
    """Connects to the processes of the pods that it runs."""

    def check_streams(self, pod: NodePod, container: str) -> None:
        """`StreamRefused` if the pod, or its container if one is named, runs no processes."""

    async def open_command(self, pod: NodePod, request: CommandRequest) -> Remote:
        """`StreamRefused` or `CommandNotStarted` if that is not possible."""

    async def open_port(self, pod: NodePod, port: int) -> Socket:
        """A connection to a port of the pod; `StreamRefused` if nobody listens there."""


FindPod = Callable[[str, str], tuple[StreamRuntime, NodePod] | None]
"""A pod by namespace and name, and who runs it."""


class PodStreams:
    """Streams of the pods that the node service runs; an API server starts before its nodes."""

    def __init__(self) -> None:
        self._find: FindPod = lambda namespace, name: None

    def connect(self, find: FindPod) -> None:
        self._find = find

    def check(self, namespace: str, name: str, container: str = "") -> None:
        """`StreamRefused` if the pod, or its container if one is named, runs no processes."""
        runtime, pod = self._running(namespace, name)
        runtime.check_streams(pod, container)

    async def open_command(self, namespace: str, name: str, request: CommandRequest) -> Remote:
        runtime, pod = self._running(namespace, name)
        return await runtime.open_command(pod, request)

    async def open_port(self, namespace: str, name: str, port: int) -> Socket:
        runtime, pod = self._running(namespace, name)
        return await runtime.open_port(pod, port)

    def _running(self, namespace: str, name: str) -> tuple[StreamRuntime, NodePod]:
        running = self._find(namespace, name)
        if running is None:
            raise StreamRefused(f"pod {name} does not run on a node of this cluster")
        return running
