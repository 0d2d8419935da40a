"""kubectl exec, attach, cp and port-forward on real nodes, and clients that misbehave."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pty
import re
import signal
import socket
import ssl
import sys
import termios
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import kubernetes
import pytest
from kubernetes.stream import portforward, stream

from stromboli.embedded.http import user_shares
from stromboli.embedded.http.streams import remote_command
from stromboli.embedded.http.streams.command_channels import FIRST_MESSAGE_DELAY
from stromboli.embedded.http.streams.stream_requests import LARGEST_MESSAGE
from stromboli.embedded.nodes.real import attached_container
from tests.embedded.nodes.node_services import NodeCluster, running_nodes

pytestmark = pytest.mark.programs("kubectl")
ENDLESS = ["sleep", "987"]
OLD = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
"""kubectl speaks SPDY alone, as it did before 1.31."""
SERVER = """
import socketserver, sys

class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(100):
            self.request.sendall(b"hello " + data)
            if "close" in sys.argv:
                return

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

with Server(("127.0.0.1", 0), Handler) as server:
    print("port", server.server_address[1], flush=True)
    server.serve_forever()
"""
"""Answers each piece that it receives; says on which port."""


class Kubectl:
    """Runs it beside a cluster of this process."""

    def __init__(self, cluster: NodeCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self._command = ("kubectl", "--kubeconfig", str(folder / "kubeconfig"))

    async def start(self, *arguments: str, **options: Any) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        environment = os.environ | options.pop("env", {})
        streams = {"stdin": pipe, "stdout": pipe, "stderr": pipe} | options
        return await asyncio.create_subprocess_exec(*self._command, *arguments, env=environment, **streams)

    async def __call__(self, *arguments: str, stdin: bytes = b"", env: Any = None) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        process = await self.start(*arguments, env=env or {})
        out, errors = await asyncio.wait_for(process.communicate(stdin), 60)
        assert process.returncode is not None
        return process.returncode, out.decode(), errors.decode()

    async def running(self, name: str, command: list[str], **container: Any) -> None:
        await self.cluster.pod(name, command=command, container=container)
        await self.cluster.phase(name, "Running")


def on_a_real_node(
    folder: Path, scenario: Callable[[Kubectl], Awaitable[None]], *groups: str, tls: bool = True
) -> None:
    async def within() -> None:
        async with running_nodes(folder, *(groups or ("1x8cpu,real",)), tls=tls) as cluster:
            await scenario(Kubectl(cluster, folder))

    asyncio.run(asyncio.wait_for(within(), 120))


async def ends(pid: int) -> None:
    async with asyncio.timeout(20):
        while os.path.exists(f"/proc/{pid}"):
            await asyncio.sleep(0.02)


async def logged(cluster: NodeCluster, name: str, pattern: str) -> re.Match[str]:
    async with asyncio.timeout(20):
        while (match := re.search(pattern, await cluster.log(name))) is None:
            await asyncio.sleep(0.02)
    return match


# -- exec


@pytest.mark.parametrize("env", [{}, OLD], ids=["websocket", "spdy"])
def test_a_command_runs_in_a_container(tmp_path: Path, env: dict[str, str]) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS, env=[{"name": "COLOUR", "value": "blue"}])
        script = 'echo $COLOUR; pwd; echo "$@" >&2; exit 3'
        code, out, errors = await kubectl("exec", "a", "--", "sh", "-c", script, "x", "two words", env=env)
        assert (code, errors) == (3, "two words\ncommand terminated with exit code 3\n")
        assert re.fullmatch(r"blue\n.*/default_a_[^/]*/root\n", out)
        big = os.urandom(3_000_000).hex().encode()
        assert await kubectl("exec", "-i", "a", "--", "cat", stdin=big, env=env) == (0, big.decode(), "")
        assert (await kubectl("exec", "a", "--", "sh", "-c", "kill -9 $$", env=env))[0] == 137
        code, _, errors = await kubectl("exec", "a", "--", "no-such-command", env=env)
        assert code == 1
        assert "exec: no-such-command: executable file not found in $PATH" in errors

    on_a_real_node(tmp_path, scenario)


def test_a_command_that_cannot_run_says_why(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        await kubectl.cluster.pod("over", command=["true"])
        await kubectl.cluster.pod("made-up", "made-up-1")
        await kubectl.cluster.phase("over", "Succeeded")
        await kubectl.cluster.phase("made-up", "Running")
        for arguments, problem in (
            (("exec", "a", "-c", "other", "--", "true"), "container other is not valid for pod a"),
            (("exec", "none", "--", "true"), 'pods "none" not found'),
            (("exec", "made-up", "--", "true"), "simulated node made-up-1, which runs no processes"),
            (("attach", "made-up"), "stromboli up --real runs pods as processes"),
            (("port-forward", "made-up", ":80"), "simulated node made-up-1"),
            (("port-forward", "over", ":80"), "pod is not running"),
        ):
            code, _, errors = await kubectl(*arguments)
            assert code == 1
            assert problem in errors

    on_a_real_node(tmp_path, scenario, "1x8cpu,real", "made-up=1x8cpu")


@pytest.mark.parametrize("env", [{}, OLD], ids=["websocket", "spdy"])
def test_a_shell_on_a_terminal_has_the_size_of_the_window(tmp_path: Path, env: dict[str, str]) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        async with terminal(kubectl, "exec", "-it", "a", "--", "sh", env=env) as (read_until, write, process):
            await read_until("[#$] ")
            write(b"stty size; echo $TERM; exit 5\n")
            assert "31 97\r\nxterm\r\n" in await read_until("exit code 5")
            assert await process.wait() == 5

    on_a_real_node(tmp_path, scenario)


@asynccontextmanager
async def terminal(kubectl: Kubectl, *arguments: str, env: Any = None) -> AsyncIterator[Any]:
    """kubectl on a terminal of 31 rows and 97 columns."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (31, 97))
    process = await kubectl.start(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=env or {})
    os.close(theirs)

    async def read_until(pattern: str) -> str:
        output = ""
        while not re.search(pattern, output):
            output += (await asyncio.wait_for(asyncio.to_thread(os.read, ours, 4096), 20)).decode()
        return output

    try:
        yield read_until, lambda data: os.write(ours, data), process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)


