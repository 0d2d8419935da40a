"""What simulated pods do next, as a table."""

import pytest

from stromboli.api.durations import FOREVER, Duration
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


def test_a_pod_that_is_deleted_stops_within_a_moment():
    stage = next_stage(pod(phase="Running", started=BEGUN, meta=GONE), SINCE, StageDelays())
    assert stage.stage is Stage.DELETE
    assert stage.at - SINCE < 0.05  # the rest of a tenth of a second is for the API server


def test_a_run_time_is_drawn_once_for_a_pod():
    running_pod = pod("a", "Running", BEGUN, annotations={RUN: "10s..20s"})
    first, again = next_stage(running_pod, 0.0, DELAYS), next_stage(running_pod, 0.0, DELAYS)
    other = next_stage(pod("b", "Running", BEGUN, annotations={RUN: "10s..20s"}), 0.0, DELAYS)
    assert first == again
    assert 10 <= first.at <= 20
    assert other.at != first.at
