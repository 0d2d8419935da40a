"""Every example that is made for a cluster comes to the state that its comment promises."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stromboli.cli.main import app
from stromboli.kube.request import ApiError
from tests.examples.example_cluster import EXAMPLES, PODS, VOLCANO_JOBS, ExampleCluster, example_cluster

Scenario = Callable[[ExampleCluster], Coroutine[None, None, None]]
REFUSED = sorted((EXAMPLES / "refused").glob("*.yaml"))


@pytest.fixture(autouse=True)
def no_other_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def play(folder: Path, scenario: Scenario, nodes: str, policy: str | None = None) -> None:
    async def run() -> None:
        async with example_cluster(folder, nodes, policy) as cluster:
            await scenario(cluster)

    asyncio.run(run())


async def elastic(cluster: ExampleCluster) -> None:
    """Six of ten run, as many as the queue lets."""
    await cluster.apply("jobs/elastic.yaml")
    await cluster.until(lambda: cluster.running("elastic-"), 6)


async def priorities(cluster: ExampleCluster) -> None:
    """The coordinator is one of the two that run."""
    await cluster.apply("jobs/priorities.yaml")
    await cluster.until(lambda: cluster.running("priorities-"), 2)
    assert "priorities-coordinator-0" in await cluster.pods()


async def failures(cluster: ExampleCluster) -> None:
    await cluster.apply("jobs/failures.yaml")

    async def phases() -> list[str | None]:
        jobs = await cluster.jobs()
        return [jobs.get(name) for name in ("flaky", "bad-input", "one-is-enough")]

    await cluster.until(phases, ["Failed", "Terminated", "Completed"])
    (flaky,) = [job for job in await cluster.items(VOLCANO_JOBS) if job["metadata"]["name"] == "flaky"]
    assert flaky["status"]["retryCount"] == 2


async def time_to_live(cluster: ExampleCluster) -> None:
    """The job ends and is gone a little later, with its pod."""
    await cluster.apply("jobs/time-to-live.yaml")

    async def left() -> list[str]:
        pods = {*await cluster.pods("Succeeded"), *await cluster.pods()}
        return [name for name in {*await cluster.jobs(), *pods} if name.startswith("quick-")]

    assert len([name for name in await cluster.jobs() if name.startswith("quick-")]) == 1
    await cluster.until(left, [])


async def start_order(cluster: ExampleCluster) -> None:
    """All run in the end, and no pod was made before those that it depends on ran."""
    await cluster.apply("jobs/start-order.yaml")
    await cluster.until(lambda: cluster.running("start-order-"), 6)
    pods = {pod["metadata"]["name"]: pod for pod in await cluster.items(PODS)}
    for after, before in (("cache-0", "loader-0"), ("reader-0", "cache-0"), ("reader-0", "cache-1")):
        made = pods[f"start-order-{after}"]["metadata"]["creationTimestamp"]
        assert made >= pods[f"start-order-{before}"]["status"]["startTime"]


async def hosts(cluster: ExampleCluster) -> None:
    await cluster.apply("jobs/hosts.yaml")
    await cluster.until(lambda: cluster.running("hosts-solver-"), 2)
    (secret,) = [name for name in await cluster.names("v1", "Secret") if name.startswith("hosts-")]
    assert secret == "hosts-ssh"
    assert "hosts" in await cluster.names("v1", "Service")
    assert "hosts" not in await cluster.names("networking.k8s.io/v1", "NetworkPolicy")
    maps = await cluster.items({"apiVersion": "v1", "kind": "ConfigMap"})
    (files,) = [item["data"] for item in maps if item["metadata"]["name"] == "hosts-svc"]
    assert files["solver.host"].split() == ["hosts-solver-0.hosts", "hosts-solver-1.hosts"]


@pytest.mark.slow
def test_jobs_do_what_their_comments_say(tmp_path: Path) -> None:
    """All on one cluster, at the same time."""

    async def scenario(cluster: ExampleCluster) -> None:
        stories = (elastic, priorities, failures, time_to_live, start_order, hosts)
        await asyncio.gather(*(story(cluster) for story in stories))

    play(tmp_path, scenario, "4x8cpu,32Gi")


def test_a_team_borrows_and_gives_back(tmp_path: Path) -> None:
    async def scenario(cluster: ExampleCluster) -> None:
        await cluster.apply("borrowing/borrow.yaml")
        await cluster.until(lambda: cluster.running("borrowing-"), 8)
        await cluster.apply("borrowing/take-back.yaml")
        await cluster.until(lambda: cluster.running("taking-back-"), 4)
        await cluster.until(lambda: cluster.running("borrowing-"), 4)

    play(tmp_path, scenario, "8cpu,32Gi", "borrowing/policy.yaml")


def test_weights_decide_in_a_tree_of_queues(tmp_path: Path) -> None:
    async def scenario(cluster: ExampleCluster) -> None:
        await cluster.apply("weights/blocker.yaml")
        await cluster.until(cluster.pods, {"blocker-main-0": "n1"})
        await cluster.apply("weights/queues.yaml")
        await cluster.apply("weights/jobs.yaml")

        async def waiting() -> int:
            return len(await cluster.pods("Pending"))

        async def shares() -> Counter[str]:
            return Counter(name.partition("-")[0] for name in await cluster.pods())

        await cluster.until(waiting, 60)
        await cluster.delete(VOLCANO_JOBS, "blocker")
        await cluster.until(shares, {"vision": 13, "speech": 4, "search": 3})

    play(tmp_path, scenario, "20cpu,64Gi", "weights/policy.yaml")


def test_queues_keep_to_their_nodes(tmp_path: Path) -> None:
    async def scenario(cluster: ExampleCluster) -> None:
        await cluster.apply("node-groups/queues.yaml")
        await cluster.apply("node-groups/jobs.yaml")
        expected = {f"infer-server-{i}": "cards-1" for i in (0, 1)}
        expected |= {f"report-page-{i}": "old-1" for i in (0, 1)}
        await cluster.until(cluster.pods, expected)

    play(tmp_path, scenario, str(EXAMPLES / "node-groups" / "nodes.yaml"), "node-groups/policy.yaml")


def test_pods_are_packed_or_spread_as_they_ask(tmp_path: Path) -> None:
    async def scenario(cluster: ExampleCluster) -> None:
        await cluster.apply("placement/first.yaml")
        await cluster.until(lambda: cluster.running("first"), 1)
        there = (await cluster.pods())["first"]
        (other,) = {"n1", "n2"} - {there}
        await cluster.apply("placement/pods.yaml")
        await cluster.until(cluster.pods, {"first": there, "packed": there, "spread": other})

    play(tmp_path, scenario, "2x8cpu,32Gi", "placement/policy.yaml")


def test_who_has_just_begun_is_not_preempted(tmp_path: Path) -> None:
    async def scenario(cluster: ExampleCluster) -> None:
        await cluster.apply("cooldown/jobs.yaml")
        await cluster.until(lambda: cluster.running("fresh-"), 4)
        await cluster.until(lambda: cluster.running("seasoned-"), 4)
        await cluster.apply("cooldown/incident.yaml")
        await cluster.until(lambda: cluster.running("incident-"), 2)
        assert [await cluster.running(job) for job in ("fresh-", "seasoned-")] == [4, 2]

    play(tmp_path, scenario, "8cpu,32Gi", "cooldown/policy.yaml")


@pytest.mark.slow
def test_a_large_job_is_promised_a_start_and_only_who_does_not_delay_it_starts_before(tmp_path: Path) -> None:
    async def scenario(cluster: ExampleCluster) -> None:
        async def message(name: str) -> str:
            """Why the pod of a job waits."""
            pods = [pod for pod in await cluster.items(PODS) if pod["metadata"]["name"] == f"{name}-main-0"]
            conditions = [each for pod in pods for each in pod["status"].get("conditions", ())]
            return "".join(each.get("message", "") for each in conditions)

        async def is_told(name: str, words: str) -> bool:
            return words in await message(name)

        await cluster.apply("backfill/running.yaml")
        await cluster.until(lambda: cluster.running("simulation-"), 1)
        await cluster.apply("backfill/large.yaml")
        await cluster.until(lambda: is_told("training", "reserved to start by 20"), True)
        await cluster.apply("backfill/later.yaml")
        await cluster.until(lambda: cluster.running("test-"), 1)
        await cluster.until(lambda: is_told("sweep", "it fits now, but would delay an earlier job"), True)
        assert set(await cluster.pods()) == {"simulation-main-0", "test-main-0"}
        await cluster.delete(VOLCANO_JOBS, "simulation")
        await cluster.delete(VOLCANO_JOBS, "test")
        await cluster.until(lambda: cluster.running("training-"), 1)

    play(tmp_path, scenario, "10cpu,64Gi", "backfill/policy.yaml")


def test_what_is_to_be_refused_is_refused(tmp_path: Path) -> None:
    """By the API server, with a word of the field; and nothing of it is left."""

    async def scenario(cluster: ExampleCluster) -> None:
        for path in REFUSED:
            with pytest.raises(ApiError) as refusal:
                await cluster.apply(f"refused/{path.name}")
            assert "spec." in str(refusal.value), path.name
        assert await cluster.jobs() == {}

    play(tmp_path, scenario, "1cpu")


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_lint_finds_one_problem_in_what_is_refused(path: Path) -> None:
    """A queue that no file defines may exist in the cluster."""
    done = CliRunner().invoke(app, ["lint", str(path)])
    found = 0 if path.stem == "no-such-queue" else 1
    assert done.output.endswith(f"1 object checked, {found} problem{'' if found == 1 else 's'}\n")


def test_every_example_is_listed() -> None:
    page = (EXAMPLES / "README.md").read_text()
    files = [path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*.yaml")]
    assert [str(file) for file in files if f"({file})" not in page and f"({file.parent})" not in page] == []


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)", (EXAMPLES / "README.md").read_text())
    assert [link for link in links if not (EXAMPLES / link).exists()] == []