@pytest.mark.parametrize("arguments", [("exec", "-i"), ("exec", "-it")], ids=["pipe", "terminal"])
def test_a_client_that_is_killed_ends_its_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        command = (*arguments, "a", "--", "sh", "-c", "trap '' HUP; echo pid $$; sleep 987 & wait")
        async with terminal(kubectl, *command) as (read_until, _, process):
            pid = int((await read_until(r"pid \d+\s")).split()[-1])
            process.send_signal(signal.SIGKILL)
            await ends(pid)

    on_a_real_node(tmp_path, scenario)


# -- cp


def test_files_are_copied_both_ways(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        source, back = tmp_path / "source", tmp_path / "back"
        (source / "sub").mkdir(parents=True)
        (source / "large").write_bytes(os.urandom(1_000_000))
        (source / "sub" / "small").write_text("small")
        assert (await kubectl("cp", str(source), "a:there"))[0] == 0
        assert (await kubectl("exec", "a", "--", "cat", "there/sub/small"))[1] == "small"
        assert (await kubectl("cp", "a:there", str(back)))[0] == 0
        assert (back / "large").read_bytes() == (source / "large").read_bytes()
        assert (back / "sub" / "small").read_text() == "small"

    on_a_real_node(tmp_path, scenario)


# -- attach

ECHO = ["sh", "-c", "echo ready; while read x; do echo got $x; echo oh $x >&2; done; echo end"]


@pytest.mark.parametrize("env", [{}, OLD], ids=["websocket", "spdy"])
def test_the_first_client_of_an_input_that_is_open_once_ends_it(tmp_path: Path, env: dict[str, str]) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ECHO, stdin=True, stdinOnce=True)
        await logged(kubectl.cluster, "a", "ready")
        code, out, errors = await kubectl("attach", "-q", "-i", "a", stdin=b"one\ntwo\n", env=env)
        assert (code, out) == (0, "got one\ngot two\nend\n")
        assert errors == "oh one\noh two\n"
        await kubectl.cluster.phase("a", "Succeeded")
        log = await kubectl.cluster.log("a")
        assert sorted(log.splitlines()) == sorted(["ready", *out.splitlines(), *errors.splitlines()])

    on_a_real_node(tmp_path, scenario)


