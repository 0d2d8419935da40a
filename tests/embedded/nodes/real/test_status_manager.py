"""Conditions and container statuses of a pod on a real node."""

import msgspec
import pytest

from stromboli.embedded.nodes.real.containers import Container
from stromboli.embedded.nodes.real.probes.container_health import ContainerHealth
from stromboli.embedded.nodes.real.probes.probe_spec import Probe, ProbeType
from stromboli.embedded.nodes.real.status_manager import StatusManager
from tests.embedded.nodes.node_pods import pod

RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def container(name, *probes, runs=True, **spec):
    made = Container({"name": name, **spec})
    if runs:
        made.state, made.health = RUNNING, ContainerHealth({type: Probe({}) for type in probes})
    return made


def conditions(of, inits=(), mains=(), initialised=True):
    status = StatusManager(of, list(inits), list(mains), lambda: 0.0).status(of, initialised)
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in status["conditions"]}


def test_a_pod_is_ready_when_all_its_containers_and_sidecars_are():
    side = container("side", ProbeType.READINESS, restartPolicy="Always")
    mains = [container("a"), container("b", ProbeType.STARTUP), container("c", runs=False)]
    found = conditions(pod(), [side], mains)
    unready = ("False", "ContainersNotReady", "containers with unready status: [side b c]")
    assert (found["Ready"], found["ContainersReady"]) == (unready, unready)
    assert conditions(pod(), (), [container("a")])["Ready"] == ("True", None, None)


@pytest.mark.parametrize(
    ("set", "ready"),
    [
        (None, ("False", 'corresponding condition of pod readiness gate "example.com/lb" does not exist.')),
        ("False", ("False", 'the status of pod readiness gate "example.com/lb" is not "True", but False')),
        ("True", ("True", None)),
    ],
)
def test_a_pod_is_ready_when_the_conditions_of_its_gates_are_true(set, ready):
    gates = {"readinessGates": [{"conditionType": "example.com/lb"}]}
    status = {"conditions": [{"type": "example.com/lb", "status": set}] if set else []}
    found = conditions(pod(spec=gates, status=status), (), [container("a")])
    assert (found["Ready"][0], found["Ready"][2]) == ready
    assert found["Ready"][1] == (None if set == "True" else "ReadinessGatesNotReady")
    assert found["ContainersReady"][0] == "True"


def test_an_init_container_is_ready_when_it_has_succeeded():
    done, runs = container("done", runs=False), container("runs")
    done.state = {"terminated": {"exitCode": 0}}
    assert [each.status(pod(), init=True)["ready"] for each in (done, runs)] == [True, False]
    found = conditions(pod(), [done, runs], [container("main", runs=False)], initialised=False)
    assert found["Initialized"] == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [runs]",
    )


def test_a_pod_keeps_its_start_and_the_times_of_conditions_over_a_restart_of_its_node():
    old = pod(
        status={
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:06Z"},
            ],
        }
    )
    status = StatusManager(old, [], [container("a", runs=False)], lambda: 1.8e9).status(old, True)
    times = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert times["Initialized"] == "2026-01-01T00:00:05Z"
    assert times["Ready"] > "2026-01-02"
    assert msgspec.json.encode(status)
