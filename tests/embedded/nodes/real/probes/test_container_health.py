"""Kubernetes' rules of probes, by tables: a probe succeeded (`+`), failed (`-`) or could not run (`?`)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.nodes.real.probes.container_health import ContainerHealth
from stromboli.embedded.nodes.real.probes.probe_spec import Probe, ProbeType, container_probes

STARTUP, LIVENESS, READINESS = ProbeType
OUTCOMES = {"+": True, "-": False, "?": None}


def after(outcomes, type, success=1, failure=3, *others):
    health = ContainerHealth(
        {each: Probe({}, success_threshold=success, failure_threshold=failure) for each in (type, *others)}
    )
    for outcome in outcomes:
        health.observe(type, OUTCOMES[outcome])
    return health


@pytest.mark.parametrize(
    ("outcomes", "success", "failure", "ready"),
    [
        ("", 1, 3, False),
        ("+", 1, 3, True),
        ("+", 2, 3, False),
        ("++", 2, 3, True),
        ("+-+", 2, 3, False),
        ("+--", 1, 3, True),
        ("+---", 1, 3, False),
        ("+--+--", 1, 3, True),
        ("+---+", 1, 3, True),
        ("+---+", 2, 3, False),
        ("+--?-", 1, 3, False),
        ("+?", 1, 1, True),
        ("??", 1, 1, False),
    ],
)
def test_a_container_is_ready_as_its_readiness_probe_says(outcomes, success, failure, ready):
    health = after(outcomes, READINESS, success, failure)
    assert (health.started, health.ready, health.failed) == (True, ready, None)


@pytest.mark.parametrize(
    ("outcomes", "failure", "failed"),
    [
        ("", 3, False),
        ("--", 3, False),
        ("---", 3, True),
        ("-", 1, True),
        ("--+--", 3, False),
        ("??????", 1, False),
        ("--?-", 3, True),
    ],
)
def test_a_container_is_killed_as_its_liveness_probe_says(outcomes, failure, failed):
    health = after(outcomes, LIVENESS, failure=failure)
    assert health.failed is (LIVENESS if failed else None)
    assert (health.started, health.ready) == (True, True)


@pytest.mark.parametrize(
    ("outcomes", "started", "failed"),
    [
        ("", False, None),
        ("--", False, None),
        ("--+", True, None),
        ("---", False, STARTUP),
        ("?", False, None),
    ],
)
def test_a_container_has_started_as_its_startup_probe_says(outcomes, started, failed):
    health = after(outcomes, STARTUP)
    assert (health.started, health.ready, health.failed) == (started, started, failed)


def test_without_probes_a_container_is_started_and_ready():
    health = ContainerHealth({})
    assert (health.started, health.ready, health.failed) == (True, True, None)


@pytest.mark.parametrize(
    ("outcomes", "stopping", "probed"),
    [
        ("", False, {STARTUP}),
        ("+", False, {LIVENESS, READINESS}),
        ("+", True, {READINESS}),
        ("---", False, set()),
        ("", True, set()),
    ],
)
def test_other_probes_wait_for_the_startup_probe_and_a_container_that_ends_has_few(
    outcomes, stopping, probed
):
    health = after(outcomes, STARTUP, 1, 3, LIVENESS, READINESS)
    assert {type for type in ProbeType if health.is_probed(type, stopping)} == probed


@given(st.text("+-?", max_size=30), st.integers(1, 4), st.integers(1, 4))
def test_a_result_is_that_of_the_last_row_that_met_its_threshold(outcomes, success, failure):
    expected, known = False, [outcome for outcome in outcomes if outcome != "?"]
    for end in range(1, len(known) + 1):
        for outcome, threshold in (("+", success), ("-", failure)):
            if end >= threshold and set(known[end - threshold : end]) == {outcome}:
                expected = outcome == "+"
    assert after(outcomes, READINESS, success, failure).ready is expected


def test_probes_have_the_defaults_of_kubernetes():
    http = {"httpGet": {"port": 80}}
    spec = {
        "livenessProbe": http,
        "readinessProbe": {
            "tcpSocket": {"port": 1},
            "initialDelaySeconds": 5,
            "periodSeconds": 2,
            "timeoutSeconds": 4,
            "successThreshold": 2,
            "failureThreshold": 6,
            "terminationGracePeriodSeconds": 0,
        },
    }
    probes = container_probes(spec)
    assert probes == {
        LIVENESS: Probe(http, 0, 10, 1, 1, 3, None),
        READINESS: Probe(spec["readinessProbe"], 5, 2, 4, 2, 6, 0),
    }