def attached(cluster: NodeCluster) -> set[Any]:
    """The clients of the only container."""
    (worker,) = cluster.nodes._runtimes["real"]._workers.values()
    return worker.container("main").process.attached


def test_several_clients_are_attached_at_once(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ECHO, stdin=True)
        await logged(kubectl.cluster, "a", "ready")
        clients = [await kubectl.start("attach", "-i", "a") for _ in range(3)]
        reading, writing = clients[:2], clients[2]
        async with asyncio.timeout(30):
            while len(attached(kubectl.cluster)) < 3:
                await asyncio.sleep(0.02)
            writing.stdin.write(b"hello\n")
            assert {await client.stdout.readline() for client in clients} == {b"got hello\n"}
        for client in reading:
            client.kill()
            await client.wait()
        writing.stdin.write_eof()  # the input of the container stays open
        assert (await kubectl.cluster.get("a"))["status"]["phase"] == "Running"
        writing.kill()
        await writing.wait()

    on_a_real_node(tmp_path, scenario)


def test_a_container_on_a_terminal_is_attached_to(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ["sh"], stdin=True, tty=True)
        async with terminal(kubectl, "attach", "-it", "a") as (read_until, write, process):
            await read_until("prompt")
            write(b"\n")
            await read_until("[#$] ")
            write(b"stty size; exit 0\n")
            assert "31 97\r\n" in await read_until(r"31 97\s")
            assert await process.wait() == 0
        await kubectl.cluster.phase("a", "Succeeded")

    on_a_real_node(tmp_path, scenario)


def test_a_client_that_does_not_read_holds_up_no_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached_container, "ATTACH_TIMEOUT", 0.3)

    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ["sh", "-c", "read x; head -c 20000000 /dev/zero; echo over"], stdin=True)
        async with web_socket(kubectl, "attach", stdin="true", stdout="true") as (socket, _):
            await socket.send_bytes(b"\0go\n")
            await kubectl.cluster.phase("a", "Succeeded")
            messages = [message.data async for message in socket]
            assert sum(map(len, messages)) < 20_000_000
            assert "the client left more than" in json.loads(messages[-1][1:])["message"]

    on_a_real_node(tmp_path, scenario, tls=False)


# -- port-forward


async def forwarded(kubectl: Kubectl, *arguments: str, env: Any = None) -> tuple[Any, list[int]]:
    """kubectl, and the ports that it listens on."""
    process = await kubectl.start("port-forward", *arguments, env=env or {})
    ports = []
    for _ in arguments[1:]:
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        while "127.0.0.1" not in line:
            line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        ports.append(int(line.split(":")[1].split()[0]))
    return process, ports


