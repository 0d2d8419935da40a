"""Containers of simulated pods over time: ends, restarts, back-off, init containers and sidecars."""

import math

import msgspec
import pytest

from stromboli.api.durations import FOREVER, Duration
from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.simulated.pod_run import SHORTEST_RUN, PodRun, backoff
from stromboli.embedded.nodes.simulated.pod_run_status import PodRunStatus
from stromboli.embedded.nodes.simulated.pod_stages import Stage, StageDelays, next_of_run
from stromboli.embedded.tables.pod_rows import PODS
from tests.embedded.nodes.node_pods import pod

START = 1_700_000_000.0


def containers(*scripts, **more):
    return [
        {"name": f"c{number}", "command": ["sh", "-c", script], **more}
        for number, script in enumerate(scripts)
    ]


def pod_of(*scripts, policy="Never", inits=()):
    return pod(
        spec={"restartPolicy": policy, "containers": containers(*scripts), "initContainers": list(inits)}
    )


class Clock:
    """Plays a pod until a time, and shows it as `kubectl get pods` would."""

    def __init__(self, given):
        self.pod, self.run = given, PodRun(given)
        self.statuses = PodRunStatus(given, self.run)
        self.backoffs = self.run.advance(given, START)

    def at(self, seconds):
        """STATUS, READY and RESTARTS after so many seconds."""
        for _ in range(1000):
            if self.run.due > START + seconds:
                break
            self.backoffs += self.run.advance(self.pod, self.run.due)
        self.now = START + seconds
        return self.shown(self.now)

    def shown(self, now):
        code = self.run.exit_code if self.run.finished else None
        self.content = msgspec.to_builtins(self.pod)
        self.content["status"] = self.statuses.status(self.pod, now, ("10.0.0.1", "172.16.0.1"), code)
        _, ready, status, restarts, *_ = PODS.row(self.content, now)
        return status, ready, restarts.partition(" ")[0]

    def restarted(self):
        """The same after a restart of the node service, which has nothing but the pod."""
        for condition in self.content["status"]["conditions"]:
            condition |= {key: "" for key, value in condition.items() if value is None}  # a patch removes it
        self.pod = msgspec.convert(self.content, NodePod)
        self.run = PodRun(self.pod)
        self.run.restore(self.pod, self.now)
        self.statuses = PodRunStatus(self.pod, self.run)


@pytest.mark.parametrize(
    ("script", "policy", "shown"),
    [
        ("date; echo a", "Never", ("Completed", "0/1", "0")),
        ("exit 3", "Never", ("Error", "0/1", "0")),
        ("exit 0", "OnFailure", ("Completed", "0/1", "0")),
        ("exit 3", "OnFailure", ("CrashLoopBackOff", "0/1", "1")),
        ("exit 0", "Always", ("CrashLoopBackOff", "0/1", "1")),
        ("sleep 30", "Never", ("Running", "1/1", "0")),
        ("sleep infinity", "Always", ("Running", "1/1", "0")),
        ("python train.py", "Always", ("Running", "1/1", "0")),
    ],
)
def test_a_container_ends_and_its_restart_policy_is_obeyed(script, policy, shown):
    assert Clock(pod_of(script, policy=policy)).at(5) == shown


def test_restarts_come_later_and_later():
    clock = Clock(pod_of("exit 1", policy="OnFailure"))
    assert clock.at(0.15) == ("Running", "1/1", "1")  # the first restart is at once
    assert clock.at(0.25) == ("CrashLoopBackOff", "0/1", "1")
    waiting = clock.content["status"]["containerStatuses"][0]
    assert waiting["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=c0")
    assert waiting["lastState"]["terminated"]["exitCode"] == 1
    assert clock.at(10.25) == ("Running", "1/1", "2")
    assert clock.at(15) == ("CrashLoopBackOff", "0/1", "2")
    assert clock.at(3600)[2] == "16"
    assert clock.backoffs == ["c0"] * 16
    assert [backoff(failures) for failures in (1, 2, 3, 6, 7, 99)] == [0, 10, 20, 160, 300, 300]


