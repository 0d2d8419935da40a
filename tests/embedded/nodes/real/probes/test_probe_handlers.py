"""Commands, requests and connections of probes and hooks."""

import asyncio
import os
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from stromboli.daemon.certificates import Authority, new_authority
from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.probes.lifecycle_hooks import run_hook
from stromboli.embedded.nodes.real.probes.probe_handlers import (
    MAX_OUTPUT,
    HandlerError,
    resolve_port,
    run_handler,
)
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian

SPEC = {"name": "main", "ports": [{"name": "web", "containerPort": 8080}, {"containerPort": 9}]}


@asynccontextmanager
async def responding(*responses, tls=None):
    """A server that sends these bytes, each to a connection; the requests that it got."""
    requests, left, done = [], list(responses), []

    async def serve(reader, writer):
        done.append(asyncio.current_task())
        requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(left.pop(0))
        if writer.can_write_eof() and b"never" not in requests[-1].encode():
            writer.write_eof()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1], requests
        await asyncio.gather(*done, return_exceptions=True)


def http(*responses, timeout=5.0, path="/healthz", **action):
    async def scenario():
        async with responding(*responses) as (port, requests):
            action["port"] = port
            outcome = await run_handler({"httpGet": {"path": path, **action}}, SPEC, None, timeout)
            return outcome, requests, port

    return asyncio.run(scenario())


def test_the_certificate_of_a_server_is_not_verified(tmp_path):
    now = datetime.now(UTC)
    authority = Authority(new_authority("unknown", now, timedelta(days=1)))
    pair = authority.for_server("other", ["other.example"], now, timedelta(days=1))
    file = tmp_path / "pair"
    file.write_bytes(pair.key + pair.certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)

    async def scenario():
        async with responding(response(200, b"secret"), tls=context) as (port, _):
            return await run_handler({"httpGet": {"port": port, "scheme": "HTTPS"}}, SPEC, None, 5.0)

    outcome = asyncio.run(scenario())
    assert (outcome.success, outcome.output) == (True, "secret")


