"""PodGroups, pods, HyperNodes, JobFlows and CronJobs at the gate."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.admission.options import parse
from stromboli.admission.process import Process
from stromboli.admission.rules.admission_table import REVIEWS, with_defaults
from stromboli.admission.rules.resource_groups import read_groups
from stromboli.admission.rules.rule_context import Context, Settings
from stromboli.api import names
from stromboli.kube.cluster_access import Access
from tests.admission.reviewing import cluster, queue, submitted, texts

TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}
BOTH = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously."


def group(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g", "namespace": "ns"}, "spec": spec}


def test_a_namespace_names_the_queue_of_its_groups() -> None:
    context = Context(namespace_queue="team")
    assert submitted("PodGroup", group(queue="default"), context).object["spec"]["queue"] == "team"
    assert submitted("PodGroup", group(queue="other"), context).object["spec"]["queue"] == "other"
    assert submitted("PodGroup", group(queue="default")).object["spec"]["queue"] == "default"


def test_a_group_that_is_applied_again_stays_in_the_queue_of_its_namespace() -> None:
    """But one that is in `default` is not moved by whoever writes its status."""
    review, context = REVIEWS["/podgroups/mutate"], Context(namespace_queue="team")
    old = group(queue="team")
    assert with_defaults(review, group(queue="default"), context, old) == old
    old = group(queue="default")
    assert (
        with_defaults(review, group(queue="default", minMember=2), context, old)["spec"]["queue"] == "default"
    )


def test_a_queue_that_is_applied_again_is_completed_again() -> None:
    annotations = {"volcano.sh/hierarchy": "eng/dev", "volcano.sh/hierarchy-weights": "2/3"}
    sent = {"metadata": {"name": "q", "annotations": annotations}, "spec": {}}
    old = submitted("Queue", sent).object
    assert with_defaults(REVIEWS["/queues/mutate"], sent, cluster(), old) == old


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (group(), []),
        (group(queue="default"), []),
        (group(queue="nope"), ['unable to find queue: queue.scheduling.volcano.sh "nope" not found']),
        (
            group(queue="shut"),
            ["can only submit PodGroup to queue with state `Open`, queue `shut` status is `Closed`."],
        ),
        (
            group(networkTopology=TIERS, subGroupPolicy=[{"name": "s", "networkTopology": TIERS}]),
            [BOTH, f"in subGroupPolicy 's': {BOTH}"],
        ),
    ],
)
def test_groups(sent: dict[str, Any], expected: list[str]) -> None:
    assert texts("/podgroups/validate", sent, context=cluster(queue("shut", state="Closed"))) == expected


CONFIGURATION = """
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [ns-a]}
  schedulerName: default-scheduler
  tolerations: [{key: t, operator: Exists, effect: NoExecute, tolerationseconds: 30}]
  labels: {volcano.sh/nodetype: management}
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: cpu
  object: {key: annotation, value: ["team: blue", "nonsense", "team: red"]}
  schedulerName: volcano
- resourceGroup: gpu
  labels: {gpu: "yes"}
- resourceGroup: never
  object: {key: label, value: [x]}
  schedulerName: never
"""


def pod(namespace: str = "default", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": namespace, "annotations": annotations or {}}, "spec": spec}


def configured(gates: bool = False) -> Context:
    return Context(settings=Settings(resource_groups=read_groups(CONFIGURATION), scheduling_gates=gates))


def test_a_pod_gets_what_its_group_gets() -> None:
    sent = pod(
        "ns-a", nodeSelector={"volcano.sh/nodetype": "mine", "zone": "b"}, tolerations=[{"key": "own"}]
    )
    assert submitted("Pod", sent, configured()).object["spec"] == {
        "nodeSelector": {"volcano.sh/nodetype": "management", "zone": "b"},
        "tolerations": [
            {"key": "own"},
            {"key": "t", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        "affinity": {"nodeAffinity": {}},
        "schedulerName": "default-scheduler",
    }


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        ({"team": "blue"}, {"schedulerName": "volcano"}),
        ({"team": "red"}, {}),
        ({"volcano.sh/resource-group": "gpu"}, {"nodeSelector": {"gpu": "yes"}}),
        ({}, {}),
    ],
)
def test_a_pod_joins_a_group_by_annotation(annotations: dict[str, str], spec: dict[str, Any]) -> None:
    assert submitted("Pod", pod(annotations=annotations), configured()).object["spec"] == spec


def test_a_pod_is_held_back_where_the_gate_is_on() -> None:
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    sent = pod(annotations={gate: "true"})
    held = submitted("Pod", sent, configured(gates=True)).object
    assert held["spec"]["schedulingGates"] == [{"name": gate}]
    assert submitted("Pod", held, configured(gates=True)).object["spec"]["schedulingGates"] == [
        {"name": gate}
    ]
    assert submitted("Pod", sent, configured()).object["spec"] == {}


def test_the_gate_needs_no_admission_configuration() -> None:
    """Volcano's webhook does nothing about pods without one, and does not say so."""
    gate = "scheduling.volcano.sh/queue-allocation-gate"
    flags = ["--webhook-url=https://x", f"--feature-gates={names.QUEUE_ADMISSION}=true"]
    context = Context(settings=Process(parse(flags), Access("http://127.0.0.1:1"))._settings())
    held = submitted("Pod", pod(annotations={gate: "true"}), context).object
    assert held["spec"]["schedulingGates"] == [{"name": gate}]
    assert submitted("Pod", pod(), context).object["spec"] == {}