@pytest.mark.parametrize("env", [{}, OLD], ids=["websocket", "spdy"])
def test_ports_of_a_pod_are_forwarded(tmp_path: Path, env: dict[str, str]) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        remote = []
        for name in ("a", "b"):
            await kubectl.running(name, [sys.executable, "-c", SERVER])
            remote.append(int((await logged(kubectl.cluster, name, r"port (\d+)"))[1]))
        process, local = await forwarded(kubectl, "pod/a", *(f":{port}" for port in remote), env=env)
        open_at_once = [await asyncio.open_connection("127.0.0.1", port) for port in local * 5]
        for number, (reader, writer) in enumerate(open_at_once):
            writer.write(b"%d" % number)
            assert await asyncio.wait_for(reader.read(100), 20) == b"hello %d" % number
        for _, writer in open_at_once:
            writer.close()
        process.terminate()
        await process.communicate()

    on_a_real_node(tmp_path, scenario)


def test_services_and_deployments_stand_for_their_pods_and_an_error_tells_if_nothing_listens(
    tmp_path: Path,
) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", [sys.executable, "-c", SERVER, "close"])
        port = int((await logged(kubectl.cluster, "a", r"port (\d+)"))[1])
        await kubectl("label", "pod", "a", "app=web")
        with socket.create_server(("127.0.0.1", 0)) as free:
            nothing = free.getsockname()[1]
        ports = [
            {"name": "web", "port": 80, "targetPort": port},
            {"name": "none", "port": 81, "targetPort": nothing},
        ]
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
        service["spec"] = {"selector": {"app": "web"}, "ports": ports}
        assert (await kubectl("apply", "-f", "-", stdin=json.dumps(service).encode()))[0] == 0
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        }
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        deployment["spec"] = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
        assert (await kubectl("apply", "-f", "-", stdin=json.dumps(deployment).encode()))[0] == 0
        assert await kubectl("exec", "deployment/web", "--", "echo", "it is") == (0, "it is\n", "")
        process, local = await forwarded(kubectl, "service/web", ":80", ":81")
        for number, answer in enumerate((b"hello x", b"")):
            reader, writer = await asyncio.open_connection("127.0.0.1", local[number])
            writer.write(b"x")
            assert await asyncio.wait_for(reader.read(), 20) == answer
            writer.close()
        _, errors = await asyncio.wait_for(process.communicate(), 20)
        assert f"error forwarding port {nothing} to pod a" in errors.decode()
        assert "nothing listens on it" in errors.decode()

    on_a_real_node(tmp_path, scenario)


# -- clients that others wrote


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_python_client_streams(tmp_path: Path) -> None:
    """That client's own thread may still write to a connection which was closed under it, and breaks over that."""

    def use(port: int) -> None:
        kubernetes.config.load_kube_config(str(tmp_path / "kubeconfig"))
        core = kubernetes.client.CoreV1Api()
        session = stream(
            core.connect_get_namespaced_pod_exec,
            "a",
            "default",
            command=["sh", "-c", "read x; echo got $x; exit 7"],
            **dict.fromkeys(("stdout", "stderr", "stdin"), True),
            tty=False,
            _preload_content=False,
        )
        session.write_stdin("it\n")
        session.run_forever(timeout=20)
        assert (session.read_stdout(), session.returncode) == ("got it\n", 7)
        session.close()
        with socket.create_server(("127.0.0.1", 0)) as free:
            nothing = free.getsockname()[1]
        forward = portforward(
            core.connect_get_namespaced_pod_portforward, "a", "default", ports=f"{port},{nothing}"
        )
        connection = forward.socket(port)
        connection.settimeout(20)
        connection.sendall(b"you")
        assert connection.recv(100) == b"hello you"
        assert "nothing listens" in forward.error(nothing)
        forward.close()
        forward.websocket.close()
        core.api_client.close()

    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", [sys.executable, "-c", SERVER])
        await asyncio.to_thread(use, int((await logged(kubectl.cluster, "a", r"port (\d+)"))[1]))

    on_a_real_node(tmp_path, scenario)
    gc.collect()  # that client leaves sockets to be closed when it is forgotten


# -- who may, and how much


