"""What probes and lifecycle hooks do: run a command, make an HTTP request, connect, ask for gRPC health."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.pod_addresses import LOCAL
from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.exec_process import run_command
from stromboli.embedded.nodes.real.probes import grpc_health, http_get

MAX_OUTPUT = 10 * 1024
"""Bytes of a command's output or of a response that are kept."""


class HandlerError(Exception):
    """A handler could not run: what it asks for is not there or makes no sense."""


class Outcome(NamedTuple):
    """Whether a probe succeeded, and what its handler got."""

    success: bool
    output: str = ""
    warning: bool = False
    """It succeeded, but people are told of its output."""


async def run_handler(handler: Content, spec: Content, process: ContainerProcess, timeout: float) -> Outcome:
    """Run the handler of a probe for the container; `HandlerError` if it cannot run."""
    if handler.get("exec") is not None:
        return await _exec(handler["exec"], process, timeout)
    if handler.get("httpGet") is not None:
        return await _http_get(handler["httpGet"], spec, timeout)
    if handler.get("tcpSocket") is not None:
        return await _tcp_socket(handler["tcpSocket"], spec, timeout)
    if handler.get("grpc") is not None:
        port = resolve_port(handler["grpc"].get("port"), spec)
        service = str(handler["grpc"].get("service") or "")
        return Outcome(*await grpc_health.check(LOCAL, port, service, timeout))
    raise HandlerError("missing probe handler: it needs exec, httpGet, tcpSocket or grpc")


async def execute(
    action: Content, process: ContainerProcess, timeout: float | None
) -> tuple[int | None, str]:
    """Exit code (None after the timeout) and output of a command in the container."""
    command = [str(argument) for argument in action.get("command") or ()]
    if not command:
        raise HandlerError("exec has no command")
    try:
        result = await run_command(process, command, timeout, MAX_OUTPUT)
    except (ContainerError, OSError, ValueError) as error:
        raise HandlerError(str(error)) from None
    return result.code, result.output.decode(errors="replace")


def http_request(action: Content, spec: Content) -> http_get.HttpGet:
    """The request of an `httpGet`, to the pod's address unless it has a host."""
    scheme = str(action.get("scheme") or "HTTP").lower()
    host = str(action.get("host") or LOCAL)
    port = resolve_port(action.get("port"), spec)
    headers = [
        (str(header.get("name")), str(header.get("value") or ""))
        for header in action.get("httpHeaders") or ()
    ]
    try:
        return http_get.HttpGet.to(scheme, host, port, str(action.get("path") or "/"), headers)
    except ValueError as error:
        raise HandlerError(f"httpGet: {error}") from None


def resolve_port(port: object, spec: Content) -> int:
    """A number, or the name of a port of the container."""
    number = port
    if isinstance(port, str):
        named = [each.get("containerPort") for each in spec.get("ports") or () if each.get("name") == port]
        digits = port.isascii() and port.isdecimal() and len(port) <= 5
        number = named[0] if named else int(port) if digits else None
        if number is None:
            raise HandlerError(f"port {port!r}: container {spec.get('name', '')} has no port of this name")
    if not isinstance(number, int) or not 0 < number < 65536:
        raise HandlerError(f"invalid port number: {number}")
    return number


async def _exec(action: Content, process: ContainerProcess, timeout: float) -> Outcome:
    code, output = await execute(action, process, timeout)
    if code is None:
        return Outcome(False, f"command timed out: {action['command']} timed out after {timeout:g}s")
    return Outcome(code == 0, output)


async def _http_get(action: Content, spec: Content, timeout: float) -> Outcome:
    request = http_request(action, spec)
    try:
        response = await request.send(timeout, MAX_OUTPUT)
    except http_get.RequestFailed as error:
        return Outcome(False, str(error))
    if response.status in range(300, 400):
        return Outcome(True, f"Probe terminated redirects, Response body: {response.body}", warning=True)
    if response.status in range(200, 300):
        return Outcome(True, response.body)
    return Outcome(False, f"HTTP probe failed with statuscode: {response.status}")


async def _tcp_socket(action: Content, spec: Content, timeout: float) -> Outcome:
    host, port = str(action.get("host") or LOCAL), resolve_port(action.get("port"), spec)
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return Outcome(False, f"dial tcp {host}:{port}: i/o timeout")
    except (OSError, UnicodeError) as error:
        return Outcome(False, f"dial tcp {host}:{port}: {http_get.connect_error(error)}")
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return Outcome(True)
