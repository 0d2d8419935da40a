"""The parts of the process that need no API server: errands, endpoints, queues, logs, the command."""

from __future__ import annotations

import asyncio
import io
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import msgspec
import pytest
from typer.testing import CliRunner

from stromboli.cli import cli_errors
from stromboli.cli.main import app
from stromboli.daemon.delegated_authorization import DelegatedAuthorization
from stromboli.daemon.endpoints import Endpoints
from stromboli.daemon.flags import BadFlag
from stromboli.daemon.listening_sockets import split_address
from stromboli.daemon.log_format import Lines, StderrHandler, about
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.engine.decisions import Bind, Evict
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import Access
from stromboli.kube.reflector import UnusableObject
from stromboli.kube.request import ApiError, Request
from stromboli.scheduler.cycle_thread import log_decisions
from stromboli.scheduler.mirror.cluster_watches import wait_until_synced
from stromboli.scheduler.options import parse
from stromboli.scheduler.process import Process, add_debug_routes
from stromboli.scheduler.replica import NoQueues, ensure_queues, unusable_event
from stromboli.scheduler.thread_seam import Unavailable
from tests.kube.fake_api import GONE, FakeApi, body


class FakeIntrospection:
    def __init__(self) -> None:
        self.why = ""
        self.failed: list[str] = []
        self.guard = TelemetryGuard(self.failed.append)

    def alive(self) -> str:
        return ""

    def ready(self) -> str:
        return self.why

    async def metrics(self) -> bytes:
        return b"volcano_queue_weight 1\n"

    async def consistency(self) -> list[str]:
        return [self.why] if self.why else []

    async def dump(self) -> str:
        raise Unavailable("not leading")


def test_endpoints_show_health_metrics_and_what_is_wrong() -> None:
    introspection = FakeIntrospection()
    flags = ["--enable-healthz", "--enable-metrics", "--enable-pprof"]
    addresses = ["--healthz-address=127.0.0.1:0", "--listen-address=127.0.0.1:0"]

    async def run() -> list[tuple[int, str]]:
        options = parse([*flags, *addresses])
        authorization = DelegatedAuthorization(FakeApi(answer=_allowing))  # type: ignore[arg-type]
        endpoints = Endpoints(options, introspection, partial(add_debug_routes, introspection, authorization))
        await endpoints.start()
        health, metrics = endpoints.ports["health"], endpoints.ports["metrics"]
        responses = [
            await asyncio.to_thread(_get, health, path) for path in ("/healthz", "/readyz", "/livez")
        ]
        responses.append(await asyncio.to_thread(_get, metrics, "/metrics"))
        introspection.why = "something"
        responses.append(await asyncio.to_thread(_get, health, "/readyz"))
        responses.append(await asyncio.to_thread(_get, metrics, "/debug/consistency"))
        responses.append(await asyncio.to_thread(_get, metrics, "/debug/dump", "POST"))
        for path, method in (
            ("/debug/consistency", "GET"),
            ("/debug/dump", "POST"),
            ("/debug/stacks", "GET"),
        ):
            assert (await asyncio.to_thread(_get, metrics, path, method, ""))[0] == 401, path
        await endpoints.stop()
        return responses

    responses = asyncio.run(run())
    assert [status for status, _ in responses] == [200, 200, 200, 200, 503, 500, 503]
    assert responses[4][1] == "something"
    assert msgspec.json.decode(responses[5][1]) == {"consistent": False, "differences": ["something"]}


def _allowing(request: Request) -> bytes:
    """An API server that knows every token and allows everything."""
    return b'{"status": {"authenticated": true, "user": {"username": "ann"}, "allowed": true}}'


def _get(port: int, path: str, method: str = "GET", token: str = "t") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Broken(FakeIntrospection):
    """Cannot tell a thing about itself."""

    def alive(self) -> str:
        raise OverflowError("inf")

    ready = alive

    async def metrics(self) -> bytes:
        return self.alive().encode()


def test_a_process_that_cannot_tell_how_it_is_is_alive_and_not_ready() -> None:
    broken = Broken()

    async def run() -> list[int]:
        options = parse(
            [
                "--enable-healthz",
                "--enable-metrics",
                "--healthz-address=127.0.0.1:0",
                "--listen-address=127.0.0.1:0",
            ]
        )
        endpoints = Endpoints(options, broken)
        await endpoints.start()
        health, metrics = endpoints.ports["health"], endpoints.ports["metrics"]
        asked = ((health, "/livez"), (health, "/readyz"), (metrics, "/metrics"))
        statuses = [(await asyncio.to_thread(_get, *where))[0] for where in asked]
        await endpoints.stop()
        return statuses

    assert asyncio.run(run()) == [200, 503, 500]
    assert broken.failed == ["probe", "probe", "metrics page"]