def test_a_long_run_starts_with_the_first_back_off_again():
    clock = Clock(pod_of("sleep 15m", policy="Always"))
    assert clock.at(3 * 900 + 5) == ("Running", "1/1", "3")
    assert clock.backoffs == []


def test_a_pod_ends_when_all_its_containers_have():
    clock = Clock(pod_of("true", "sleep 10; exit 2", "sleep 5"))
    assert clock.at(7) == ("NotReady", "1/3", "0")
    conditions = {each["type"]: each for each in clock.content["status"]["conditions"]}
    assert conditions["Ready"]["message"] == "containers with unready status: [c0 c2]"
    assert clock.at(11) == ("Completed", "0/3", "0")  # kubectl shows the first container
    assert clock.content["status"]["phase"] == "Failed"


def test_a_pod_with_a_container_that_does_not_say_ends_after_the_run_time():
    given = pod_of("true", "python train.py")
    run, delays = PodRun(given), StageDelays(run_time=Duration(30, 30))
    run.advance(given, START)
    assert next_of_run(given, run, delays).stage is Stage.ADVANCE
    run.advance(given, START + 1)
    assert next_of_run(given, run, delays) == (Stage.COMPLETE, START + 30, 0)
    assert next_of_run(given, run, StageDelays(run_time=FOREVER)) is None
    run.stop(given, START + 30, 0)
    assert run.finished


def test_init_containers_run_in_turn_and_sidecars_beside():
    first, second = containers("sleep 3", "python until_the_database_is_there.py")
    sidecar = {"name": "side", "command": ["sleep", "infinity"], "restartPolicy": "Always"}
    main = containers("sleep 5")[0] | {"name": "main"}
    given = pod(spec={"initContainers": [first, sidecar, second], "containers": [main]})
    clock = Clock(given)
    assert clock.at(1) == ("Init:0/3", "0/2", "0")
    assert clock.content["status"]["phase"] == "Pending"
    assert clock.at(3.05)[0] == "Init:2/3"
    assert clock.at(4) == ("Running", "2/2", "0")
    assert [each["ready"] for each in clock.content["status"]["initContainerStatuses"]] == [True] * 3
    assert clock.at(9) == ("Completed", "0/2", "0")
    assert all("terminated" in each["state"] for each in clock.content["status"]["initContainerStatuses"]), (
        "sidecars end with the others"
    )


def test_an_init_container_that_fails_is_restarted_or_fails_the_pod():
    inits = containers("exit 4")
    inits[0]["name"] = "init"
    never, again = (Clock(pod_of("true", policy=policy, inits=inits)) for policy in ("Never", "Always"))
    assert never.at(1)[0] == "Init:Error"
    assert never.content["status"]["phase"] == "Failed"
    assert again.at(1) == ("Init:CrashLoopBackOff", "0/1", "1")
    assert again.content["status"]["phase"] == "Pending"


def test_after_a_restart_of_the_node_a_pod_goes_on_where_it_was():
    clock = Clock(pod_of("sleep 20; exit 1", "sleep infinity", policy="OnFailure"))
    for seconds, shown in (
        (30, ("Running", "2/2", "1")),
        (45, ("CrashLoopBackOff", "1/2", "1")),
        (60, ("Running", "2/2", "2")),
        (85, ("CrashLoopBackOff", "1/2", "2")),
        (100, ("Running", "2/2", "3")),
    ):
        assert clock.at(seconds) == shown
        statuses = clock.content["status"]["containerStatuses"]
        clock.restarted()
        assert clock.shown(START + seconds) == shown
        assert clock.content["status"]["containerStatuses"] == statuses


def test_a_deadline_ends_a_pod_in_whatever_state_it_is():
    given = pod_of("exit 1", "sleep infinity", policy="OnFailure")
    given.spec.active_deadline_seconds = 5
    run = PodRun(given)
    run.advance(given, START)
    run.advance(given, START + SHORTEST_RUN)
    run.advance(given, START + 2 * SHORTEST_RUN)
    assert next_of_run(given, run, StageDelays()) == (Stage.EXPIRE, START + 5, 0)
    run.stop(given, START + 5, 137)
    assert [main.exit_code for main in run.mains] == [1, 137]
    assert math.isinf(run.due)
