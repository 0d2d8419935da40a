"""What `stromboli top` keeps of a cluster: sums that stay right, and shares that are those of status."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.decoding import decode
from stromboli.cli.live.cluster_content import ClusterContent, from_quantities
from stromboli.cli.live.cluster_records import MOST_NEWS, ClusterRecords, Event, InvolvedObject
from stromboli.cli.status import cluster_status
from stromboli.cli.status.cluster_policy import PolicyInForce
from stromboli.cli.status.cluster_status import status_of
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.manifests import group

Manifest = dict[str, Any]
CATALOG = load_catalog()
TWO_TEAMS = (
    *nodes("n1 cpu=8,memory=32Gi; n2 cpu=8,memory=32Gi; g1 cpu=32,memory=256Gi,nvidia.com/gpu=8"),
    *queues("research weight=3; production weight=1; ex state=Closed"),
    *job_manifests("train", queue="research", pods=2, cpu=4, memory="8Gi", gpu=2, running_on="g1 g1"),
    *job_manifests("more", queue="research", pods=20, cpu=4),
    *job_manifests("serve", queue="production", pods=30, cpu=2, memory="1Gi", running_on="n1"),
)


def in_force(policy: str) -> PolicyInForce:
    return PolicyInForce(load_policy(policy, CATALOG), "policy")


def content_of(*manifests: Manifest, policy: str = PRESETS["full"]) -> ClusterContent:
    records = ClusterRecords()
    for manifest in manifests:
        records.put(decode(manifest), new=True)
    return ClusterContent(records, in_force(policy), CATALOG)


SHRUNKEN = (
    *nodes("n1 cpu=1; n2 cpu=8"),
    *queues("research; production"),
    *job_manifests("old", queue="research", cpu=8, running_on="n1"),
    *job_manifests("new", queue="production", pods=2, cpu=4),
)


@pytest.mark.parametrize("world", [TWO_TEAMS, SHRUNKEN])
@pytest.mark.parametrize("policy", ["full", "basic", "fair-share"])
def test_queues_deserve_what_status_says(policy: str, world: tuple[Manifest, ...]) -> None:
    objects: dict[Any, list[Any]] = {kind: [] for kind in cluster_status.LISTED}
    for manifest in world:
        objects[type(decode(manifest))].append(decode(manifest))
    told = status_of(objects, in_force(PRESETS[policy]), CATALOG, 0.0, {})["queues"]
    deserved = {queue["name"]: from_quantities(queue.get("deserved", {})) for queue in told}
    used = {queue["name"]: from_quantities(queue["used"]) for queue in told}
    shown = content_of(*world, policy=PRESETS[policy]).queues()
    assert {row["name"]: row["deserved"] for row in shown} == {
        row["name"]: deserved[row["name"]] for row in shown
    }
    for row in shown:
        assert {name: row["used"].get(name, 0) for name in used[row["name"]]} == used[row["name"]]


def test_what_runs_and_what_waits_is_counted() -> None:
    content = content_of(*TWO_TEAMS)
    summary = content.summary()
    assert summary["jobs"] == {"running": 2, "waiting": 1, "completed": 0}
    assert summary["pods"] == {"running": 3, "starting": 0, "waiting": 49}
    assert summary["used"] == {"cpu": 10.0, "memory": 17 * 2**30, "gpu": 4.0}
    rows = {row["name"]: row for row in content.nodes()}
    assert (rows["g1"]["pods"], rows["g1"]["used"]["gpu"]) == (2, 4.0)
    waiting = [row["waitsFor"] for row in content.jobs() if row["name"] == "more"]
    assert waiting == ["not admitted to queue research yet"]


POD_STATES = st.tuples(
    st.integers(0, 5), st.sampled_from(["", "n1", "n2"]), st.sampled_from(["Pending", "Running", "Succeeded"])
)


@given(st.lists(st.one_of(POD_STATES, st.integers(0, 5)), max_size=40))
def test_sums_are_those_of_the_pods_there_are_after_any_changes(changes: list[Any]) -> None:
    records, current = ClusterRecords(), dict[int, Manifest]()
    for change in changes:
        if isinstance(change, int):
            if change in current:
                records.drop(decode(current.pop(change)))
            continue
        number, node, phase = change
        manifest = job_manifests(f"job{number % 3}", pods=6, cpu=number + 1)[1 + number]
        manifest["spec"]["nodeName"], manifest["status"]["phase"] = node, phase
        current[number] = manifest
        records.put(decode(manifest), new=False)
    fresh = ClusterRecords()
    for manifest in current.values():
        fresh.put(decode(manifest), new=True)

    def sums(of: ClusterRecords) -> dict[str, Any]:
        parts = {**of.of_node, **of.of_group, "all": of.of_all}
        return {
            key: (
                each.placed,
                each.running,
                each.pending,
                each.used.get("cpu", 0),
                each.waiting.get("cpu", 0),
            )
            for key, each in parts.items()
        }

    assert sums(records) == sums(fresh)


def test_a_change_that_cannot_be_seen_is_none() -> None:
    records = ClusterRecords()
    (node,) = nodes("n1 cpu=8")
    records.put(decode(node), new=True)
    before = records.version
    node["metadata"]["resourceVersion"] = "7"
    records.put(decode(node), new=False)
    assert records.version == before
    records.drop(decode(node))
    assert records.version > before
    assert not any(records.total.values())


def test_starts_and_ends_of_jobs_are_news_once_all_is_listed() -> None:
    records = ClusterRecords()
    records.put(decode(group("a", phase="Inqueue", queue="q")), new=True)
    records.put(decode(group("a", phase="Running", queue="q")), new=False)
    assert not records.news
    records.tells_news = True
    records.put(decode(group("a", phase="Completed", queue="q")), new=False)
    told = [(news.what, news.subject, news.group) for news in records.news]
    assert told == [("completed", "default/a", "default/a")]


def eviction(pod: str, message: str, kind: str = "Pod") -> Event:
    event = decode({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}})
    event.metadata.creation_timestamp = None
    return Event(event.metadata, InvolvedObject(kind, "default", pod), "Evict", message)


def test_the_pods_of_one_eviction_are_one_piece_of_news() -> None:
    records = ClusterRecords()
    reason = (
        "Pod is evicted, because of reclaim for default/b-0ca1f1a2-25b8-4c08-ba22-310ae0e4edde: chosen by x"
    )
    for number in range(8):
        records.put(eviction(f"a-{number}", reason), new=True)
    records.put(eviction("a", reason, kind="PodGroup"), new=True)
    (news,) = records.news
    assert (news.subject, news.pods, news.text) == ("default/a-0", 8, "reclaim for default/b: chosen by x")
    for number in range(10 * MOST_NEWS):
        records.put(eviction("a", str(number)), new=True)
    assert len(records.news) == MOST_NEWS


def test_an_eviction_names_the_podgroup_of_the_pod_while_that_is_known() -> None:
    records = ClusterRecords()
    for manifest in job_manifests("train", pods=1, running_on="n1"):
        records.put(decode(manifest), new=True)
    records.put(eviction("train-0", "reclaim"), new=True)
    records.put(eviction("gone-0", "preempt"), new=True)
    assert [news.group for news in records.news] == ["default/train", ""]


def test_records_that_change_keep_their_places() -> None:
    records = ClusterRecords()
    kinds = (
        [group("a"), group("b")],
        job_manifests("train", pods=2)[1:],
        nodes("a cpu=1; b cpu=1"),
        queues("a; b"),
    )
    for first, second in kinds:
        records.put(decode(first), new=True)
        records.put(decode(second), new=True)
    tables = (records.groups, records.pods, records.nodes, records.queues)
    before = [list(table) for table in tables]
    for first, _ in kinds:
        first["metadata"]["labels"] = {"changed": "yes"}
        records.put(decode(first), new=False)
    assert [list(table) for table in tables] == before
    for first, _ in kinds:
        records.drop(decode(first))
    assert [list(table) for table in tables] == [order[1:] for order in before]


def test_all_jobs_come_in_order_of_their_names() -> None:
    content = content_of(group("b"), group("c"), group("a"))
    assert [row["name"] for row in content.all_jobs()] == ["a", "b", "c"]


def test_a_pause_keeps_what_is_shown() -> None:
    content = content_of(*TWO_TEAMS)
    content.freeze(True)
    content.records.drop(decode(TWO_TEAMS[0]))
    assert len(content.nodes()) == 3
    content.freeze(False)
    assert len(content.nodes()) == 2


def test_where_the_policy_cannot_be_asked_queues_show_what_they_declare() -> None:
    records = ClusterRecords()
    records.put(decode(queues("own deserved=cpu:10")[0]), new=True)
    (row,) = ClusterContent(records, None, None).snapshot(time.time())["queues"]
    assert (row["name"], row["deserved"]) == ("own", {"cpu": 10.0})


def elastic_gang(reason: str = "") -> list[Manifest]:
    """A gang of which one pod runs and two wait, for a reason that the scheduler wrote to them."""
    manifests = job_manifests("serve", queue="spare", pods=3, cpu=2, minimum=1, running_on="n1")
    for manifest in manifests[2:] if reason else ():
        manifest["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": reason}
        ]
    return manifests


def test_a_gang_that_runs_says_why_its_other_pods_wait():
    short = 'the capability of queue "spare" has too little cpu left'
    (row,) = content_of(*elastic_gang(f"Pod default/serve-1 waits: {short}; wait for room")).all_jobs()
    assert (row["phase"], row["waitsFor"]) == ("Running", short)
    (row,) = content_of(*elastic_gang()).all_jobs()
    assert row["waitsFor"] == "runs with 1 of 3 pods; the others wait"


def test_the_reason_of_a_pod_is_forgotten_once_it_has_a_node():
    records = ClusterRecords()
    for manifest in elastic_gang("no room"):
        records.put(decode(manifest), new=True)
    assert records.of_group["default/serve"].reasons == {"no room": 2}
    for manifest in job_manifests("serve", queue="spare", pods=3, cpu=2, minimum=1, running_on="n1 n1 n1"):
        records.put(decode(manifest), new=True)
    assert records.of_group["default/serve"].reasons == {}
    assert ClusterContent(records, None, None).all_jobs()[0]["waitsFor"] == ""


def test_a_gang_that_is_not_let_in_asks_for_its_least_amounts():
    asked = {"cpu": "60", "nvidia.com/gpu": "240", "pods": "30"}
    (row,) = content_of(group("big", 30, phase="Pending", minResources=asked)).all_jobs()
    assert (row["pods"], row["pending"], row["toCome"]) == (0, 0, 30)
    assert row["asks"] == {"cpu": 60.0, "memory": 0.0, "gpu": 240.0}
    (row,) = content_of(group("big", 30, phase="Inqueue", minResources=asked)).all_jobs()
    assert (row["toCome"], row["asks"]) == (0, {})


def test_a_gang_whose_least_amounts_cannot_be_read_is_kept_without_them():
    (row,) = content_of(group("odd", 2, phase="Pending", minResources={"cpu": "many"})).all_jobs()
    assert (row["name"], row["toCome"], row["asks"]["cpu"]) == ("odd", 2, 0.0)
