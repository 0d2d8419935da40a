"""Requests for streams of a pod: what is asked for, whether that is possible, and on which protocol it is served."""

from __future__ import annotations

import select

from aiohttp import web

from stromboli.daemon.request_connection import connection_of, stream
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.log_responses import container_name
from stromboli.embedded.http.query_parameters import Query, read_flag
from stromboli.embedded.http.streamed_responses import limit_send_buffer
from stromboli.embedded.http.streams.byte_connections import UpgradedConnection, WebSocketConnection
from stromboli.embedded.http.streams.channel_frames import PROTOCOLS, V4, Channel
from stromboli.embedded.http.streams.command_channels import CommandChannels, SpdyChannels, WebSocketChannels
from stromboli.embedded.http.streams.port_channels import PortChannels, requested_ports
from stromboli.embedded.http.streams.port_forward import PortForward
from stromboli.embedded.http.streams.remote_command import error_status, serve_command
from stromboli.embedded.kinds.status_errors import bad_request
from stromboli.embedded.nodes.pod_streams import (
    CommandNotStarted,
    CommandRequest,
    PodStreams,
    Socket,
    StreamRefused,
)
from stromboli.embedded.store.records import Record

STREAMS = ("exec", "attach", "portforward")
"""Subresources of pods."""
LARGEST_MESSAGE = 4 * 1024 * 1024
"""Bytes of a message of a WebSocket."""
WRITE_BUFFER = 16 * 1024
"""Bytes that may be written before it is waited for a client that does not read."""
CLOSE_TIME = 2.0
"""Seconds that it is waited for a client to close its side."""
SPDY = "SPDY/3.1"
PORT_FORWARD = "portforward.k8s.io"
TUNNEL = f"{SPDY}+{PORT_FORWARD}"
_PROTOCOL_HEADER = "X-Stream-Protocol-Version"


