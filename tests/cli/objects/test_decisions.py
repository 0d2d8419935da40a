"""`stromboli decisions` and `policy show --in-force` on a running cluster, and how cycles are put into words."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import Result

from stromboli.cli.objects import decisions_command
from stromboli.cli.objects.decisions_command import CycleLines
from stromboli.cli.output import StatusFormat
from stromboli.embedded.cluster_services import ServiceConfig, nodes, scheduler
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import resource_of
from stromboli.kube.cluster_access import find_access
from stromboli.policy.policy_file import PolicyFile
from stromboli.policy.presets import PRESETS
from stromboli.scheduler.explain.cycle_documents import CycleDecision, CycleEntry, CycleList, LostCause
from stromboli.simulator.job_manifests import job_manifests
from tests.embedded.up_process import eventually
from tests.serving import Asked, Reply, serving

Run = Callable[..., Result]
CATALOG = load_catalog()
UID = "3c451dcc-6cea-461d-a384-c4d989f06e65"


class Cluster:
    """A cluster with a scheduler beside the test."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "data" / "kubeconfig"
        self.policy = folder / "policy.yaml"
        self.policy.write_text(PRESETS["basic"])
        self._data = folder / "data"
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        data = DataFolder(self._data)
        config = ServiceConfig(node_manifests(["1x4cpu"]), CATALOG, PolicyFile(self.policy, CATALOG))
        try:
            async with EmbeddedCluster(data, config, services=(nodes, scheduler)):
                self._ready.set()
                await self._end.wait()
        finally:
            self._ready.set()
            data.release()

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def submit(self, name: str, pods: int) -> None:
        async def create() -> None:
            async with Client(find_access(str(self.kubeconfig))) as client:
                for content in job_manifests(
                    name, namespace="default", queue="default", phase="Pending", pods=pods, cpu=1
                ):
                    for container in content["spec"].get("containers", ()):
                        container["image"] = "none"
                    await client.create(resource_of(content), content, "default")

        asyncio.run(create())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("decisions")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", str(folder))
        made = Cluster(folder)
        made.start()
        yield made
        made.stop()