def response(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize(
    ("status", "success", "output"),
    [
        (200, True, "fine"),
        (204, True, ""),
        (304, True, "Probe terminated redirects, Response body: "),
        (404, False, "HTTP probe failed with statuscode: 404"),
        (500, False, "HTTP probe failed with statuscode: 500"),
    ],
)
def test_statuses_from_200_to_399_are_a_success(status, success, output):
    body = b"" if status in (204, 304) else b"fine"
    outcome, *_ = http(response(status, body))
    assert (outcome.success, outcome.output, outcome.warning) == (success, output, status == 304)


def test_a_request_has_the_headers_of_a_kubelet_and_those_of_the_probe():
    headers = [
        {"name": "X-Probe", "value": "a"},
        {"name": "X-Probe", "value": "b"},
        {"name": "Accept", "value": ""},
    ]
    _, (request,), port = http(response(200), path="ready?full=1&q=%2F", httpHeaders=headers)
    first, *lines = request.split("\r\n")
    assert first == "GET /ready?full=1&q=%2F HTTP/1.1"
    assert {"X-Probe: a", "X-Probe: b", f"Host: 127.0.0.1:{port}", "User-Agent: kube-probe/1.34"} <= set(
        lines
    )
    assert not any(line.lower().startswith("accept") for line in lines)
    _, (request,), _ = http(response(200), path="/a b\r\nX: 1")
    assert request.startswith("GET /a%20b%0D%0AX:%201 HTTP/1.1\r\n")
    _, (request,), _ = http(response(200), httpHeaders=[{"name": "Host", "value": "shop.example"}])
    assert "\r\nHost: shop.example\r\n" in request


def test_a_redirect_is_followed_on_the_same_host_alone():
    outcome, requests, _ = http(response(302, b"", "Location: /there"), response(200, b"arrived"))
    assert (outcome.output, requests[1].split()[1]) == ("arrived", "/there")
    outcome, requests, _ = http(response(302, b"", "Location: http://elsewhere.example/"))
    assert (outcome.success, outcome.warning, len(requests)) == (True, True, 1)
    outcome, requests, _ = http(*[response(302, b"", "Location: /again")] * 10)
    assert not outcome.success
    assert "stopped after 10 redirects" in outcome.output


def test_a_response_is_bounded_in_time_and_size():
    outcome, _, port = http(b"", timeout=0.1, path="never")
    assert not outcome.success
    assert outcome.output.startswith(f'Get "http://127.0.0.1:{port}/never": context deadline exceeded')
    endless = response(200).replace(b"Content-Length: 0", b"X: 1") + b"x" * (MAX_OUTPUT * 20)
    assert len(http(endless)[0].output) == MAX_OUTPUT


@pytest.mark.parametrize("broken", [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000])
def test_who_does_not_speak_http_fails(broken):
    assert not http(broken)[0].success


def test_where_nobody_listens_probes_fail():
    for handler in (
        {"httpGet": {"port": 1}},
        {"tcpSocket": {"port": 1}},
        {"tcpSocket": {"port": 1, "host": "..."}},
    ):
        outcome = asyncio.run(run_handler(handler, SPEC, None, 5.0))
        assert not outcome.success
        assert "..." in str(handler) or "dial tcp 127.0.0.1:1: connect: connection refused" in outcome.output


def test_a_connection_is_enough_for_a_tcp_probe():
    async def scenario():
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await run_handler({"tcpSocket": {"port": port}}, SPEC, None, 5.0)

    assert asyncio.run(scenario()).success


@pytest.mark.parametrize(("port", "number"), [(80, 80), ("web", 8080), ("443", 443)])
def test_a_port_has_a_number_or_a_name(port, number):
    assert resolve_port(port, SPEC) == number


@pytest.mark.parametrize("port", ["none", "", 0, 70000, None, "-1", "²", "8" * 5000])
def test_a_port_that_there_is_not_is_an_error(port):
    with pytest.raises(HandlerError, match="port"):
        resolve_port(port, SPEC)


@pytest.mark.parametrize(
    "handler",
    [{}, {"exec": {}}, {"httpGet": {"port": 80, "scheme": "FTP"}}, {"httpGet": {"port": 80, "host": "a b"}}],
)
def test_a_handler_that_cannot_run_says_why(handler):
    with pytest.raises(HandlerError):
        asyncio.run(run_handler(handler, SPEC, None, 1.0))


async def in_container(folder, use):
    guardian = ProcessGuardian()
    launch = ContainerLaunch(["sleep", "987"], folder, {"PATH": os.environ["PATH"], "COLOUR": "blue"})
    process = await ContainerProcess.start(launch, guardian, LogFile(folder / "0.log"))
    try:
        return await use(process)
    finally:
        process.kill()
        await process.wait()
        guardian.close()


@pytest.mark.parametrize(
    ("script", "success", "output"),
    [
        ("echo $COLOUR; echo on >&2", True, "blue\non\n"),
        ("echo broken; exit 3", False, "broken\n"),
        ("sleep 987", False, "timed out after 0.2s"),
    ],
)
def test_a_command_runs_in_the_container(tmp_path, script, success, output):
    handler = {"exec": {"command": ["sh", "-c", script]}}
    timeout = 0.2 if "timed out" in output else 10.0
    outcome = asyncio.run(
        in_container(tmp_path, lambda process: run_handler(handler, SPEC, process, timeout))
    )
    assert (outcome.success, output in outcome.output) == (success, True)


def test_a_command_that_does_not_exist_is_an_error(tmp_path):
    handler = {"exec": {"command": ["/no/such/thing"]}}
    with pytest.raises(HandlerError, match="/no/such/thing"):
        asyncio.run(in_container(tmp_path, lambda process: run_handler(handler, SPEC, process, 1.0)))


@pytest.mark.parametrize(
    ("hook", "problem"),
    [
        ({"exec": {"command": ["sh", "-c", "echo no; exit 3"]}}, "command exited with 3: no"),
        ({"httpGet": {"port": 1}}, "connection refused"),
        ({"tcpSocket": {"port": 80}}, "exec, httpGet or sleep"),
        ({"exec": {"command": ["true"]}}, None),
        ({"sleep": {"seconds": 0}}, None),
    ],
)
def test_a_hook_that_fails_says_why(tmp_path, hook, problem):
    async def run(process):
        await run_hook(hook, SPEC, process)

    if problem is None:
        asyncio.run(in_container(tmp_path, run))
    else:
        with pytest.raises(HandlerError, match=problem):
            asyncio.run(in_container(tmp_path, run))


def test_any_response_will_do_for_a_hook():
    async def scenario():
        async with responding(response(500)) as (port, requests):
            await run_hook({"httpGet": {"port": port}}, SPEC, None)
            return requests

    assert len(asyncio.run(scenario())) == 1