def test_the_right_to_read_does_not_suffice(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        await kubectl("create", "role", "reader", "--verb=get", "--resource=pods,pods/exec")
        for name, role in (
            ("reader", "--role=reader"),
            ("viewer", "--clusterrole=view"),
            ("editor", "--clusterrole=edit"),
        ):
            await kubectl("create", "rolebinding", name, role, f"--user={name}")
        for name, code in (("reader", 1), ("viewer", 1), ("editor", 0)):
            found, _, errors = await kubectl("exec", "a", "--as", name, "--", "true")
            assert (found, 'cannot create resource "pods/exec"' in errors) == (code, bool(code)), errors

    on_a_real_node(tmp_path, scenario)


@asynccontextmanager
async def web_socket(kubectl: Kubectl, subresource: str, **query: Any) -> AsyncIterator[Any]:
    config = json.loads((kubectl.folder / "kubeconfig").read_text())
    url = f"{config['clusters'][0]['cluster']['server']}/api/v1/namespaces/default/pods/a/{subresource}"
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    protocols = query.pop("protocols", ("v5.channel.k8s.io",))
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, headers=headers, params=query, protocols=protocols, max_msg_size=0) as opened,
    ):
        yield opened, session


def test_a_client_that_does_not_read_makes_its_command_wait(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        done = tmp_path / "done"
        script = f"yes | head -c 30000000; touch {done}"
        query = {"command": ["sh", "-c", script], "stdout": "true"}
        async with web_socket(kubectl, "exec", **query) as (opened, _):
            opened._response.connection.transport.pause_reading()
            await asyncio.sleep(1)
            assert not done.exists()
            opened._response.connection.transport.resume_reading()
            size = 0
            async for message in opened:
                size += len(message.data) - 1 if message.data[0] == 1 else 0
            assert size == 30_000_000
            assert done.exists()

    on_a_real_node(tmp_path, scenario, tls=False)


def test_a_command_that_does_not_read_makes_its_client_wait_and_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_command, "CLIENT_CHECK", 0.1)

    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        query = {"command": ["sh", "-c", "echo $$; exec sleep 987"], "stdout": "true", "stdin": "true"}
        async with web_socket(kubectl, "exec", **query) as (opened, _):
            pid = int((await opened.receive()).data[1:])
            sent = 0
            try:
                async with asyncio.timeout(1):
                    while sent < 100_000_000:
                        await opened.send_bytes(b"\0" + b"x" * 60_000)
                        sent += 60_000
            except TimeoutError:
                pass
            assert sent < 20_000_000
            opened._response.connection.transport.abort()
        await ends(pid)

    on_a_real_node(tmp_path, scenario, tls=False)


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
@pytest.mark.parametrize("tty", ["false", "true"])
def test_clients_that_leave_after_the_handshake_leave_no_descriptors(tmp_path: Path, tty: str) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        query = {"command": ENDLESS, "stdin": "true", "stdout": "true", "tty": tty}
        if tty == "false":
            query["stderr"] = "true"
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            async with web_socket(kubectl, "exec", **query) as (opened, _):
                opened._response.connection.transport.abort()
        async with asyncio.timeout(30):
            while len(os.listdir("/proc/self/fd")) > before:
                await asyncio.sleep(0.05)

    on_a_real_node(tmp_path, scenario, tls=False)


