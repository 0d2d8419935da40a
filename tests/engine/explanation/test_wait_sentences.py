"""The sentence in conditions and events, gate by gate: what holds the job, what is short, and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from stromboli.api import names
from stromboli.api.wait_messages import MAX_BYTES, headline, wait_message, wait_sentence
from stromboli.engine.explanation.diagnosis import Gate
from stromboli.engine.plugin import Plugin
from stromboli.model.job import Job
from stromboli.testing import World
from tests.manifests import group, hyper_node, pod

PAGE = (Path(__file__).parents[3] / "docs" / "scheduler.md").read_text()
TREE = (
    'actions: "enqueue, allocate"\n'
    "tiers: [{plugins: [{name: gang}, {name: capacity, enableHierarchy: true}, {name: predicates}]}]\n"
)
QUOTA = {
    "kind": "ResourceQuota",
    "metadata": {"name": "team"},
    "status": {"hard": {"cpu": "4"}, "used": {"cpu": "3"}},
}
LEAVING = {
    "kind": "Pod",
    "metadata": {"name": "old", "deletionTimestamp": "2026-11-01T11:00:00Z"},
    "spec": {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "4"}}}]},
    "status": {"phase": "Running"},
}
TOPOLOGY = {
    "kind": "PodGroup",
    "metadata": {"name": "train"},
    "spec": {"minMember": 1, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
}
AFTER = {
    "kind": "PodGroup",
    "metadata": {"name": "train", "annotations": {names.AFTER: "afterok:prepare"}},
    "spec": {"minMember": 1},
}


class Broken(Plugin):
    """Fails over every job."""

    name = "broken"

    def job_ready(self, job: Job) -> bool:
        raise ValueError(f"not even number {id(job)}")


def world(nodes: str = "n1 cpu=4", queues: str = "", **train: object) -> World:
    return World(nodes=nodes, queues=queues).job("train", **{"cpu": 1, **train})  # type: ignore[arg-type]


def sentence(made: World, policy: str = "", actions: str = "enqueue, allocate", plugins: str = "gang") -> str:
    own = [Broken] if "broken" in plugins else []
    result = made.run(policy=policy) if policy else made.run(actions, plugins, plugin_classes=own)
    return result.pending["default/train"].sentence


# Gate, the sentence after "PodGroup train waits: ", and how it comes about.
SENTENCES: list[tuple[Gate, str, Callable[[], str]]] = [
    (
        "pod-group",
        "PodGroup default/train does not exist; "
        "create it, or correct the annotation scheduling.k8s.io/group-name of its pods",
        lambda: sentence(world().remove({"kind": "PodGroup", "metadata": {"name": "train"}})),
    ),
    (
        "queue",
        'queue "research" does not exist; create it, or set spec.queue of the PodGroup',
        lambda: sentence(world(queue="research")),
    ),
    (
        "queue",
        'queue "research" is closed; open it: stromboli queue open research',
        lambda: sentence(world(queues="research state=Closed", queue="research"), plugins="gang proportion"),
    ),
    (
        "pipeline",
        "capacity is being freed for it; no action needed: it starts once that capacity is free",
        lambda: sentence(world(cpu=4).add(LEAVING)),
    ),
    (
        "validity",
        "Not enough valid tasks for gang-scheduling, min: 3; create the missing pods or lower spec.minMember",
        lambda: sentence(world(pods=2, minimum=3)),
    ),
    (
        "validity",
        'queue "lab" has child queues and takes no jobs itself; use "team"',
        lambda: sentence(world(queues="lab; team parent=lab", queue="lab"), policy=TREE),
    ),
    (
        "validity",
        "plugin 'broken' failed in job_ready: ValueError; fix the plugin or remove it from the policy",
        lambda: sentence(world(), plugins="gang broken"),
    ),
    (
        "scheduling-gates",
        "its pods have scheduling gates: example.com/licence; it continues when the controller "
        "that set the gates removes them",
        lambda: sentence(world(spec={"schedulingGates": [{"name": "example.com/licence"}]})),
    ),
    (
        "scheduling-gates",
        "it waits for other jobs: afterok:prepare; no action needed: it continues when these jobs "
        "end as required, and its events report if they cannot",
        lambda: sentence(world(spec={"schedulingGates": [{"name": names.AFTER}]}).add(AFTER)),
    ),
    (
        "enqueue",
        'not admitted to queue "default": resource in cluster is overused: overused cpu; free '
        "capacity may be reserved for admitted jobs: wait until these and running jobs end, add nodes or request less",
        lambda: sentence(
            world(cpu=3, min_resources={"cpu": 3}).job("old", cpu=3, running_on="n1"), plugins="overcommit"
        ),
    ),
    (
        "enqueue",
        'not admitted to queue "research": queue resource quota insufficient: insufficient cpu; '
        'wait for jobs of queue "research" to end or raise the capability of queue "research" (cpu '
        "2)",
        lambda: sentence(
            world(queues="research capability=cpu:2", queue="research", cpu=2, min_resources={"cpu": 2}).job(
                "old", queue="research", cpu=1, running_on="n1", min_resources={"cpu": 1}
            ),
            plugins="proportion",
        ),
    ),
    (
        "enqueue",
        'not admitted to queue "team": queue resource quota insufficient: insufficient cpu; wait '
        'for jobs of queue "team" to end or raise the capability of queue "lab" (cpu 2)',
        lambda: sentence(
            world(
                queues="lab capability=cpu:2; team parent=lab", queue="team", cpu=2, min_resources={"cpu": 2}
            ).job("old", queue="team", cpu=1, running_on="n1", min_resources={"cpu": 1}),
            policy=TREE,
        ),
    ),
    (
        "enqueue",
        'not admitted to queue "team": queue resource quota insufficient: insufficient cpu; raise '
        'the capability of queue "lab" (cpu 2) or lower the guarantees of other queues',
        lambda: sentence(
            world(
                queues="lab capability=cpu:2 guarantee=cpu:1; team parent=lab; other parent=lab guarantee=cpu:1",
                queue="team",
                cpu=2,
                min_resources={"cpu": 2},
            ),
            policy=TREE,
        ),
    ),
    (
        "enqueue",
        'not admitted to queue "default": resource quota insufficient: quota "team" of its '
        "namespace has too little cpu left; wait until pods of the namespace end, or raise that "
        "quota",
        lambda: sentence(world(cpu=2, min_resources={"cpu": 2}).add(QUOTA), plugins="resourcequota"),
    ),
    (
        "nodes",
        "nodes are unavailable: Insufficient cpu; wait until enough cpu is free, add nodes or request less",
        lambda: sentence(world(cpu=3).job("old", cpu=3, running_on="n1")),
    ),
    (
        "nodes",
        "nodes are unavailable: Insufficient cpu; no node is large enough: request less cpu per "
        "pod or add larger nodes",
        lambda: sentence(world(cpu=9)),
    ),
    (
        "nodes",
        "nodes are unavailable: node(s) had untolerated taint(s), node(s) hold too few of its pods even when empty; "
        "tolerate a taint or remove it: gpu=yes:NoSchedule",
        lambda: sentence(world("n1 cpu=4; n2 cpu=4 +gpu=yes:NoSchedule", pods=2, cpu=3), policy="basic"),
    ),
    (
        "nodes",
        "nodes are unavailable: node(s) had untolerated taint(s); "
        "tolerate a taint or remove it: gpu=yes:NoSchedule",
        lambda: sentence(world(nodes="n1 cpu=4 +gpu=yes:NoSchedule"), plugins="gang predicates"),
    ),
    ("nodes", "the cluster has no nodes; add nodes", lambda: sentence(world(nodes=""), policy="default")),
    (
        "nodes",
        "all nodes together have less cpu than its pods that must start together request; add nodes or request less",
        lambda: sentence(world(pods=3, cpu=2), policy="default"),
    ),
    (
        "policy",
        "its pods request no resources, and the policy lacks the action backfill, which places "
        "such pods; add backfill to the policy actions, or set resource requests on the pods",
        lambda: sentence(world(cpu=0)),
    ),
    (
        "queue-limits",
        'the capability of queue "research" has too little cpu left; wait for jobs to end or raise its capability',
        lambda: sentence(
            world(queues="research capability=cpu:1", queue="research").job(
                "old", queue="research", cpu=1, running_on="n1"
            ),
            plugins="gang proportion",
        ),
    ),
    (
        "queue-limits",
        'the deserved share of queue "research" has too little cpu left; wait for jobs to end or raise its weight',
        lambda: sentence(
            world(queues="research; other", queue="research", pods=2, cpu=1)
            .job("old", queue="research", pods=2, cpu=1, running_on="n1 n1")
            .job("more", queue="other", pods=4, cpu=1, minimum=1),
            plugins="gang proportion",
        ),
    ),
    (
        "queue-limits",
        'the deserved share of queue "default" has too little cpu left, and cannot be raised in '
        "this cluster; wait for jobs to end, add nodes or request less",
        lambda: sentence(
            world(nodes="n1 cpu=2; n2 cpu=2", pods=2, cpu=2).job("old", cpu=1, running_on="n1"),
            plugins="gang proportion",
        ),
    ),
]


def in_one_rack(pods: int, *running_on: str) -> str:
    """The sentence of a gang that must be below s1 or s2, where two of four CPUs are free."""
    racks = [hyper_node("s1", nodes=["n1", "n2"]), hyper_node("s2", nodes=["n3", "n4"])]
    made = World(nodes="n1 cpu=2; n2 cpu=2; n3 cpu=2; n4 cpu=2").add(*racks)
    made.job("old", pods=4, running_on="n1 n2 n3 n4", cpu=1)
    train = [pod(f"train-{number}", "train", on=name) for number, name in enumerate(running_on)]
    train += [pod(f"train-{number}", "train") for number in range(len(running_on), pods)]
    limit = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    result = made.add(group("train", pods, **limit), *train).run(
        "enqueue, allocate", "gang predicates network-topology-aware"
    )
    return result.pending["default/train"].sentence


_WAYS = "allow a higher tier or set mode: soft, or add gangpreempt or consolidate to the policy actions"
SENTENCES += [
    (
        "topology",
        f"no HyperNode of tier 1 or below has capacity for 3 pods; wait until one has capacity, {_WAYS}",
        lambda: in_one_rack(3),
    ),
    (
        "topology",
        "no HyperNode of tier 1 or below is large enough for 5 pods; request less, allow a higher "
        "tier or set mode: soft",
        lambda: in_one_rack(5),
    ),
    (
        "topology",
        "it runs below its minimum (2 of 3 pods): it must stay in HyperNode s1, where its other "
        "pods are, which has no capacity for its remaining pods; wait until capacity is free "
        f"there, {_WAYS}",
        lambda: in_one_rack(3, "n1", "n2"),
    ),
    (
        "topology",
        "it runs below its minimum (2 of 3 pods): its running pods share no HyperNode of tier 1 or "
        "below; delete its pods so that they all start in one",
        lambda: in_one_rack(3, "n1", "n3"),
    ),
]


def beside_a_running_job(cpu: int, *before: int) -> str:
    """A job that needs so many of four free CPUs, after others that do; one ends at 13:00 at the latest."""
    made = World(nodes="n1 cpu=10,memory=9Gi,pods=99")
    limit = {"stromboli.sh/time-limit": "1h"}
    policy = "priority gang | predicates backfill-reservation"
    made.job("first", cpu=6, annotations=limit)
    made.run("allocate", policy)
    made.rehearsal.sync()
    for number, other in enumerate(before):
        made.job(f"before-{number}", cpu=other, annotations=limit)
    made.job("train", cpu=cpu)
    return made.step().pending["default/train"].sentence


SENTENCES += [
    (
        "backfill",
        "reserved to start by 2026-11-01T13:00:00Z on n1, after default/first ends; no action "
        "needed: it may start earlier if other jobs end earlier",
        lambda: beside_a_running_job(8),
    ),
    (
        "backfill",
        "it fits now, but would delay an earlier job for which that capacity is reserved; a "
        "shorter time limit (annotation stromboli.sh/time-limit) lets it start earlier",
        lambda: beside_a_running_job(4, 8),
    ),
]


@pytest.mark.parametrize(("gate", "expected", "made"), SENTENCES)
def test_the_sentence_says_what_holds_a_job_and_the_way_out(
    gate: Gate, expected: str, made: Callable[[], str]
) -> None:
    subject = "This pod" if gate == "pod-group" else "PodGroup train"
    assert made() == f"{subject} waits: {expected}"


def test_the_documentation_shows_every_sentence_with_its_gate() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    shown = {(row[1].strip(), row[2].strip(), row[3].strip()) for row in rows if len(row) == 5}
    for gate, text, _ in SENTENCES:
        summary, _, remedy = text.partition("; ")
        assert (f"`{gate}`", summary, remedy) in shown
    assert {gate for gate, *_ in shown} >= {f"`{gate}`" for gate in get_args(Gate)}


def test_a_requirement_that_cannot_be_met_is_a_gate_of_its_own() -> None:
    explanation = world().add(TOPOLOGY).run("enqueue, allocate", "gang").pending["default/train"]
    assert explanation.gate == "requirements"
    assert explanation.sentence.startswith("PodGroup train waits: ")
    assert explanation.sentence.endswith(explanation.hint)


def test_a_job_with_its_minimum_waits_for_the_rest() -> None:
    made = world(pods=5, minimum=1)
    rest = "The rest of PodGroup train waits: nodes are unavailable: Insufficient cpu; "
    assert made.run("enqueue, allocate", "gang", cycles=2).pending["default/train"].sentence.startswith(rest)


def test_the_headline_of_a_message_is_the_gate_with_what_is_short() -> None:
    message = wait_message(
        wait_sentence("Job a", "nodes are unavailable: Insufficient cpu", "wait"), "not ready"
    )
    assert message == "Job a waits: nodes are unavailable: Insufficient cpu; wait (not ready)"
    assert headline(message) == "nodes are unavailable: Insufficient cpu"
    assert headline("something else") == "something else"


def test_a_message_keeps_its_way_out_however_long_the_rest_is() -> None:
    message = wait_message(wait_sentence("Job a", "ü" * 3000, "add nodes"), "x" * 3000)
    assert len(message.encode()) <= MAX_BYTES
    assert "ü...; add nodes (xxx" in message
