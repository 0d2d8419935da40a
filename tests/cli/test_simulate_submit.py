"""`stromboli simulate --submit`: when a job would start, on files and on a live cluster."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from typer.testing import Result

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode
from stromboli.cli.simulate import live_cluster
from stromboli.cli.simulate.moment_text import Clock, span_text
from stromboli.cli.simulate.what_if_text import AnswerText
from stromboli.cli.status.cluster_policy import CONFIG_MAP
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource, resource_of
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import ApiError
from stromboli.kube.watch_decoding import ListPage
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import priority_class
from tests.embedded.background_server import background_server
from tests.simulator.what_if.questions import GANGS, NOW, PREEMPTION, ask, running, waiting

Run = Callable[..., Result]
Manifest = dict[str, Any]
NOON = ("--now", "2026-11-01T12:00:00Z")
BUSY = [*nodes("n1 cpu=4"), *running("a", "n1", 10, "1h", cpu=4), *waiting("b", "1h", cpu=4)]


def write(folder: Path, name: str, manifests: list[Manifest]) -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump_all(manifests))
    return file


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    return write(tmp_path, "cluster.yaml", BUSY)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return write(tmp_path, "mine.yaml", waiting("mine", "30m", cpu=4))


@pytest.fixture
def gangs(tmp_path: Path) -> Path:
    file = tmp_path / "gangs.conf"
    file.write_text(GANGS)
    return file


def text_of(answer: Any, wide: bool = False) -> str:
    out = Console(width=200, file=io.StringIO(), highlight=False)
    AnswerText(out, answer, wide).print()
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_the_table_says_when_it_starts_and_on_what_that_rests(
    run: Run, busy: Path, mine: Path, gangs: Path
) -> None:
    result = run("simulate", "--submit", mine, "-f", busy, *NOON, "--policy", gangs)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1] == "default/mine starts at 13:50:00 (in 1h50m) (1 pod, queue default)"
    assert lines[2:4] == ["  ends by 14:20:00 (in 2h20m), its time limit of 30m", "  on n1"]
    assert "  its room comes from default/b (13:50:00), default/a (12:50:00)" in lines
    assert "  1 other job of those that wait starts before it" in lines
    assert "No job is delayed, and no pod is evicted." in lines
    assert "  1 running job ends at its time limit; what ends sooner makes room sooner." in lines


def test_json_and_yaml_have_clock_times_and_seconds_from_now(
    run: Run, busy: Path, mine: Path, gangs: Path
) -> None:
    arguments = ("simulate", "--submit", mine, "-f", busy, *NOON, "--policy", gangs)
    document = json.loads(run(*arguments, "-o", "json").stdout)
    assert document == yaml.safe_load(run(*arguments, "-o", "yaml").stdout)
    (job,) = document["jobs"]
    assert (job["start"], job["start_s"]) == ("2026-11-01T13:50:00Z", 6600.0)
    assert (job["end_s"], job["run_time_s"], job["run_time_from"]) == (8400.0, 1800.0, "time-limit")
    assert job["waits"][0]["until_s"] == 6600.0
    assert (document["starts"], document["delayed"], document["evicted"]) == (True, [], [])
    assert document["now"] == "2026-11-01T12:00:00Z"


def test_what_does_not_start_has_an_exit_status_of_its_own(run: Run, tmp_path: Path, gangs: Path) -> None:
    cluster = write(tmp_path, "c.yaml", [*nodes("n1 cpu=4"), *running("web", "n1", 10, cpu=4)])
    job = write(tmp_path, "j.yaml", waiting("mine", "30m", cpu=4))
    result = run("simulate", "--submit", job, "-f", cluster, *NOON, "--policy", gangs)
    assert result.exit_code == 3
    assert "default/mine: start time unknown" in result.stdout
    assert "not before default/web has ended, which has no time limit" in result.stdout
    assert "not before 12:00:00 (now)" in result.stdout
    assert "--assume-run-time 2h lets it end (default/web)" in result.stdout
    assumed = run(
        "simulate", "--submit", job, "-f", cluster, *NOON, "--policy", gangs, "--assume-run-time", "2h"
    )
    assert assumed.exit_code == 0
    assert "default/mine starts at 14:00:00 (in 2h)" in assumed.stdout


def test_a_dump_brings_its_policy_and_its_clock(run: Run, tmp_path: Path, mine: Path) -> None:
    dump = tmp_path / "snapshot.json"
    head = {"name": "snapshot", "time": "2026-11-01T12:00:00Z", "config": GANGS}
    dump.write_text(json.dumps({**head, "memory": {}, "objects": BUSY}))
    document = json.loads(run("simulate", "--submit", mine, "-f", dump, "-o", "json").stdout)
    assert document["now"] == "2026-11-01T12:00:00Z"
    assert document["jobs"][0]["start_s"] == 6600.0


def test_a_policy_beside_the_manifests_is_in_force(run: Run, busy: Path, mine: Path) -> None:
    beside = busy.parent / "policy.yaml"
    beside.write_text(GANGS)
    result = run("simulate", "--submit", mine, "-f", busy, "-f", beside, *NOON, "-o", "json")
    assert json.loads(result.stdout)["policy"] == str(beside)


def test_backfill_may_be_asked_for_on_top_of_a_policy(run: Run, tmp_path: Path, gangs: Path) -> None:
    head = [*nodes("n1 cpu=4"), *running("a", "n1", 0, "2h", cpu=2), *waiting("head", "1h", cpu=4)]
    cluster = write(tmp_path, "c.yaml", head)
    job = write(tmp_path, "j.yaml", waiting("mine", "150m", cpu=2))
    arguments = ("simulate", "--submit", job, "-f", cluster, *NOON, "--policy", gangs, "-o", "json")
    plain, easy = (json.loads(run(*arguments, *more).stdout) for more in ((), ("--backfill", "easy")))
    assert [each["start_delay_s"] for each in plain["delayed"]] == [1800.0]
    assert (easy["jobs"][0]["start_s"], easy["delayed"]) == (10800.0, [])


def test_standard_input_may_be_submitted(run: Run, busy: Path, gangs: Path) -> None:
    text = yaml.safe_dump_all(waiting("mine", "30m", cpu=4))
    result = run("simulate", "--submit", "-", "-f", busy, *NOON, "--policy", gangs, input=text)
    assert "default/mine starts at 13:50:00" in result.stdout


def test_errors_name_the_object_and_the_way_out(run: Run, busy: Path, mine: Path, tmp_path: Path) -> None:
    wrong = write(tmp_path, "wrong.yaml", waiting("mine", cpu=4, queue="nowhere"))
    refused = run("simulate", "--submit", wrong, "-f", busy)
    assert (refused.exit_code, "nowhere" in refused.stderr) == (2, True)
    gone = run("simulate", "--submit", mine, "-f", tmp_path / "gone.yaml")
    assert (gone.exit_code, "gone.yaml: cannot be read" in gone.stderr) == (2, True)
    useless = run("simulate", "--submit", mine, "-f", busy, "--load", "2")
    assert "--load: without effect on --submit" in useless.stderr
    both = run("simulate", "--submit", mine, "-f", busy, "--kubeconfig", "k")
    assert "--kubeconfig: a cluster comes from files or is live" in both.stderr
    odd = run("simulate", "--submit", mine, "-f", busy, "--assume-run-time", "soon")
    assert "--assume-run-time soon: no time; write it as 2h or 1h30m" in odd.stderr
    assert "--now" in run("simulate", "--submit", mine, *NOON).stderr


def test_delays_and_evictions_are_listed_with_what_they_cost() -> None:
    priorities = [priority_class(value) for value in (1, 100)]
    cluster = [
        *priorities,
        *nodes("n1 cpu=4"),
        *running("low", "n1", 40, "2h", cpu=4, priority=1),
        *waiting("next", "1h", cpu=4, priority=1),
    ]
    answer = ask(cluster, waiting("mine", "1h", cpu=4, priority=100), PREEMPTION)
    text = text_of(answer)
    assert (
        "default/low-0 leaves n1 at 12:00:00 for default/mine, loses 40m of work and runs again from" in text
    )
    rows = [line.split() for line in text.splitlines()]
    assert ["default/next", "default", "15:00:00", "13:20:00", "1h40m"] in rows
    assert max(len(line) for line in text.splitlines()) < 160
    assert "Ends" in text_of(answer, wide=True)


def test_what_comes_after_a_job_without_a_limit_is_unknown_and_not_never() -> None:
    cluster = [
        *[priority_class(value) for value in (1, 100)],
        *nodes("n1 cpu=4"),
        *running("low", "n1", 40, "2h", cpu=4, priority=1),
        *waiting("next", "1h", cpu=4, priority=1),
    ]
    text = text_of(ask(cluster, waiting("mine", cpu=4, priority=100), PREEMPTION))
    assert "loses 40m of work and runs again at an unknown time" in text
    assert ["default/next", "default", "unknown", "13:20:00", "unknown"] in [
        line.split() for line in text.splitlines()
    ]
    assert "never" not in text
    waits = [*nodes("n1 cpu=4"), *running("web", "n1", 10, cpu=2), *waiting("next", "1h", cpu=4)]
    lines = text_of(ask(waits, waiting("mine", "1h", cpu=2))).splitlines()
    assert "No job is delayed, and no pod is evicted, as far as is known." in lines
    assert "Wait for jobs without a time limit to end, and may be delayed: default/next" in lines


def test_pods_that_start_later_than_the_job_are_told() -> None:
    cluster = [*nodes("n1 cpu=4"), *running("a", "n1", 0, "1h", cpu=2)]
    lines = text_of(ask(cluster, waiting("mine", "2h", pods=2, minimum=1, cpu=2))).splitlines()
    assert lines[2] == "  ends by 15:00:00 (in 3h), each pod at its time limit of 2h"
    assert "  all its pods have started by 13:00:00 (in 1h)" in lines
    lines = text_of(ask(cluster, waiting("mine", pods=4, minimum=1, cpu=2))).splitlines()
    assert "  2 of its 4 pods have no known start time" in lines


def test_moments_are_clock_times_with_the_date_on_another_day() -> None:
    clock = Clock(NOW)
    assert (clock.full(0), clock.full(5400), clock.full(None)) == (
        "12:00:00 (now)",
        "13:30:00 (in 1h30m)",
        "never",
    )
    assert clock.time(86_400) == "2026-11-02 12:00:00"
    spans = (0, 59, 60, 3661, 90_000, 8 * 86_400)
    assert [span_text(span) for span in spans] == ["0s", "59s", "1m", "1h1m", "1d1h", "8d"]


def test_moments_that_no_clock_shows_are_told_in_words(run: Run, tmp_path: Path, gangs: Path) -> None:
    jobs = [manifest for name in range(40) for manifest in waiting(f"w{name}", "2500000h", cpu=4)]
    cluster = write(tmp_path, "c.yaml", [*nodes("n1 cpu=4"), *jobs])
    job = write(tmp_path, "j.yaml", waiting("mine", "1h", cpu=4))
    arguments = ("simulate", "--submit", job, "-f", cluster, *NOON, "--policy", gangs)
    assert "default/mine starts at a time beyond the year 9999 (in 4166666d" in run(*arguments).stdout
    (answer,) = json.loads(run(*arguments, "-o", "json").stdout)["jobs"]
    assert (answer["start"], answer["start_s"]) == (None, 40 * 2500000 * 3600.0)


def test_a_dump_that_does_not_say_when_it_was_written_is_of_now(run: Run, tmp_path: Path, mine: Path) -> None:
    dump = tmp_path / "snapshot.json"
    for moment in (5, "soon"):
        dump.write_text(json.dumps({"time": moment, "config": GANGS, "objects": nodes("n1 cpu=4")}))
        result = run("simulate", "--submit", mine, "-f", dump)
        assert result.exit_code == 0, result.output


# -- a live cluster


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an API server with a busy node, a queue and a policy."""
    folder = tmp_path_factory.mktemp("server")
    with background_server(folder, crds=True):
        namespace, name, key = CONFIG_MAP
        container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "4"}}}
        objects = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace},
                "data": {key: GANGS},
            },
            *nodes("n1 cpu=4"),
            *queues("own"),
            *running("a", "n1", 0, "1h", queue="own", spec={"containers": [container]}),
        ]
        asyncio.run(create(folder / "kubeconfig", objects))
        yield folder / "kubeconfig"


