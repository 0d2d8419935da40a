"""Probes and lifecycle hooks of containers on real nodes, on the embedded server."""

import asyncio
import json

import pytest

from stromboli.kube.api_resources import Resource
from tests.embedded.nodes.node_services import PODS, running_nodes

EVENTS = Resource("", "v1", "events", "Event")
WAITS = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.02; done"]


def shell(script):
    return {"exec": {"command": ["sh", "-c", script]}}


def status(pod, name="main"):
    all = [*pod["status"].get("containerStatuses", ()), *pod["status"].get("initContainerStatuses", ())]
    return next((each for each in all if each["name"] == name), {})


def condition(pod, type):
    return next(
        (each["status"] for each in pod["status"].get("conditions", ()) if each["type"] == type), None
    )


async def events(cluster, pod, *expected):
    """Wait until the pod has events with these texts."""
    async with asyncio.timeout(20):
        while True:
            items = json.loads(await cluster.client.list(EVENTS, namespace="default"))["items"]
            texts = [
                f"{item['reason']}: {item['message']}"
                for item in items
                if item["involvedObject"]["name"] == pod
            ]
            if all(any(text in each for each in texts) for text in expected):
                return texts
            await asyncio.sleep(0.05)


@pytest.mark.slow
def test_a_container_is_started_ready_and_killed_as_its_probes_say(tmp_path):
    probe = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5}
    container = {
        "startupProbe": {**shell("test -e started"), **probe, "failureThreshold": 100},
        "readinessProbe": {**shell("test -e ready"), **probe},
        "livenessProbe": {
            **shell("echo I am ill; test ! -e ill"),
            **probe,
            "terminationGracePeriodSeconds": 1,
        },
    }
    stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 0.02; done"]

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=stubborn, container=container, spec={"restartPolicy": "OnFailure"})
            pod = await cluster.phase("p", "Running")
            assert (status(pod)["started"], status(pod)["ready"], condition(pod, "Ready")) == (
                False,
                False,
                "False",
            )
            await events(cluster, "p", "Unhealthy: Startup probe failed")
            (root,) = (tmp_path / "work" / "pods").glob("*/root")
            (root / "started").touch()
            pod = await cluster.until("p", lambda pod: status(pod)["started"])
            assert not status(pod)["ready"]
            (root / "ready").touch()
            pod = await cluster.until("p", lambda pod: condition(pod, "Ready") == "True")
            assert status(pod)["ready"]
            (root / "ready").unlink()
            await cluster.until("p", lambda pod: condition(pod, "ContainersReady") == "False")
            (root / "ill").touch()
            pod = await cluster.until("p", lambda pod: status(pod)["restartCount"] == 1)
            assert status(pod)["lastState"]["terminated"]["exitCode"] == 137
            await events(
                cluster,
                "p",
                "Unhealthy: Readiness probe failed",
                "Unhealthy: Liveness probe failed: I am ill",
                "Killing: Container main failed liveness probe, will be restarted",
            )
            await cluster.delete("p", grace=0)

    asyncio.run(scenario())


def test_a_pod_that_is_not_restarted_fails_with_its_probe(tmp_path):
    liveness = {"tcpSocket": {"port": "none"}, "periodSeconds": 1, "failureThreshold": 1}
    dead = {**liveness, "tcpSocket": {"port": 1}}

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("fails", command=["sleep", "987"], container={"livenessProbe": dead})
            await cluster.pod("errs", command=["sleep", "987"], container={"livenessProbe": liveness})
            pod = await cluster.phase("fails", "Failed")
            assert status(pod)["state"]["terminated"]["exitCode"] == 143
            await events(
                cluster,
                "fails",
                "Unhealthy: Liveness probe failed: dial tcp 127.0.0.1:1: connect: connection refused",
                "Killing: Container main failed liveness probe",
            )
            await events(
                cluster, "errs", "Unhealthy: Liveness probe errored and resulted in unknown state: port"
            )
            assert (await cluster.get("errs"))["status"]["phase"] == "Running"

    asyncio.run(scenario())


def test_a_sidecar_lets_the_next_container_begin_when_it_has_started_and_ends_last(tmp_path):
    record = tmp_path / "record"
    side = {
        "name": "side",
        "image": "x",
        "restartPolicy": "Always",
        "command": [
            "sh",
            "-c",
            f"trap 'echo side ends >> {record}; exit 0' TERM; while :; do sleep 0.02; done",
        ],
        "startupProbe": {**shell(f"test -e {tmp_path}/go"), "periodSeconds": 1, "failureThreshold": 100},
    }
    ends = f"trap 'sleep 0.2; echo main ends >> {record}; exit 0' TERM"
    main = f"echo main begins >> {record}; {ends}; while :; do sleep 0.02; done"

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=["sh", "-c", main], spec={"initContainers": [side]})
            pod = await cluster.until("p", lambda pod: "running" in status(pod, "side").get("state", {}))
            assert (condition(pod, "Initialized"), status(pod, "side")["started"]) == ("False", False)
            (tmp_path / "go").touch()
            pod = await cluster.until("p", lambda pod: condition(pod, "Ready") == "True")
            assert status(pod, "side")["started"]
            async with asyncio.timeout(10):
                while not record.exists():
                    await asyncio.sleep(0.02)
            await cluster.delete("p")
            await cluster.gone("p")
        assert record.read_text().splitlines() == ["main begins", "main ends", "side ends"]

    asyncio.run(scenario())


