"""What simulated pods do next, as a table."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.nodes.simulated.durations import FOREVER, BadDuration, Duration, parse_duration
from stromboli.embedded.nodes.simulated.pod_stages import ScheduledStage, Stage, StageDelays, next_stage
from tests.embedded.nodes.node_pods import pod

SINCE = 1000.0
BEGUN = "2024-01-01T00:00:00Z"
RUN, EXIT, DELAY = "stromboli.sh/run-time", "stromboli.sh/exit-code", "stromboli.sh/start-delay"
DELAYS = StageDelays(Duration(2, 2), FOREVER, 1.0)
GONE = {"deletionTimestamp": BEGUN, "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize(
    ("given", "step"),
    [
        (pod(), ScheduledStage(Stage.START, 1002.0)),
        (pod(annotations={DELAY: "7s"}), ScheduledStage(Stage.START, 1007.0)),
        (pod(annotations={DELAY: "soon"}), ScheduledStage(Stage.START, 1002.0)),
        (pod(phase="Running", started=BEGUN), None),
        (
            pod(phase="Running", started=BEGUN, annotations={RUN: "5s"}),
            ScheduledStage(Stage.COMPLETE, 1005.0),
        ),
        (
            pod(phase="Running", started=BEGUN, annotations={RUN: "5s", EXIT: "3"}),
            ScheduledStage(Stage.COMPLETE, 1005.0, 3),
        ),
        (
            pod(phase="Running", started=BEGUN, annotations={EXIT: "lots", RUN: "1m"}),
            ScheduledStage(Stage.COMPLETE, 1060.0),
        ),
        (
            pod(phase="Running", started=BEGUN, command=["sleep", "30"]),
            ScheduledStage(Stage.COMPLETE, 1030.0),
        ),
        (
            pod(phase="Running", started=BEGUN, command=["sh", "-c", "sleep 2m"]),
            ScheduledStage(Stage.COMPLETE, 1120.0),
        ),
        (pod(phase="Running", started=BEGUN, command=["sleep", "infinity"]), None),
        (
            pod(phase="Running", started=BEGUN, command=["sleep", "30"], annotations={EXIT: "1"}),
            ScheduledStage(Stage.COMPLETE, 1030.0, 1),
        ),
        (
            pod(phase="Running", started=BEGUN, command=["sleep", "30"], annotations={RUN: "1s"}),
            ScheduledStage(Stage.COMPLETE, 1001.0),
        ),
        (
            pod(phase="Running", started=BEGUN, spec={"activeDeadlineSeconds": 9}),
            ScheduledStage(Stage.EXPIRE, 1009.0),
        ),
        (
            pod(phase="Running", started=BEGUN, spec={"activeDeadlineSeconds": 9}, annotations={RUN: "5s"}),
            ScheduledStage(Stage.COMPLETE, 1005.0),
        ),
        (pod(phase="Succeeded"), None),
        (pod(phase="Running", started=BEGUN, meta=GONE), ScheduledStage(Stage.DELETE, 1001.0)),
        (pod(meta={**GONE, "deletionGracePeriodSeconds": 0}), ScheduledStage(Stage.DELETE, 1000.0)),
        (pod(phase="Failed", meta=GONE), ScheduledStage(Stage.DELETE, 1000.0)),
    ],
)
def test_the_next_step_follows_from_the_pod(given, step):
    assert next_stage(given, SINCE, DELAYS) == step


def test_a_run_time_is_drawn_once_for_a_pod():
    running_pod = pod("a", "Running", BEGUN, annotations={RUN: "10s..20s"})
    first, again = next_stage(running_pod, 0.0, DELAYS), next_stage(running_pod, 0.0, DELAYS)
    other = next_stage(pod("b", "Running", BEGUN, annotations={RUN: "10s..20s"}), 0.0, DELAYS)
    assert first == again
    assert 10 <= first.at <= 20
    assert other.at != first.at


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30s", Duration(30, 30)),
        ("1h30m", Duration(5400, 5400)),
        ("30", Duration(30, 30)),
        ("10s..1m", Duration(10, 60)),
        ("exp(30s)", Duration(30, 30, True)),
        ("exp(0s)", Duration(0, 0)),
        ("forever", FOREVER),
    ],
)
def test_a_span_is_read(text, span):
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "x", "-5s", "60s..10s", "exp()", "10s..", "1e999", "nan"])
def test_a_span_that_is_none_is_explained(text):
    with pytest.raises(BadDuration):
        parse_duration(text)


@given(st.text(max_size=20), st.text(max_size=5))
def test_whatever_is_a_span_has_a_length(text, seed):
    try:
        seconds = parse_duration(text).sample(seed)
    except BadDuration:
        return
    assert seconds >= 0
    assert not math.isnan(seconds)