def test_clients_that_leave_without_the_handshake_are_no_errors_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        config = json.loads((kubectl.folder / "kubeconfig").read_text())
        host, port = config["clusters"][0]["cluster"]["server"].removeprefix("https://").split(":")
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        request = (
            "GET /api/v1/namespaces/default/pods/a/exec?command=true&stdout=true HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {config['users'][0]['user']['token']}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
        )

        async def leave() -> None:
            _, writer = await asyncio.open_connection(host, int(port), ssl=trust)
            writer.write(request.encode())
            await writer.drain()
            writer.close()

        for _ in range(5):
            await asyncio.gather(*(leave() for _ in range(20)))
        assert "works" in (await kubectl("exec", "a", "--", "echo", "works"))[1]

    on_a_real_node(tmp_path, scenario)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_stream_on_which_nothing_moves_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_command, "CLIENT_CHECK", 0.05)
    monkeypatch.setattr(remote_command, "STREAM_IDLE_TIME", 0.3)

    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        async with web_socket(kubectl, "exec", command=["sleep", "987"], stdout="true") as (opened, _):
            messages = [message.data async for message in opened]
            assert "nothing moved for 0.3 seconds" in json.loads(messages[-1][1:])["message"]
        (worker,) = kubectl.cluster.nodes._runtimes["real"]._workers.values()
        assert not worker.container("main").process.commands

    on_a_real_node(tmp_path, scenario, tls=False)


def test_a_client_has_time_to_set_up_its_streams(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        begin = time.monotonic()
        async with web_socket(kubectl, "exec", command=["echo", "early"], stdout="true") as (opened, _):
            assert (await opened.receive()).data == b"\1early\n"
            assert time.monotonic() - begin >= FIRST_MESSAGE_DELAY

    on_a_real_node(tmp_path, scenario, tls=False)


def test_a_message_that_is_too_large_ends_the_stream(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        async with web_socket(kubectl, "exec", command=["cat"], stdin="true", stdout="true") as (opened, _):
            await opened.send_bytes(b"\0" + bytes(LARGEST_MESSAGE))
            while (message := await asyncio.wait_for(opened.receive(), 20)).type is aiohttp.WSMsgType.BINARY:
                pass
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1009)

    on_a_real_node(tmp_path, scenario, tls=False)


def test_streams_of_a_user_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_shares, "MOST_STREAMS", 2)

    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        query: dict[str, Any] = {"command": ENDLESS, "stdout": "true"}
        async with web_socket(kubectl, "exec", **query), web_socket(kubectl, "exec", **query):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with web_socket(kubectl, "exec", **query):
                    pass
            assert refused.value.status == 429
        async with asyncio.timeout(20):
            while await _refused(kubectl, query):
                await asyncio.sleep(0.05)

    on_a_real_node(tmp_path, scenario, tls=False)


async def _refused(kubectl: Kubectl, query: dict[str, Any]) -> bool:
    try:
        async with web_socket(kubectl, "exec", **query):
            return False
    except aiohttp.WSServerHandshakeError:
        return True


@pytest.mark.parametrize(
    ("subresource", "query", "status"),
    [
        ("exec", {"stdout": "true"}, 400),
        ("exec", {"command": "true"}, 400),
        ("exec", {"command": "true", "stdout": "true", "protocols": ("v9.channel.k8s.io",)}, 400),
        ("portforward", {"protocols": ("v4.channel.k8s.io",)}, 400),
        ("portforward", {"protocols": ("v4.channel.k8s.io",), "ports": "0"}, 400),
        ("portforward", {"protocols": ("v4.channel.k8s.io",), "ports": "1," * 40}, 400),
    ],
)
def test_what_is_asked_for_must_make_sense(
    tmp_path: Path, subresource: str, query: dict[str, Any], status: int
) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with web_socket(kubectl, subresource, **query):
                pass
        assert refused.value.status == status

    on_a_real_node(tmp_path, scenario, tls=False)


def test_a_client_that_does_not_speak_spdy_is_cut_off(tmp_path: Path) -> None:
    async def scenario(kubectl: Kubectl) -> None:
        await kubectl.running("a", ENDLESS)
        protocols = ("SPDY/3.1+portforward.k8s.io",)
        async with web_socket(kubectl, "portforward", protocols=protocols) as (opened, _):
            await opened.send_bytes(b"\xff" * 1000)
            assert (await asyncio.wait_for(opened.receive(), 20)).type is aiohttp.WSMsgType.CLOSE

    on_a_real_node(tmp_path, scenario, tls=False)