@pytest.mark.parametrize("handler", [StderrHandler(Lines(as_json=False)), cli_errors._StderrHandler(True)])
def test_a_log_that_cannot_be_written_stops_nobody(
    handler: logging.Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = io.StringIO()
    gone.close()
    monkeypatch.setattr("sys.stderr", gone)
    if isinstance(handler, StderrHandler):
        handler.stream = gone
    for message, arguments in (("bound", ()), ("%d pods", ("many",)), ("\ud800\n\x1b[2J", ())):
        handler.handle(logging.LogRecord("stromboli.x", logging.ERROR, "f", 1, message, arguments, None))


def test_addresses_as_go_writes_them() -> None:
    assert split_address(":8080") == (None, 8080)
    assert split_address("[::1]:80") == ("::1", 80)
    with pytest.raises(BadFlag):
        split_address("8080")


async def _no_sleep(_: float) -> None:
    pass


def test_queues_that_are_missing_are_made() -> None:
    def answer(request: Request) -> bytes | Exception:
        return GONE if request.method == "GET" and request.path.endswith("/root") else b"{}"

    api = FakeApi(answer=answer)
    asyncio.run(ensure_queues(api, "default", _no_sleep))
    (made,) = (request for request in api.requests if request.method == "POST")
    assert body(made)["spec"] == {"reclaimable": False, "weight": 1}


def test_without_the_crds_the_way_out_is_said() -> None:
    with pytest.raises(NoQueues, match="kubectl apply -k deploy/crds"):
        asyncio.run(ensure_queues(FakeApi(answer=lambda _: ApiError(404)), "default", _no_sleep))


def test_a_line_of_the_log_has_its_facts() -> None:
    record = logging.LogRecord("stromboli.x", logging.WARNING, "f", 1, "bound %s", ("it",), None)
    record.__dict__.update(about(pod="ns/a b", count=3))
    line = Lines(as_json=False).format(record)
    assert line.endswith('level=warn message="bound it" pod="ns/a b" count=3')
    assert msgspec.json.decode(Lines(as_json=True).format(record))["pod"] == "ns/a b"


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    ours = logging.getLogger("stromboli")
    before = ours.handlers[:], ours.level, ours.propagate
    yield
    ours.handlers[:], ours.level, ours.propagate = before


def test_the_command_says_what_is_wrong_with_its_flags(tmp_path: Path, logs_as_before: None) -> None:
    runner = CliRunner()
    for flags, responses in (
        (["--leader-elekt"], "did you mean"),
        (["--leader-elect-lease-duration=5s"], "must be longer"),
        (["--disable-default-scheduler-config"], "needs --scheduler-conf"),
        ([f"--kubeconfig={tmp_path / 'none'}"], "none"),
    ):
        done = runner.invoke(app, ["scheduler", *flags])
        assert done.exit_code in (1, 2), flags
        assert responses in done.output
    assert "--kube-api-qps" in runner.invoke(app, ["scheduler", "--help"]).output
    assert "stromboli" in runner.invoke(app, ["scheduler", "--version"]).output


def test_decisions_are_told_in_few_lines() -> None:
    decisions = [Bind("ns", f"p-{n}", f"u{n}", f"n{n % 2}", "ns/j") for n in range(4)]
    evict = Evict("ns", "v", "u", "n", "ns/k", "preempt", "preempt", "ns/j")
    outcome = SimpleNamespace(decisions=[*decisions, evict], seconds={})
    logged: list[tuple[str, object]] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append((record.getMessage(), vars(record)["fields"]))  # type: ignore[method-assign]
    logger = logging.getLogger("stromboli.scheduler.cycle_thread")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        log_decisions(outcome)  # type: ignore[arg-type]
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert [message for message, _ in logged] == ["evict", "bind"]
    assert logged[1][1] == {"job": "ns/j", "pods": 4, "nodes": 2}


class _Waiting:
    """A mirror whose lists never come in."""

    unsynced: ClassVar[list[str]] = ["something: forbidden"]

    def __init__(self, missing_essentials: list[str]) -> None:
        self.missing_essentials = missing_essentials

    async def synced(self) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(("missing_essentials", "goes_on"), [([], True), (["pods"], False)])
def test_nothing_is_scheduled_before_pods_can_be_seen(missing_essentials: list[str], goes_on: bool) -> None:
    async def went_on() -> bool:
        patience = 30 if goes_on else 0.2
        try:
            await asyncio.wait_for(wait_until_synced(_Waiting(missing_essentials), 0.01), patience)
        except TimeoutError:
            return False
        return True

    assert asyncio.run(went_on()) is goes_on


def test_the_lease_is_not_renewed_while_the_process_should_be_replaced() -> None:
    access = Access("http://127.0.0.1:1")
    process = Process(parse(["--leader-elect=true"]), access, lambda: pytest.fail("not needed"))
    process._join_election(Client(access))
    election = process._election
    assert election is not None
    assert election._problem() == ""
    process._replica = SimpleNamespace(thread=SimpleNamespace(problem="plugin 'x' hangs"))  # type: ignore[assignment]
    assert election._problem() == "plugin 'x' hangs"


@pytest.mark.parametrize(("namespace", "key"), [("", "n1"), ("team", "team/n1")])
def test_unusable_objects_are_logged_by_their_names(
    caplog: pytest.LogCaptureFixture, namespace: str, key: str
) -> None:
    unusable_event(UnusableObject("Node", namespace, "n1", "uid", "metadata: too large"))
    assert caplog.messages == [f"Node {key} cannot be used: metadata: too large"]