@pytest.mark.parametrize(
    "text", ["resourceGroups: 5", "- a", "resourceGroups: [{labels: 3}]", "{", "a: &a [*a]"]
)
def test_a_configuration_that_is_none_says_so(text: str) -> None:
    with pytest.raises(ValueError, match="not an admission configuration"):
        read_groups(text)


LEAST, MAX_PROBLEMS = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({LEAST: "3"}, []),
        ({MAX_PROBLEMS: "20%"}, []),
        ({LEAST: "0"}, [f'invalid value <"0"> for {LEAST}, it must be a positive integer']),
        ({LEAST: "some"}, [f'invalid value <strconv.Atoi: parsing "some": invalid syntax> for {LEAST}']),
        (
            {LEAST: "1" * 5000},
            [f'invalid value <strconv.Atoi: parsing "{"1" * 64}": invalid syntax> for {LEAST}'],
        ),
        (
            {MAX_PROBLEMS: "100%"},
            [
                f'invalid value <"100%"> for {MAX_PROBLEMS}, it must be a valid percentage which between 1% ~ 99%'
            ],
        ),
        (
            {LEAST: "1", MAX_PROBLEMS: "1"},
            [f"not allow configure multiple annotations <[{LEAST} {MAX_PROBLEMS}]> at same time"],
        ),
    ],
)
def test_budgets_of_pods(annotations: dict[str, str], expected: list[str]) -> None:
    assert texts("/pods/validate", pod(annotations=annotations, schedulerName="volcano")) == expected
    assert texts("/pods/validate", pod(annotations=annotations, schedulerName="default-scheduler")) == []


def hyper_node(*patterns: str) -> dict[str, Any]:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}} for pattern in patterns]
    return {"metadata": {"name": "s0"}, "spec": {"tier": 1, "members": members}}


@pytest.mark.parametrize("pattern", ["^node-[0-9]+$", r"a\.b", r"(?i)x", "(?P<n>a)", r"\d+\\1", "[*+]+"])
def test_patterns_that_re2_takes(pattern: str) -> None:
    assert texts("/hypernodes/validate", hyper_node(pattern)) == []


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "(?=a)", "(?<!a)b", r"(a)\1", "a++", "x" * 5000])
def test_patterns_that_re2_refuses(pattern: str) -> None:
    (text,) = texts("/hypernodes/validate", hyper_node(pattern))
    assert text.startswith("[].spec.members.selector.regexMatch.pattern: Invalid value: ")
    assert ": member regexMatch pattern is invalid: " in text


def test_a_hyper_node_has_members() -> None:
    (text,) = texts("/hypernodes/validate", hyper_node())
    assert text.endswith("member must have at least one member")


def flow(**targets: list[str]) -> dict[str, Any]:
    flows = [{"name": name, "dependsOn": {"targets": wanted}} for name, wanted in targets.items()]
    return {"metadata": {"name": "f"}, "spec": {"flows": flows}}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (flow(a=[], b=["a"], c=["a", "b"]), []),
        (flow(a=["z"]), ["jobflow Flow is not DAG: vertex is not defined: z"]),
        (flow(a=["a"]), ["jobflow Flow is not DAG"]),
        (flow(a=["c"], b=["a"], c=["b"]), ["jobflow Flow is not DAG"]),
    ],
)
def test_flows(sent: dict[str, Any], expected: list[str]) -> None:
    assert texts("/jobflows/validate", sent) == expected


def test_a_long_flow_is_followed_and_one_that_is_too_long_is_refused() -> None:
    def chain(steps: int) -> dict[str, Any]:
        return flow(**{f"s{index}": [f"s{index + 1}"] for index in range(steps - 1)}, **{f"s{steps - 1}": []})

    assert texts("/jobflows/validate", chain(1000)) == []
    assert texts("/jobflows/validate", chain(1001)) == ["the flow has 1001 steps, at most 1000 are allowed"]


def cron(schedule: Any = "0 2 * * *", name: str = "nightly", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"schedule": schedule, **spec}}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (cron(), []),
        (cron("@every 90m", timeZone="Europe/Rome"), []),
        (cron(""), ["schedule is required, but got empty"]),
        (
            cron("TZ=UTC 0 2 * * *"),
            ["schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"],
        ),
        (cron("0 25 * * *"), ["schedule is not a valid cron expression"]),
        (cron(timeZone=""), ["timeZone must be nil or non-empty string, got empty string"]),
        (cron(timeZone="../etc"), ["unknown timeZone"]),
        (cron(timeZone="a b"), ["unknown timeZone"]),
        (
            cron(timeZone="local"),
            ["timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"],
        ),
        (cron(timeZone="Europe/Nowhere"), ["invalid timeZone"]),
        (
            cron(name="n" * 53),
            ["cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)"],
        ),
    ],
)
def test_cron_jobs(sent: dict[str, Any], expected: list[str]) -> None:
    assert texts("/cronjobs/validate", sent) == expected