async def create(kubeconfig: Path, objects: list[Manifest]) -> None:
    async with Client(find_access(str(kubeconfig))) as client:
        for content in objects:
            await client.create(resource_of(content), content, content["metadata"].get("namespace", ""))


def test_a_live_cluster_is_asked_with_its_own_policy(run: Run, server: Path, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "KUBECONFIG": ""}
    job = write(tmp_path, "j.yaml", waiting("mine", "30m", cpu=4, queue="own"))
    result = run("simulate", "--submit", job, "--kubeconfig", server, "-o", "json", env=home)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["policy"] == "volcano-system/volcano-scheduler-configmap"
    assert document["cluster"].startswith("https://")
    (answer,) = document["jobs"]
    assert (answer["queue"], answer["start_s"], answer["after"][0]["job"]) == ("own", 3600.0, "default/a")
    assert document["assumptions"]["unknown_start"] == 1  # bound, and not seen to run
    gone = run("simulate", "--submit", job, "--kubeconfig", tmp_path / "none", env=home)
    assert gone.exit_code == 2
    assert "-f FILE takes a cluster from files" in gone.stderr


def test_what_may_not_be_listed_is_told_unless_there_is_no_answer_without_it(
    run: Run, server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbidden: set[type[Object]] = {HyperNode}
    listed = live_cluster.list_pages

    def list_pages(client: Client, resource: Resource, kind: type[Object]) -> AsyncIterator[ListPage]:
        if kind in forbidden:
            raise ApiError(403, "Forbidden", f"{resource.plural} is forbidden")
        return listed(client, resource, kind)

    monkeypatch.setattr(live_cluster, "list_pages", list_pages)
    job = write(tmp_path, "j.yaml", waiting("mine", "30m", cpu=4, queue="own"))
    arguments = ("simulate", "--submit", job, "--kubeconfig", server, "-o", "json")
    warnings = json.loads(run(*arguments).stdout)["warnings"]
    sentence = (
        "it is as if there were none of these, as they may not be listed: hypernodes.topology.volcano.sh"
    )
    assert sentence in warnings
    forbidden.add(Pod)
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert "pods is forbidden" in refused.stderr
