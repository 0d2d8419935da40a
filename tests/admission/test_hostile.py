"""Whatever is sent, the answer is a completed object and a list of problems."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.admission.rules.admission_table import CREATE, DELETE, REVIEWS, UPDATE, validate, with_defaults
from stromboli.api.patches import json_patch_between
from stromboli.api.schemas.schema_problems import MAX_PROBLEMS
from tests.admission.reviewing import cluster, job, queue, submitted, task
from tests.admission.rules.test_queue_rules import made
from tests.admission.test_small_kinds import configured, cron, flow, group, hyper_node, pod

PLENTY = {"capability": {"cpu": 9}, "deserved": {"cpu": 9}, "guarantee": {"cpu": 9}}
PINNED = [{"name": "main", "image": "i", "resources": {"requests": {"cpu": 2}}}]
GOOD: dict[str, dict[str, Any]] = {
    "Job": job(
        task(
            "master",
            containers=PINNED,
            topologyPolicy="restricted",
            policies=[{"event": "PodFailed", "action": "AbortJob"}],
        ),
        task(
            "worker",
            6,
            dependsOn={"name": ["master"]},
            partitionPolicy={"totalPartitions": 2, "partitionSize": 3},
        ),
        plugins={"mpi": ["--master=master"]},
        volumes=[{"mountPath": "/d", "volumeClaimName": "c"}],
        networkTopology={"mode": "hard"},
    ),
    "Queue": made(
        parent="tree", capability={"cpu": 1}, deserved={"cpu": 1}, guarantee={"resource": {"cpu": 1}}
    ),
    "PodGroup": group(queue="default", subGroupPolicy=[{"name": "s"}]),
    "Pod": pod(annotations={"volcano.sh/jdb-min-available": "1"}, schedulerName="volcano"),
    "HyperNode": hyper_node("a"),
    "JobFlow": flow(a=[], b=["a"]),
    "CronJob": cron(timeZone="UTC"),
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
CLUSTER = cluster(queue("tree", **PLENTY), queue("leaf", "tree"))


def locations(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    return [path, *(location for key, value in inner for location in locations(value, (*path, key)))]


@st.composite
def spoilt(draw: st.DrawFn, kind: str) -> Any:
    """An object of a kind with one or two of its parts replaced by anything."""
    content = copy.deepcopy(GOOD[kind])
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from([path for path in locations(content) if path]))
        inner = content
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = draw(JSON)
    return content


@pytest.mark.parametrize("kind", sorted(GOOD))
@pytest.mark.parametrize("operation", [CREATE, UPDATE, DELETE])
@given(data=st.data())
def test_no_object_is_too_strange_to_be_judged(kind: str, operation: str, data: st.DataObject) -> None:
    content, old = data.draw(spoilt(kind)), data.draw(st.just(GOOD[kind]) | spoilt(kind))
    reviews = [review for review in REVIEWS.values() if review.resource.kind == kind]
    for review in (review for review in reviews if operation in review.operations):
        for context in (CLUSTER, configured(gates=True)):
            report = validate(review, with_defaults(review, content, context), old, operation, context)
            assert len(list(report)) <= MAX_PROBLEMS
            assert len(str(report)) < 100_000


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_what_is_good_passes(kind: str) -> None:
    assert [str(problem) for problem in submitted(kind, GOOD[kind], CLUSTER).report] == []


def applied(content: Any, operations: list[dict[str, Any]]) -> Any:
    """A JSON patch, carried out the plain way."""
    whole = {"": copy.deepcopy(content)}
    for operation in operations:
        inner: Any = whole
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")]
        for step in steps[:-1]:
            inner = inner[int(step) if isinstance(inner, list) else step]
        last: Any = int(steps[-1]) if isinstance(inner, list) else steps[-1]
        if operation["op"] == "remove":
            del inner[last]
        else:
            assert (last in inner) == (operation["op"] == "replace") or isinstance(inner, list)
            inner[last] = operation["value"]
    return whole[""]


@example(before=[False, {"a": 1}], after=[0, {"a": True}])
@given(before=JSON, after=JSON)
def test_the_difference_turns_one_into_the_other(before: Any, after: Any) -> None:
    turned = applied(before, json_patch_between(before, after))
    assert json.dumps(turned, sort_keys=True) == json.dumps(after, sort_keys=True)


@pytest.mark.parametrize("path", [path for path, review in REVIEWS.items() if review.default])
@given(data=st.data())
def test_completing_twice_completes_once(path: str, data: st.DataObject) -> None:
    review = REVIEWS[path]
    once = with_defaults(review, data.draw(spoilt(review.resource.kind)), CLUSTER)
    assert with_defaults(review, once, CLUSTER) == once


def test_an_object_nested_beyond_measure_is_refused() -> None:
    deep: Any = {}
    for _ in range(20_000):
        deep = {"a": deep}
    changed = job(task("a", 1, template={"spec": deep}))
    old = job(task("a", 1, template={"spec": {"b": deep}}))
    assert "nested too deeply" in str(validate(REVIEWS["/jobs/validate"], changed, old, UPDATE, CLUSTER))
