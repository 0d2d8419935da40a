"""The gRPC health check, with responses as a server written in Go sends them."""

import asyncio

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from stromboli.embedded.nodes.real.probes.grpc_health import MAX_RESPONSE, MAX_SERVICE, check

SETTINGS = bytes.fromhex("000006040000000000 000500004000 000000040100000000 000004080000000000 0000000b")
PING = bytes.fromhex("000008060000000000 02041010090e0707")
HEADERS = bytes.fromhex("000010010400000001 20880f108b1d75d0620d263d4c4d6564")
DATA = bytes.fromhex("000007000000000001 0000000002 0801")
TRAILERS = bytes.fromhex("000018010500000001 00889acac8b21234da8f0130 00899acac8b5254207317f00")
NOT_FOUND = bytes.fromhex(
    "000033010500000001 20880f108b1d75d0620d263d4c4d6564 00889acac8b21234da8f0135"
    "00899acac8b5254207317f8bb6aeb51fc54a20b677310b"
)
UNIMPLEMENTED = bytes.fromhex("00000e010500000001 8800889acac8b21234da8f023132")
CODED_UNIMPLEMENTED = bytes.fromhex("00000e010500000001 8800889acac8b21234da8f8208bf")
PLAIN_UNIMPLEMENTED = b"\0\0\x11\1\5\0\0\0\1" + b"\x88\0\x0bgrpc-status\x0212"


async def checked(response, service="", timeout=5.0):
    received, serving = bytearray(), []

    async def serve(reader, writer):
        serving.append(asyncio.current_task())
        writer.write(response)
        while piece := await reader.read(1000):
            received.extend(piece)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        result = await check("127.0.0.1", port, service, timeout)
        await asyncio.gather(*serving, return_exceptions=True)
    return result, bytes(received)


@pytest.mark.parametrize(
    ("response", "healthy", "text"),
    [
        (SETTINGS + PING + HEADERS + DATA + TRAILERS, True, "service healthy"),
        (HEADERS + DATA[:-1] + b"\2" + TRAILERS, False, 'service unhealthy (responded with "NOT_SERVING")'),
        (HEADERS + b"\0\0\5\0\0\0\0\0\1" + b"\0" * 5 + TRAILERS, False, '(responded with "UNKNOWN")'),
        (SETTINGS + NOT_FOUND, False, "code = NotFound"),
        (UNIMPLEMENTED, False, "does not implement the grpc health protocol"),
        (CODED_UNIMPLEMENTED, False, "does not implement the grpc health protocol"),
        (PLAIN_UNIMPLEMENTED, False, "does not implement the grpc health protocol"),
        (HEADERS + TRAILERS, False, "no message"),
        (b"\0\0\1\1\5\0\0\0\1\x88", False, "no grpc-status"),
        (b"\0\0\4\3\0\0\0\0\1\0\0\0\1", False, "ended the call"),
        (b"\0\0\2\1\5\0\0\0\1\0\x7f", False, "broke HTTP/2"),
        (b"\0\0\x10\1\5\0\0\0\1\x88\0\x0bgrpc-status\1x", False, "is no number"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False, "does not speak HTTP/2"),
        (
            SETTINGS + HEADERS + (b"\0\x40\0\0\0\0\0\0\1" + b"x" * 0x4000) * 5,
            False,
            f"larger than {MAX_RESPONSE}",
        ),
    ],
)
def test_a_response_says_whether_the_service_is_healthy(response, healthy, text):
    (success, output), _ = asyncio.run(checked(response))
    assert success is healthy
    assert text in output


def test_the_request_names_the_service():
    _, request = asyncio.run(checked(HEADERS + DATA + TRAILERS, "shop"))
    assert request.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    (headers,) = (
        event.headers
        for event in H2Connection(H2Configuration(client_side=False)).receive_data(request)
        if isinstance(event, RequestReceived)
    )
    assert (b":path", b"/grpc.health.v1.Health/Check") in headers
    assert b"\0\0\0\0\6\x0a\4shop" in request


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_asked():
    (success, output), _ = asyncio.run(checked(SETTINGS, timeout=0.1))
    assert (success, output) == (False, "timeout: health rpc did not complete within 0.1s")


def test_a_service_with_too_long_a_name_is_refused():
    (success, output), _ = asyncio.run(checked(SETTINGS, "x" * (MAX_SERVICE + 1)))
    assert not success
    assert str(MAX_SERVICE) in output


def test_where_nobody_listens_the_connection_fails():
    success, output = asyncio.run(check("127.0.0.1", 1, "", 5.0))
    assert (success, "connection refused" in output) == (False, True)