def test_hooks_run_after_the_start_and_before_the_end(tmp_path):
    record = tmp_path / "record"
    first = {
        "name": "first",
        "image": "x",
        "command": ["sh", "-c", f"trap 'echo TERM >> {record}; exit 0' TERM; while :; do sleep 0.02; done"],
        "lifecycle": {
            "postStart": shell(f"sleep 0.3; echo postStart >> {record}"),
            "preStop": shell(f"sleep 0.3; echo preStop >> {record}"),
        },
    }
    second = {
        "name": "second",
        "image": "x",
        "command": ["sh", "-c", f"echo second >> {record}; exec sleep 987"],
    }
    slow = {"preStop": {"sleep": {"seconds": 900}}}
    broken = {"preStop": {"httpGet": {"port": 1}}}
    quits = {"preStop": shell("touch quit; sleep 987")}
    until_quit = ["sh", "-c", "while [ ! -e quit ]; do sleep 0.02; done"]

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", spec={"containers": [first, second]})
            await cluster.pod("slow", command=WAITS, container={"lifecycle": slow})
            await cluster.pod("broken", command=WAITS, container={"lifecycle": broken})
            await cluster.pod("quits", command=until_quit, container={"lifecycle": quits})
            for name in ("p", "slow", "broken", "quits"):
                await cluster.until(name, lambda pod: condition(pod, "Ready") == "True")
            async with asyncio.timeout(10):
                while "second" not in record.read_text():
                    await asyncio.sleep(0.02)
            for name in ("p", "broken", "quits"):
                await cluster.delete(name)
            await cluster.delete("slow", grace=1)
            await events(
                cluster, "broken", "FailedPreStopHook: PreStopHook failed: Get", "Killing: Stopping container"
            )
            for name in ("p", "slow", "broken", "quits"):
                await cluster.gone(name)
            texts = await events(cluster, "quits", "Killing: Stopping container")
            assert not any("FailedPreStopHook" in text for text in texts)
        assert record.read_text().splitlines() == ["postStart", "second", "preStop", "TERM"]

    asyncio.run(scenario())


def test_a_container_whose_post_start_hook_fails_is_killed(tmp_path):
    hook = {"postStart": shell("echo cannot; exit 4")}

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=["sleep", "987"], container={"lifecycle": hook})
            pod = await cluster.phase("p", "Failed")
            assert status(pod)["state"]["terminated"]["exitCode"] == 143
            await events(
                cluster,
                "p",
                "FailedPostStartHook: PostStartHook failed: command exited with 4: cannot",
                "Killing: FailedPostStartHook",
            )

    asyncio.run(scenario())


def test_a_pod_is_ready_once_the_condition_of_its_gate_is_set(tmp_path):
    gate = {"type": "example.com/balanced", "status": "True"}

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=WAITS, spec={"readinessGates": [{"conditionType": gate["type"]}]})
            pod = await cluster.until("p", lambda pod: condition(pod, "ContainersReady") == "True")
            assert condition(pod, "Ready") == "False"
            patch = {"status": {"conditions": [*pod["status"]["conditions"], gate]}}
            await cluster.client.patch(PODS, "p", patch, "default", subresource="status")
            await cluster.until("p", lambda pod: condition(pod, "Ready") == "True")

    asyncio.run(scenario())


def test_the_last_words_of_a_container_are_in_its_status(tmp_path):
    said = 'echo "$HOSTNAME gives up" > $STROMBOLI_ROOT/dev/termination-log; exit 3'
    logs = {"terminationMessagePolicy": "FallbackToLogsOnError"}

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await cluster.pod("p", command=["sh", "-c", said], spec={"hostname": "worker-7"})
            await cluster.pod("logs", command=["sh", "-c", "echo no more room >&2; exit 1"], container=logs)
            for name, message in (("p", "worker-7 gives up\n"), ("logs", "no more room\n")):
                pod = await cluster.phase(name, "Failed")
                assert status(pod)["state"]["terminated"]["message"] == message

    asyncio.run(scenario())


def test_a_container_may_have_a_restart_policy_of_its_own(tmp_path):
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule]}

    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            script = "test -e tried && exit 1; touch tried; exit 42"
            await cluster.pod("p", command=["sh", "-c", script], container=own)
            pod = await cluster.phase("p", "Failed")
            assert (status(pod)["restartCount"], status(pod)["state"]["terminated"]["exitCode"]) == (1, 1)

    asyncio.run(scenario())
