"""`stromboli metrics` on clusters and at addresses, where there are metrics and where there are none."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

from stromboli.embedded.cluster_services import ServiceConfig, nodes, scheduler
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.extensions import load_catalog
from stromboli.policy.policy import default_policy
from tests.cli.metrics.metric_pages import CONTROLLERS, VOLCANO, healthy, metric
from tests.embedded.up_process import eventually
from tests.serving import Asked, Reply, serving

Run = Callable[..., Result]
CATALOG = load_catalog()
SYSTEM = "/api/v1/namespaces/volcano-system"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano"


@pytest.fixture(autouse=True)
def no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None but that of the test."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name in ("HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


# -- a cluster of `stromboli up`


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a whole cluster beside the test."""
    folder = tmp_path_factory.mktemp("up")
    ready, ends = threading.Event(), []

    async def serve() -> None:
        end = asyncio.Event()
        ends.append((asyncio.get_running_loop(), end))
        data = DataFolder(folder / "data")
        config = ServiceConfig(node_manifests(["2x4cpu"]), CATALOG, default_policy(CATALOG))
        try:
            async with EmbeddedCluster(data, config, services=(nodes, scheduler)):
                ready.set()
                await end.wait()
        finally:
            ready.set()
            data.release()

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", str(folder))
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        ready.wait()
        yield folder / "data" / "kubeconfig"
        loop, end = ends[0]
        loop.call_soon_threadsafe(end.set)
        thread.join()


def test_on_a_cluster_of_up_the_api_server_is_asked(run: Run, up: Path) -> None:
    eventually(lambda: "\nQUEUE " in run("metrics", "--kubeconfig", up).stdout)  # after the first cycle
    result = run("metrics", "--kubeconfig", up)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("the API server https://127.0.0.1:")
    assert "fine  leader       this replica leads\n" in result.stdout
    document = json.loads(run("metrics", "--kubeconfig", up, "-o", "json").stdout)
    assert {line["topic"] for line in document["lines"]} >= {"cycles", "plugins", "waiting", "requests"}
    assert {queue["name"] for queue in document["queues"]} == {"default", "root"}
    assert yaml.safe_load(run("metrics", "--kubeconfig", up, "-o", "yaml").stdout)["schema"] == 1
    assert "\nstromboli_leader 1.0\n" in run("metrics", "--kubeconfig", up, "--raw").stdout


def test_who_may_not_read_them_is_told_the_right(run: Run, up: Path, tmp_path: Path) -> None:
    config = yaml.safe_load(up.read_text())
    config["users"][0]["user"] |= {"as": "ann", "as-groups": ["system:authenticated"]}
    anns = tmp_path / "anns"
    anns.write_text(yaml.safe_dump(config))
    result = run("metrics", "--kubeconfig", anns)
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'user "ann" may not get /metrics/scheduler' in result.stderr
    assert "--url" in result.stderr


# -- other clusters, of which a server plays the API server


class FakeCluster:
    """What an API server answers, by path; anything else does not exist."""

    def __init__(self) -> None:
        self.replies: dict[str, Reply | list[Reply]] = {}

    def __call__(self, asked: Asked) -> Reply:
        path = asked.path.partition("?")[0]
        reply = self.replies.get(path, status(404, f"{path} not found"))
        return (reply.pop(0) if len(reply) > 1 else reply[0]) if isinstance(reply, list) else reply

    def has(self, path: str, content: dict[str, Any]) -> None:
        self.replies[path] = json.dumps(content).encode()

    def leads(self, pod: str, *arguments: str) -> None:
        self.has(LEASE, {"spec": {"holderIdentity": f"{pod}_1"}})
        self.has(f"{SYSTEM}/pods/{pod}", {"spec": {"containers": [{"args": list(arguments)}]}})

    def offers(self, *services: str) -> None:
        ports = {"ports": [{"port": 1, "name": "a"}, {"port": 8080, "name": "metrics"}]}
        items = [{"metadata": {"name": name}, "spec": ports} for name in services]
        self.has(f"{SYSTEM}/services", {"metadata": {}, "items": items})


def status(code: int, message: str) -> Reply:
    return code, json.dumps({"kind": "Status", "message": message}).encode()