@pytest.fixture(autouse=True)
def no_other_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for name in ("HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))


# -- on a cluster


def test_the_cycles_of_a_cluster_are_a_table_or_a_document(run: Run, cluster: Cluster) -> None:
    cluster.submit("train", 2)

    def table(*options: str) -> list[str]:
        result = run("decisions", "--kubeconfig", cluster.kubeconfig, *options)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout.splitlines()

    eventually(lambda: any("default/train-0 to n" in line for line in table()))
    titles = table()[0]
    assert titles.split("   ")[0] == "CYCLE"
    assert all(title in titles for title in ("AGE", "TOOK", "BY ACTION", "BOUND", "EVICTED", "WHAT"))
    assert "REFUSED" in table("-o", "wide")[0]
    document = json.loads("\n".join(table("-o", "json")))
    assert (document["schema"], document["leader"]) == (1, "stromboli up")
    assert sum(entry.get("bound", 0) for entry in document["cycles"]) == 2
    assert len(table("--limit", "1")) == 2


def test_what_was_wrong_with_the_last_edit_of_the_policy_is_told(run: Run, cluster: Cluster) -> None:
    def told() -> Result:
        return run("policy", "show", "--in-force", "--kubeconfig", cluster.kubeconfig)

    assert f"note: {cluster.policy} has been in force for " in told().stderr
    assert "warning" not in told().stderr
    cluster.policy.write_text('actions: "alocate"\n')
    eventually(lambda: "refused" in told().stderr)
    assert (
        f'warning: {cluster.policy}:1: failed to find Action alocate; did you mean "allocate"?'
        in told().stderr
    )
    cluster.policy.write_text(PRESETS["basic"])
    eventually(lambda: "warning" not in told().stderr)


def test_a_user_without_the_right_is_told_which_one_is_missing(run: Run, tmp_path: Path) -> None:
    def forbidden(asked: Asked) -> Reply:
        message = (
            'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope'
        )
        status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}
        return 403, json.dumps(status).encode()

    with serving(forbidden) as server:
        result = run("decisions", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert result.exit_code == 1
    assert 'does not tell what it decided: pods is forbidden: User "ann" cannot list' in result.stderr


def kubeconfig(folder: Path, address: str) -> Path:
    file = folder / "config"
    content = {
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(content))
    return file


# -- following


def cycles_of(since: float, *entries: CycleEntry) -> bytes:
    newest = entries[-1].last_number
    return msgspec.json.encode(CycleList("me", since, 1, newest, list(entries)))


def bound(number: int, name: str) -> CycleEntry:
    decision = CycleDecision("bound", "default", name, node="n1")
    return CycleEntry(number, time.time(), last_number=number, bound=1, decisions=[decision])


def idle(number: int) -> CycleEntry:
    return CycleEntry(number, 1.0, kind="idle", last_number=number)


def test_what_comes_is_shown_once_and_another_leader_begins_anew(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(
        [
            cycles_of(1.0, bound(1, "first")),
            cycles_of(1.0, idle(2)),
            cycles_of(1.0, bound(3, "third")),
            cycles_of(2.0, bound(5, "new-fifth")),
            cycles_of(2.0, bound(1, "new-first"), bound(5, "new-fifth")),
        ]
    )
    paths: list[str] = []
    notes: list[str] = []

    def answer(asked: Asked) -> Reply:
        paths.append(asked.path)
        body = next(answers, None)
        return body if body is not None else (503, b"gone")

    def interrupt(note: str) -> None:
        """As Ctrl-C when the leader is gone."""
        notes.append(note)
        raise KeyboardInterrupt

    monkeypatch.setattr(decisions_command, "PAUSE", 0.01)
    monkeypatch.setattr(decisions_command, "print_note", interrupt)
    with serving(answer) as server:
        result = run("decisions", "-w", "--kubeconfig", kubeconfig(tmp_path, server.url))
    names = [line.split("default/")[1].split()[0] for line in result.stdout.splitlines()[1:]]
    assert names == ["first", "third", "new-first", "new-fifth"]
    assert paths[:5] == [
        "/explain/cycles?limit=20",
        "/explain/cycles?after=1",
        "/explain/cycles?after=2",
        "/explain/cycles?after=3",
        "/explain/cycles",
    ]
    assert notes == ["not read this time: the leader does not tell what it decided: gone"]
    assert result.exit_code == 130


# -- in words


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"kind": "idle"}, "nothing decided"),
        ({"kind": "lost", "lost": LostCause("plugin 'x' failed", "x")}, "lost: plugin 'x' failed"),
        ({"let_in": 1, "decisions": [CycleDecision("let-in", "a", "train")]}, "a/train let in"),
        ({"let_in": 1, "decisions": [CycleDecision("let-in", "a", f"train-{UID}")]}, "a/train let in"),
        (
            {"let_in": 1, "decisions": [CycleDecision("let-in", "a", f"podgroup-{UID}")]},
            f"a/podgroup-{UID} let in",
        ),
        (
            {"evicted": 1, "decisions": [CycleDecision("evicted", "a", "p", beneficiary=f"b/urgent-{UID}")]},
            "a/p evicted for b/urgent",
        ),
        (
            {
                "bound": 3,
                "evicted": 1,
                "decisions": [
                    CycleDecision("bound", "a", "p0", node="n1"),
                    CycleDecision("evicted", "b", "p1", node="n1", beneficiary="a/urgent"),
                ],
            },
            "b/p1 evicted for a/urgent, a/p0 to n1 and 2 more",
        ),
        (
            {"evicted": 1, "moved": 1, "decisions": [CycleDecision("moved", "a", "p", destination="n2")]},
            "a/p moved to n2",
        ),
        ({"bound": 9, "left_out": 9}, "9 decisions"),
        ({"released": 1, "decisions": [CycleDecision("gate-removed", "a", "p")]}, "a/p let out of the gate"),
    ],
)
def test_a_cycle_is_a_line(changes: dict[str, Any], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    entry = CycleEntry(
        7, time.time(), last_number=7, seconds=0.5, parts={"open": 0.1, "allocate": 0.4}, **changes
    )
    CycleLines(StatusFormat.TABLE).print(CycleList(cycles=[entry], newest=7))
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith("7 ")
    assert "500 ms" in line
    assert "allocate 400 ms" in line
    assert "open" not in line
    assert line.endswith(f"   {what}")


def test_a_run_of_cycles_shows_what_each_took(capsys: pytest.CaptureFixture[str]) -> None:
    run_of_five = CycleEntry(
        3, 1.0, kind="idle", last_number=7, cycles=5, seconds=0.5, parts={"open": 0.1, "allocate": 0.4}
    )
    CycleLines(StatusFormat.TABLE).print(CycleList(cycles=[run_of_five], newest=7))
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith("3-7 ")
    assert "   100 ms each   allocate 80 ms   " in line


def test_names_are_harmless_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    decision = CycleDecision("bound", "a\x1b[31m", "b\nc", node="n" * 5000)
    CycleLines(StatusFormat.WIDE).print(CycleList(cycles=[CycleEntry(1, 1.0, bound=1, decisions=[decision])]))
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2
    assert len(text) < 1000
