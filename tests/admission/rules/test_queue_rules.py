"""Queues at the gate: made, changed, deleted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from stromboli.admission.rules.admission_table import REVIEWS, validate
from stromboli.admission.rules.queue_jobs import unfinished_job
from stromboli.admission.rules.rule_context import QueueIndex
from tests.admission.reviewing import cluster, queue, submitted, texts


def made(name: str = "q", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {"parent": "root", **spec}}


def paths(hierarchy: str, weights: str) -> dict[str, str]:
    return {"volcano.sh/hierarchy": hierarchy, "volcano.sh/hierarchy-weights": weights}


def test_what_a_user_leaves_out_is_filled_in() -> None:
    content = submitted("Queue", made(annotations=paths("a/b", "1/2"))).object
    assert (content["spec"]["reclaimable"], content["spec"]["weight"]) == (True, 1)
    assert content["metadata"]["annotations"] == paths("root/a/b", "1/1/2")


def test_what_a_user_says_is_kept() -> None:
    content = submitted(
        "Queue", made(weight=5, reclaimable=False, annotations=paths("rootless/x", "1/2"))
    ).object
    assert (content["spec"]["reclaimable"], content["spec"]["weight"]) == (False, 5)
    assert content["metadata"]["annotations"] == paths("rootless/x", "1/2")


FIELDS: list[tuple[dict[str, Any], list[str]]] = [
    (made(capability={"cpu": 4}, deserved={"cpu": 2}, guarantee={"resource": {"cpu": 1}}), []),
    (
        made(capability={"cpu": "-1"}),
        ['requestBody.spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    (
        made(deserved={"nvidia.com/gpu": "1500m"}),
        ['requestBody.spec.deserved.nvidia.com/gpu: Invalid value: "1500m": must be an integer'],
    ),
    (
        made(guarantee={"resource": {"cpu": "1"}}),
        ['requestBody.spec.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=1'],
    ),
    (
        made(deserved={"cpu": "1"}, guarantee={"resource": {"cpu": "2"}}),
        ['requestBody.spec.deserved.cpu: Invalid value: "1": deserved[cpu]=1 must be >= guarantee[cpu]=2'],
    ),
    (
        made(capability={"cpu": "1"}, deserved={"cpu": "2"}),
        ['requestBody.spec.deserved.cpu: Invalid value: "2": deserved[cpu]=2 must be <= capability[cpu]=1'],
    ),
    (
        made(annotations=paths("root/a", "1")),
        [
            'requestBody.metadata.annotations: Invalid value: "root/a":'
            " volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights"
        ],
    ),
    (
        made(annotations=paths("root/a", "1/x")),
        [
            'requestBody.metadata.annotations: Invalid value: "root/a":'
            ' x in the 1/x is invalid number: strconv.ParseFloat: parsing "x": invalid syntax'
        ],
    ),
    (
        made(annotations=paths("root/a", "1/0")),
        ['requestBody.metadata.annotations: Invalid value: "root/a": 0 in the 1/0 must be larger than 0'],
    ),
    (
        {**made(), "status": {"state": "Closing"}},
        ['requestBody.spec.state: Invalid value: "Closing": queue state must be in [Open Closed]'],
    ),
]


@pytest.mark.parametrize(("sent", "expected"), FIELDS)
def test_the_fields_of_a_queue(sent: dict[str, Any], expected: list[str]) -> None:
    assert texts("/queues/validate", sent) == expected


def test_a_path_above_another_queue_is_refused() -> None:
    below = queue("deep")
    below.metadata.annotations.update(paths("root/a/b", "1/1/1"))
    assert texts("/queues/validate", made(annotations=paths("root/a", "1/1")), context=cluster(below)) == [
        'requestBody.metadata.annotations: Invalid value: "root/a":'
        " root/a is not allowed to be in the sub path of root/a/b of queue deep"
    ]


CHAIN = (queue("l1"), queue("l2", "l1"), queue("l3", "l2"), queue("l4", "l3"), queue("l5", "l4"))
GPU = "nvidia.com/gpu"
TREE: list[tuple[str, dict[str, Any], tuple[Any, ...], list[str]]] = [
    ("itself", made(parent="q"), (), ["queue q cannot use itself as parent"]),
    ("as deep as may be", made(parent="l4"), CHAIN, []),
    ("too deep", made(parent="l5"), CHAIN, ["queue q exceeds the maximum allowed depth of 5"]),
    (
        "nowhere",
        made(parent="gone"),
        (),
        ['failed to get parent queue gone of queue q: queue.scheduling.volcano.sh "gone" not found'],
    ),
    (
        "below running pods",
        made(parent="busy"),
        (queue("busy", pods=3),),
        ["queue busy cannot be the parent queue of queue q because it has allocated Pods: 3"],
    ),
    ("below pods, with siblings", made(parent="busy"), (queue("busy", pods=3), queue("s", "busy")), []),
    (
        "more than its ancestor may use",
        made(parent="mid", capability={"cpu": "20", "memory": "64Gi"}),
        (queue("top", capability={"cpu": "1500m", "memory": "32Gi"}), queue("mid", "top")),
        [
            "queue q capability[cpu]=20 exceeds its ancestor's capability=1500m",
            "queue q capability[memory]=64Gi exceeds its ancestor's capability=32Gi",
        ],
    ),
    (
        "devices in thousandths",
        made(parent="top", capability={GPU: 8}),
        (queue("top", capability={GPU: 4}),),
        [f"queue q capability[{GPU}]=8000.00 exceeds its ancestor's capability=4000.00"],
    ),
    (
        "more than the parent deserves",
        made(parent="top", deserved={"cpu": 3}),
        (queue("top", deserved={"cpu": 4}), queue("sib", "top", deserved={"cpu": 2})),
        [
            "parent queue top validation failed: sum of children's deserved (cpu 5000.00, memory 0.00)"
            " exceeds parent's deserved limit (cpu 4000.00, memory 0.00)"
        ],
    ),
    (
        "a device that the parent does not have, even none of it",
        made(parent="top", deserved={"cpu": 1, GPU: 0}),
        (queue("top", deserved={"cpu": 4}),),
        [
            f"parent queue top validation failed: sum of children's deserved (cpu 1000.00, memory 0.00, {GPU} 0.00)"
            " exceeds parent's deserved limit (cpu 4000.00, memory 0.00)"
        ],
    ),
    ("under the root nothing is compared", made(deserved={"cpu": 1000}), (), []),
    (
        "less than its children may use",
        made("top", capability={"cpu": 1}),
        (queue("mid", "top"), queue("leaf", "mid", capability={"cpu": 2})),
        ["queue top capability[cpu]=1 is smaller than its descendants' max capability=2"],
    ),
]


@pytest.mark.parametrize(
    ("sent", "queues", "expected"), [row[1:] for row in TREE], ids=[row[0] for row in TREE]
)
def test_a_queue_among_queues(sent: dict[str, Any], queues: tuple[Any, ...], expected: list[str]) -> None:
    assert texts("/queues/validate", sent, context=cluster(*queues)) == expected


def moved(name: str, parent: str, *queues: Any, **settings: Any) -> list[str]:
    """What an update says that gives an existing queue another parent."""
    context = cluster(*queues, **settings)
    before = context.queues.get(name) if context.queues is not None else None
    old = made(name, parent=before.spec.parent if before is not None else "")
    return texts("/queues/validate", made(name, parent=parent), old, "UPDATE", context)


def test_an_update_that_closes_a_circle_is_refused() -> None:
    pair = (queue("qx"), queue("qy", "qx"))
    assert moved("qx", "qy", *pair) == [
        "queue qx cannot have queue qy as its parent: queues in a circle: qx -> qy -> qx"
    ]
    assert moved("qx", "qx", *pair) == ["queue qx cannot use itself as parent"]
    longer = (*pair, queue("qz", "qy"))
    assert moved("qx", "qz", *longer) == [
        "queue qx cannot have queue qz as its parent: queues in a circle: qx -> qz -> qy -> qx"
    ]
    chain = [queue("q0"), *(queue(f"q{at}", f"q{at - 1}") for at in range(1, 20))]
    (text,) = moved("q0", "q19", *chain, max_queue_depth=1000)
    assert text.endswith("q0 -> q19 -> q18 -> q17 -> q16 -> q15 -> q14 -> q13 -> 12 more -> q0")


def test_a_queue_whose_child_is_there_before_it_closes_no_circle() -> None:
    orphan = cluster(queue("qy", "qx"))
    assert texts("/queues/validate", made("qx", parent="qy"), context=orphan) == [
        "queue qx cannot have queue qy as its parent: queues in a circle: qx -> qy -> qx"
    ]
    assert texts("/queues/validate", made("qx"), context=orphan) == []


def test_the_root_has_no_parent() -> None:
    for operation, old in (("CREATE", None), ("UPDATE", made("root", parent=""))):
        for parent in ("top", "root", "nowhere"):
            assert texts(
                "/queues/validate", made("root", parent=parent), old, operation, cluster(queue("top"))
            ) == ["the root queue cannot have a parent"]
    stored = made("root", parent="top")
    assert texts("/queues/validate", stored, stored, "UPDATE", cluster(queue("top"))) == []


def test_a_circle_that_exists_can_be_opened_and_takes_no_more_queues() -> None:
    circle = (queue("a", "b"), queue("b", "c"), queue("c", "a"))
    assert moved("b", "root", *circle) == []
    assert moved("b", "top", *circle, queue("top")) == []
    assert texts("/queues/validate", made(parent="a"), context=cluster(*circle)) == [
        "queue q cannot have queue a as its parent: queues in a circle: a -> b -> c -> a"
    ]


def test_a_queue_is_not_moved_so_far_down_that_those_below_it_lie_too_deep() -> None:
    tree = (queue("top"), queue("mid", "top"), queue("a"), queue("b", "a"), queue("c", "b"))
    assert moved("a", "mid", *tree) == []
    assert moved("a", "mid", *tree, max_queue_depth=4) == [
        "queue c below queue a exceeds the maximum allowed depth of 4"
    ]


def test_no_setting_lets_queues_lie_deeper_than_the_scheduler_follows_them() -> None:
    chain = [queue("q1"), *(queue(f"q{at}", f"q{at - 1}") for at in range(2, 2000))]
    context = cluster(*chain, max_queue_depth=10_000)
    assert texts("/queues/validate", made(parent="q63"), context=context) == []
    assert texts("/queues/validate", made(parent="q64"), context=context) == [
        "queue q exceeds the maximum allowed depth of 64"
    ]
    changed = made("q1", parent="root", capability={"cpu": 1})  # compared with all queues below it
    assert texts("/queues/validate", changed, made("q1", parent="root"), "UPDATE", context) == []


def test_a_path_has_a_limited_number_of_steps() -> None:
    steps = "/".join(["root"] * 65)
    assert texts("/queues/validate", made(annotations=paths(steps, "1" + "/1" * 64))) == [
        f'requestBody.metadata.annotations: Invalid value: "{steps[:199]}...:'
        " volcano.sh/hierarchy has 65 steps, at most 64 are allowed"
    ]


def test_other_changes_of_a_queue_in_a_circle_are_taken() -> None:
    circle = cluster(queue("a", "b"), queue("b", "a"))
    changed = made("a", parent="b", capability={"cpu": 1})
    before = made("a", parent="b")
    assert texts("/queues/validate", changed, old=before, operation="UPDATE", context=circle) == []


def test_the_root_queue_keeps_its_amounts() -> None:
    root, other = made("root", parent=""), made("root", parent="", capability={"cpu": 5})
    refusal = ["root queue's resource attributes (capability, deserved, guarantee) cannot be modified"]
    assert texts("/queues/validate", other, old=root, operation="UPDATE") == refusal
    assert texts("/queues/validate", root, old=root, operation="UPDATE") == []
    free = cluster(root_queue_protection=False)
    assert texts("/queues/validate", other, old=root, operation="UPDATE", context=free) == []


def test_an_update_that_changes_no_amount_is_not_measured_against_the_others() -> None:
    tight = cluster(queue("top"), queue("q", "top", deserved={"cpu": 3}))
    content = made(parent="top", deserved={"cpu": 3})
    assert texts("/queues/validate", content, old=content, operation="UPDATE", context=tight) == []


DELETIONS: list[tuple[str, list[str]]] = [
    ("default", ["`default` queue can not be deleted"]),
    ("root", ["`root` queue can not be deleted"]),
    ("gone", ['queue.scheduling.volcano.sh "gone" not found']),
    ("tree", ["queue tree can not be deleted because it has 2 child queues: leaf, twig"]),
    ("busy", []),
]


@pytest.mark.parametrize(("name", "expected"), DELETIONS)
def test_which_queues_may_go(name: str, expected: list[str]) -> None:
    context = cluster(queue("tree"), queue("twig", "tree"), queue("leaf", "tree"), queue("busy", pods=2))
    assert texts("/queues/validate", made(name), operation="DELETE", context=context) == expected


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("default", "close it instead"), ("root", "all queues are below it; delete or close those instead")],
)
def test_a_queue_that_stays_tells_what_can_be_done(name: str, remedy: str) -> None:
    (problem,) = validate(REVIEWS["/queues/validate"], made(name), None, "DELETE", cluster())
    assert problem.remedy == remedy


def test_a_queue_with_pods_stays_where_that_is_asked_for() -> None:
    context = cluster(queue("busy", pods=2), queue_allocated_pods_check=True)
    assert texts("/queues/validate", made("busy"), operation="DELETE", context=context) == [
        "queue busy cannot be deleted because it has allocated Pods: 2"
    ]


def test_a_queue_with_unfinished_jobs_stays_and_its_pods_are_reported_first() -> None:
    context = cluster(queue("busy", pods=2), queue("idle"), queue_allocated_pods_check=True)
    context = replace(context, unfinished_job="Job default/train")
    assert texts("/queues/validate", made("idle"), operation="DELETE", context=context) == [
        "queue idle cannot be deleted because it has unfinished jobs, such as Job default/train"
    ]
    assert texts("/queues/validate", made("busy"), operation="DELETE", context=context) == [
        "queue busy cannot be deleted because it has allocated Pods: 2"
    ]


def member(name: str, queue: str | None = "busy", status: Any = None, **meta: Any) -> bytes:
    spec = {"queue": queue} if queue else {}
    metadata = {"name": name, "namespace": "ns", **meta}
    return json.dumps({"metadata": metadata, "spec": spec, "status": status or {}}).encode()


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Restarting", "Aborted"])
def test_a_job_needs_its_queue_until_it_has_finished(phase: str) -> None:
    jobs = [member("other", "free"), member("done", status={"state": {"phase": "Failed"}})]
    jobs += [b"{}", member("train", status={"state": {"phase": phase}})]
    assert unfinished_job("busy", "Job", jobs) == "Job ns/train"
    assert unfinished_job("busy", "Job", jobs[:3]) == ""


def test_a_pod_group_needs_its_queue_and_is_reported_as_its_owner() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    groups = [member("done", status={"phase": "Completed"})]
    groups.append(member("leaving", deletionTimestamp="2026-01-01T00:00:00Z"))
    groups.append(member("podgroup-u", ownerReferences=[owner]))
    assert unfinished_job("busy", "PodGroup", groups) == "ReplicaSet ns/web"
    assert unfinished_job("busy", "PodGroup", groups[:2]) == ""
    assert unfinished_job("default", "PodGroup", [member("bare", None)]) == "PodGroup ns/bare"


def test_known_queues_follow_a_move() -> None:
    known = QueueIndex([queue("a"), queue("b", "a")])
    known.put(queue("b", "root"))
    assert known.children("a") == []
    assert [queue.name for queue in known.children("root")] == ["a", "b"]
    known.drop("b")
    assert known.get("b") is None