def forbidden(resource: str) -> Reply:
    wish = f'get resource "{resource}" in API group "" in the namespace "volcano-system"'
    return status(403, f'x is forbidden: User "ann" cannot {wish}')


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def kubeconfig(cluster: FakeCluster, tmp_path: Path) -> Iterator[Path]:
    with serving(cluster) as server:
        file = tmp_path / "other-kubeconfig"
        content = {
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file.write_text(yaml.safe_dump(content))
        yield file


def test_the_pod_that_leads_is_asked_at_its_port(run: Run, cluster: FakeCluster, kubeconfig: Path) -> None:
    cluster.leads("scheduler-1", "--enable-metrics=true", "--listen-address=:9090")
    cluster.replies[f"{SYSTEM}/pods/scheduler-1:9090/proxy/metrics"] = VOLCANO.encode()
    result = run("metrics", "--kubeconfig", kubeconfig)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("pod volcano-system/scheduler-1, which leads, by the proxy;")
    assert "3 jobs short of members" in result.stdout
    assert "not told by this scheduler: leader, lost cycles" in result.stdout


def test_a_service_is_asked_until_the_replica_that_leads_answers(
    run: Run, cluster: FakeCluster, kubeconfig: Path
) -> None:
    standby = healthy()
    metric(standby, "leader").set(0)
    cluster.offers("stromboli-scheduler-service", "stromboli-controllers-service")
    pages = [standby.text(), standby.text(), healthy().text()]
    cluster.replies[f"{SYSTEM}/services/stromboli-scheduler-service:8080/proxy/metrics"] = [*pages]
    cluster.replies[f"{SYSTEM}/services/stromboli-controllers-service:8080/proxy/metrics"] = (
        CONTROLLERS.encode()
    )
    result = run("metrics", "--kubeconfig", kubeconfig)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Service volcano-system/stromboli-scheduler-service;")
    assert "this replica leads" in result.stdout
    assert "7 completed, 0 failed" in result.stdout


def test_where_no_way_leads_to_them_each_is_named_with_its_right_and_the_way_out(
    run: Run, cluster: FakeCluster, kubeconfig: Path
) -> None:
    cluster.replies[LEASE] = forbidden("leases")
    cluster.replies[f"{SYSTEM}/services"] = forbidden("services")
    cluster.replies[f"{SYSTEM}/services/stromboli-scheduler-service:8080/proxy/metrics"] = forbidden(
        "services/proxy"
    )
    result = run("metrics", "--kubeconfig", kubeconfig)
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'user "ann" may not get services/proxy in namespace volcano-system' in result.stderr
    assert "port-forward deployment/stromboli-scheduler 8080" in result.stderr
    assert "stromboli metrics --url http://127.0.0.1:8080/metrics" in result.stderr


def test_where_there_is_no_scheduler_that_is_told(run: Run, cluster: FakeCluster, kubeconfig: Path) -> None:
    cluster.offers()
    result = run("metrics", "--kubeconfig", kubeconfig, "--system-namespace", "elsewhere")
    assert result.exit_code == 1
    assert "there is no Lease elsewhere/volcano" in result.stderr


# -- an address


def test_an_address_needs_no_cluster(run: Run) -> None:
    with serving(lambda asked: healthy().text() if asked.path == "/metrics" else (404, b"")) as server:
        result = run("metrics", "--url", server.url, "-o", "wide")
        assert (result.exit_code, result.stderr) == (0, "")
        assert "\nACTION " in result.stdout
        assert "\nPLUGIN " in result.stdout
        assert "authorization" not in {name.lower() for name in server.asked[0].headers}
        wrong = run("metrics", "--url", f"{server.url}/nowhere")
    assert wrong.exit_code == 1
    assert "/nowhere: status 404" in wrong.stderr


@pytest.mark.parametrize(
    "url", ["ftp://a", "a", "http://", "http://u@a", "http://a b", "http://[", "http://a:x"]
)
def test_what_is_no_address_is_refused(run: Run, url: str) -> None:
    result = run("metrics", "--url", url)
    assert result.exit_code == 2
    assert "http://127.0.0.1:8080/metrics" in result.stderr


def test_a_page_without_metrics_and_one_with_commands_for_terminals_do_no_harm(run: Run) -> None:
    with serving(lambda _: b"<html>\x1b[2J</html>") as server:
        result = run("metrics", "--url", server.url)
        assert result.exit_code == 1
        assert "answers with what are no metrics" in result.stderr
        server.answer = lambda _: b'volcano_queue_share{queue_name="\x1b[2J\xe2\x80\xae"} 2\nnonsense\n'
        result = run("metrics", "--url", server.url)
        raw = run("metrics", "--url", server.url, "--raw")
    assert result.exit_code == 0
    assert "1 lines of" in result.stderr
    assert "\\x1b[2J\\u202e" in result.stdout
    assert "\x1b" not in result.output + raw.output


def test_raw_goes_with_no_other_form(run: Run) -> None:
    result = run("metrics", "--url", "http://127.0.0.1:1", "--raw", "-o", "json")
    assert result.exit_code == 2
    assert "leave out --watch and --output" in result.stderr


def test_a_watch_tells_what_each_interval_added_until_it_is_interrupted() -> None:
    metrics = healthy()
    readings = threading.Semaphore(0)

    def answer(_: Asked) -> Reply:
        metric(metrics, "schedule_attempts_total").labels("scheduled").inc(7)
        readings.release()
        return metrics.text()

    with serving(answer) as server:
        command = [sys.executable, "-m", "stromboli", "metrics", "--url", server.url, "-w", "--interval", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for _ in range(3):  # with the third, the second has been shown
                assert readings.acquire(timeout=60)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    first, second, *_ = output.split("counted in the last ")
    assert "207 scheduled" in first
    assert re.search(r"attempts +7 \(\S+/s\) scheduled", second)
