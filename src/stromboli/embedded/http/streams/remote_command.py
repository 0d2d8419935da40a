"""Serves a command or an attached container on the channels of a client: copies both ways, and tells how it ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container

import msgspec

from stromboli.embedded.http.streams.channel_frames import Channel, window_size
from stromboli.embedded.http.streams.command_channels import CommandChannels
from stromboli.embedded.nodes.pod_streams import Output, Remote, RemoteProcess, StreamRefused

STREAM_IDLE_TIME = 4 * 3600.0
"""Seconds after which a stream on which nothing moves is closed, as kubelets do."""
CLIENT_CHECK = 2.0
"""Seconds between two looks at whether a client that is not read from has left.

While its data waits to be read, its hanging up does so too. Then it is sent something: the system of a client that is
gone answers that with a reset.
"""


def exit_status(code: int) -> bytes:
    """A Status, as clients expect it on the error channel."""
    if not code:
        return msgspec.json.encode({"metadata": {}, "status": "Success"})
    return msgspec.json.encode(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit code {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


def error_status(error: Exception) -> bytes:
    """Of a command that could not be run, or not to its end."""
    message = f"error executing command in container: {error}"
    status = {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }
    return msgspec.json.encode(status)


async def serve_command(
    channels: CommandChannels, remote: Remote, wanted: Container[Channel], left: Callable[[], bool]
) -> None:
    """Until the process ends or the client leaves; `left` tells whether it has, also while nothing is read from it."""
    async with remote as process:
        output = asyncio.create_task(_serve_output(channels, process, wanted))
        watching = asyncio.create_task(_watch_client(channels, left))
        tasks = [output, watching, asyncio.create_task(_read_client(channels, process))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            status = b"".join(task.result() for task in (output, watching) if task.done())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    if status:
        await channels.finish(status)


async def _serve_output(
    channels: CommandChannels, process: RemoteProcess, wanted: Container[Channel]
) -> bytes:
    """The status at the end."""
    outputs = {Channel.STDOUT: process.stdio.stdout, Channel.STDERR: process.stdio.stderr}
    copies = [
        _copy(output, channels, channel if channel in wanted else None)
        for channel, output in outputs.items()
        if output is not None
    ]
    try:
        await asyncio.gather(*copies)
        return exit_status(await process.wait())
    except StreamRefused as error:
        return error_status(error)
    except ConnectionError:
        return b""  # the client left


async def _copy(output: Output, channels: CommandChannels, channel: Channel | None) -> None:
    """Output that the client did not ask for is read and dropped, so that the process does not wait."""
    while piece := await output.read():
        if channel is not None:
            await channels.send(channel, piece)


async def _read_client(channels: CommandChannels, process: RemoteProcess) -> bytes:
    """Until the client leaves; there is nothing to tell it then."""
    stdin = process.stdio.stdin
    while (frame := await channels.receive()) is not None:
        if frame.channel is Channel.RESIZE:
            if (size := window_size(frame.data)) is not None:
                process.stdio.resize(size.height, size.width)
        elif stdin is not None:
            if frame.data:
                channels.unread = True
                await stdin.write(frame.data)
                channels.unread = False
            if frame.end:
                stdin.end()
    return b""


async def _watch_client(channels: CommandChannels, left: Callable[[], bool]) -> bytes:
    """Until the client has left, or nothing has moved for too long, which the status says."""
    while not left():
        if time.monotonic() - channels.active > STREAM_IDLE_TIME:
            return error_status(StreamRefused(f"nothing moved for {STREAM_IDLE_TIME:g} seconds"))
        await asyncio.sleep(CLIENT_CHECK)
        if channels.unread:
            await channels.ping()
    return b""