class StreamRequest:
    """A request for a stream, and the connection that it came on."""

    def __init__(
        self, request: web.BaseRequest, pods: PodStreams, record: Record, subresource: str, query: Query
    ):
        self._request = request
        self._pods = pods
        self._namespace, self._name = record.key.namespace, record.key.name
        self._pod = record.object()
        self._subresource = subresource
        self._query = query

    async def serve(self) -> web.StreamResponse:
        upgrade = self._request.headers.get("Upgrade", "").lower()
        if upgrade not in ("websocket", SPDY.lower()):
            raise bad_request(f"Upgrade request required: to websocket or to {SPDY}")
        try:
            if self._subresource == "portforward":
                self._check()
                return await (self._tunnel() if upgrade == "websocket" else self._forward())
            command = self._command()
            self._check(command.container)
            return await (self._web_socket(command) if upgrade == "websocket" else self._spdy(command))
        except StreamRefused as error:
            raise bad_request(str(error)) from None

    def _check(self, container: str = "") -> None:
        if not (self._pod.get("spec") or {}).get("nodeName"):
            raise bad_request(f"pod {self._name} does not have a host assigned")
        self._pods.check(self._namespace, self._name, container)

    # -- commands

    def _command(self) -> CommandRequest:
        query = self._query
        command = (
            tuple(self._request.rel_url.query.getall("command", ())) if self._subresource == "exec" else ()
        )
        if self._subresource == "exec" and not command:
            raise bad_request("you must specify at least one command for the container")
        if not any(read_flag(query, name) for name in ("stdin", "stdout", "stderr")):
            raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
        container = container_name(self._pod, self._name, query.get("container", ""))
        return CommandRequest(container, command, read_flag(query, "stdin"), read_flag(query, "tty"))

    def _wanted(self, command: CommandRequest) -> set[Channel]:
        """The channels that the client asked for."""
        wanted = {Channel.ERROR}
        for name, channel in (("stdout", Channel.STDOUT), ("stderr", Channel.STDERR)):
            if read_flag(self._query, name):
                wanted.add(channel)
        return wanted - {Channel.STDERR} if command.tty else wanted

    async def _web_socket(self, command: CommandRequest) -> web.StreamResponse:
        channels = WebSocketChannels(await self._accept(PROTOCOLS))
        await self._serve(channels, command, self._wanted(command))
        return channels.socket

    async def _spdy(self, command: CommandRequest) -> web.StreamResponse:
        response, connection = await self._upgrade(V4)
        wanted = self._wanted(command)
        expected = {*wanted} | ({Channel.STDIN} if command.stdin else set())
        channels = SpdyChannels(connection, expected | ({Channel.RESIZE} if command.tty else set()))
        try:
            if await channels.open():
                await self._serve(channels, command, wanted)
        finally:
            await channels.close()
            self._close()
        return response

    async def _serve(self, channels: CommandChannels, command: CommandRequest, wanted: set[Channel]) -> None:
        try:
            remote = await self._pods.open_command(self._namespace, self._name, command)
            await serve_command(channels, remote, wanted, self._has_left)
        except (StreamRefused, CommandNotStarted) as error:
            await channels.finish(error_status(error))
        except ConnectionError:
            return

    # -- forwarded ports

    async def _tunnel(self) -> web.StreamResponse:
        """SPDY in a WebSocket, or channels for the ports that the request names."""
        texts = self._request.rel_url.query.getall("ports", ())
        ports = requested_ports(texts) if texts else []
        socket = await self._accept((TUNNEL, V4) if ports else (TUNNEL,))
        if socket.ws_protocol == TUNNEL:
            await PortForward(WebSocketConnection(socket), self._open_port).serve(self._has_left)
        else:
            await PortChannels(socket, ports, self._open_port).serve(self._has_left)
        await socket.close()
        return socket

    async def _forward(self) -> web.StreamResponse:
        response, connection = await self._upgrade(PORT_FORWARD)
        try:
            await PortForward(connection, self._open_port).serve(self._has_left)
        finally:
            self._close()
        return response

    async def _open_port(self, port: int) -> Socket:
        return await self._pods.open_port(self._namespace, self._name, port)

    # -- the connection

    async def _accept(self, protocols: tuple[str, ...]) -> web.WebSocketResponse:
        """Upgrade to a WebSocket; an error if the client speaks none of the protocols."""
        offered = self._request.headers.getall("Sec-WebSocket-Protocol", [])
        names = [name.strip() for header in offered for name in header.split(",")]
        if not set(names) & set(protocols):
            raise bad_request(
                f"none of the protocols {', '.join(names)[:200] or '(none)'} is spoken, only {', '.join(protocols)}"
            )
        response = web.WebSocketResponse(
            protocols=protocols,
            compress=False,
            max_msg_size=LARGEST_MESSAGE,
            writer_limit=WRITE_BUFFER,
            timeout=CLOSE_TIME,
        )
        self._keep()
        try:
            await response.prepare(self._request)
        except web.HTTPBadRequest as error:
            raise bad_request(error.text or "the handshake of the WebSocket failed") from None
        return response

    async def _upgrade(self, protocol: str) -> tuple[web.StreamResponse, UpgradedConnection]:
        """Upgrade to SPDY; an error if the client does not speak the protocol of the stream."""
        offered = self._request.headers.getall(_PROTOCOL_HEADER, [])
        names = [name.strip() for header in offered for name in header.split(",")]
        if protocol not in names:
            raise StatusError(
                403, f"unable to upgrade: only {protocol} is spoken on {SPDY}, not {names[:10]}"
            )
        connection, transport = connection_of(self._request), self._request.transport
        if connection is None or transport is None:
            raise ConnectionResetError("the client left")
        headers = {"Upgrade": SPDY, "Connection": "Upgrade", _PROTOCOL_HEADER: protocol}
        response = web.StreamResponse(status=101, headers=headers)
        response.force_close()
        self._keep()
        upgraded = UpgradedConnection(connection, transport)
        await response.prepare(self._request)
        return response, upgraded

    def _keep(self) -> None:
        """The connection may take as long as it likes, and keeps little that its client has not read."""
        stream(self._request)
        limit_send_buffer(self._request)

    def _close(self) -> None:
        if self._request.transport is not None:
            self._request.transport.close()

    def _has_left(self) -> bool:
        """Whether the client has hung up, which nobody hears of while nothing is read from it."""
        transport = self._request.transport
        raw = None if transport is None or transport.is_closing() else transport.get_extra_info("socket")
        return raw is None or _has_hung_up(raw.fileno())


def _has_hung_up(descriptor: int) -> bool:
    if descriptor < 0:
        return True
    hangup: int = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
    poll = select.poll()
    poll.register(descriptor, hangup)
    return any(events & hangup for _, events in poll.poll(0))
