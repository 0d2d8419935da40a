"""`stromboli up` as a process: started, asked, stopped, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest

from stromboli.api import names
from stromboli.scheduler.explain.policy_record import MAX_POLICY_TEXT
from tests.embedded.up_process import POD, Up, eventually

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.programs("kubectl")


def test_status_and_a_second_cluster_on_the_same_data(cluster: Up) -> None:
    shown = json.loads(cluster.stromboli("status", "-o", "json"))
    assert shown["nodes"] == {"total": 4, "Ready": 4}
    assert shown["data"] == str(cluster.data)
    assert "4 Ready" in cluster.stromboli("status")
    assert "pid:" in cluster.stromboli("status", "-o", "yaml")
    cluster.kubectl("apply", "-n", "default", "-f", str(ROOT / "examples" / "jobs" / "sweep.yaml"))
    assert sum(json.loads(cluster.stromboli("status", "-o", "json"))["jobs"].values()) == 1
    assert "\nJobs   1: " in cluster.stromboli("status")
    cluster.kubectl("delete", "-n", "default", "jobs.batch.volcano.sh", "sweep")
    taken = shown["url"].rpartition(":")[2]
    assert f"127.0.0.1:{taken} is in use already" in cluster.stromboli("up", "--port", taken, ok=False)
    refused = cluster.stromboli("up", "--data", str(cluster.data), ok=False)
    assert "a cluster runs there already" in refused
    assert stat.S_IMODE((cluster.data / "kubeconfig").stat().st_mode) == 0o600


def test_idle_it_takes_no_time_to_speak_of(cluster: Up) -> None:
    assert cluster.process is not None

    def spent() -> float:
        fields = Path(f"/proc/{cluster.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    if not Path("/proc/self/stat").exists():
        pytest.skip("no /proc here")
    before = spent()
    time.sleep(3)
    assert spent() - before < 0.45  # with five cycles a second; 15 % of a core would be a leak


def test_killed_and_started_again_it_goes_on_where_it_was(tmp_path: Path) -> None:
    with Up(tmp_path / "data", "--nodes", "1x8cpu", "--nodes", "real=1x4cpu,real") as up:
        pod = (POD % ("stays", "sleep, '1000'")).replace("schedulerName: volcano", "nodeName: n1")
        up.kubectl("apply", "-f", "-", stdin=pod)
        up.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/stays")
        port = up.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
        status, _ = up.stop(signal.SIGKILL)
        assert status == -signal.SIGKILL
        up.options = ()
        up.start()
        assert up.kubectl("get", "pods", "--no-headers").split()[:3] == ["stays", "1/1", "Running"]
        assert [line.split()[0] for line in up.kubectl("get", "nodes", "--no-headers").splitlines()] == [
            "n1",
            "real-1",
        ]
        assert (
            up.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}") == port
        )
        assert "stopped" in up.stromboli("down")
        assert up.process is not None
        assert up.process.wait(30) == 0
        assert "no cluster runs" in up.stromboli("status", ok=False)


def test_ctrl_c_stops_it_and_its_processes(tmp_path: Path) -> None:
    with Up(tmp_path / "data", "--real") as up:
        pod = POD % ("p", "sh, -c, 'echo $$$$; sleep 987'")
        up.kubectl("apply", "-f", "-", stdin=pod)
        up.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/p")
        pid = int(up.kubectl("logs", "p"))
        status, output = up.stop(signal.SIGINT)
        assert status == 0
        assert output == "stopping\n"
        assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()
        assert not (tmp_path / "data" / "kubeconfig").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--nodes", "many"], "no amount"),
        (["--run-time", "soon"], "expected a time"),
        (["--preset", "fool"], "fool"),
        (["--policy", "a", "--preset", "full"], "exclude each other"),
        (["--policy", "/no/such/file"], "/no/such/file"),
        (["--data", "/dev/null/x"], "cannot be made"),
        (
            ["--scheduler-sharding-mode", "harder"],
            "--scheduler-sharding-mode: 'harder' is not one of none, soft, hard",
        ),
        (["--controllers", "*,-sharding"], "'sharding' is no controller"),
        (["--feature-gates", "PriorityClass=perhaps"], "is neither true nor false"),
    ],
)
def test_options_that_make_no_sense_are_explained(tmp_path: Path, options: list[str], problem: str) -> None:
    up = Up(tmp_path / "data")
    assert problem in up.stromboli("up", *options, ok=False)


def test_it_takes_the_flags_of_shards_and_scheduling_gates(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity}]}]\n"
    )
    options = (
        *("--nodes", "4x8cpu", "--feature-gates", f"{names.QUEUE_ADMISSION}=true", "--controllers", "*"),
        *("--scheduler-sharding-mode", "hard", "--scheduler-configs", "volcano:volcano:0.0:1.0:false:1:2"),
        *("--start-delay", "10ms", "--sharding-configmap", "", "--policy", str(policy)),
    )
    with Up(tmp_path / "data", *options) as up:

        def shard() -> list[str]:
            shards = up.json("get", "nodeshards")["items"]
            return shards[0]["spec"]["nodesDesired"] if shards else []

        eventually(lambda: len(shard()) == 2)
        gated = POD.replace("labels:", f"annotations: {{{names.QUEUE_ALLOCATION_GATE}: 'true'}}, labels:")
        up.kubectl("apply", "-f", "-", stdin=gated % ("small", "sleep 987"))
        up.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "--timeout=30s", "pod/small")
        assert up.json("get", "pod", "small")["spec"]["nodeName"] in shard()
        up.kubectl("apply", "-f", "-", stdin=gated.replace("100m", "99") % ("large", "sleep 987"))
        (gate,) = up.json("get", "pod", "large")["spec"]["schedulingGates"]
        assert gate["name"] == names.QUEUE_ALLOCATION_GATE


CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: |
    actions: "%s"
    tiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]
"""


def test_it_follows_the_config_map_of_volcanos_scheduler(tmp_path: Path) -> None:
    with Up(tmp_path / "data", "--schedule-period", "200ms") as up:

        def in_force() -> str:
            return json.loads(up.kubectl("get", "--raw", "/explain/policy"))["source"]

        def reasons() -> set[str]:
            return {event["reason"] for event in up.json("get", "events", "-A")["items"]}

        assert in_force() == "preset full"
        up.kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "enqueue, allocate")
        eventually(lambda: in_force() == "ConfigMap volcano-system/volcano-scheduler-configmap")
        eventually(lambda: names.EVENT_POLICY_LOADED in reasons())
        up.kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "enqueue, alocate")
        eventually(lambda: "Policy refused" in up.stromboli("status"))
        assert "failed to find Action alocate" in up.stromboli("status")
        eventually(lambda: names.EVENT_POLICY_REFUSED in reasons())
        document = json.loads(up.kubectl("get", "--raw", "/explain/policy"))
        assert [action["name"] for action in document["actions"]] == ["enqueue", "allocate"]
        assert "replaced" in up.stromboli("policy", "apply", "--preset", "basic", "--yes")
        eventually(lambda: "Policy refused" not in up.stromboli("status"))
        large = CONFIG_MAP % "enqueue, allocate" + "    # a long comment\n" * (MAX_POLICY_TEXT // 15)
        up.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=large)
        eventually(
            lambda: json.loads(up.kubectl("get", "--raw", "/explain/policy")).get("textLeftOut", 0) > 0
        )
        assert "shares by volcano-system/volcano-scheduler-configmap" in up.stromboli("status")
        up.kubectl("delete", "configmap", "-n", "volcano-system", "volcano-scheduler-configmap")
        eventually(lambda: in_force() == "preset full")
        assert "shares by preset full" in up.stromboli("status")
        other = ("--configmap", "default/other", "--yes")
        refused = up.stromboli("policy", "apply", "--preset", "basic", *other, ok=False)
        assert "follows ConfigMap volcano-system/volcano-scheduler-configmap" in refused
        up.kubectl(
            "apply", "-f", "-", stdin=(CONFIG_MAP % "allocate").replace("volcano-scheduler.conf", "conf")
        )
        assert "shares by preset full" in up.stromboli("status")
        _, output = up.stop()
        assert "it has no policy in key volcano-scheduler.conf (keys: conf)" in output


def test_the_policy_in_force_is_not_guessed_for_users_that_may_not_read_the_config_map(
    tmp_path: Path,
) -> None:
    with Up(tmp_path / "data") as up:
        up.kubectl("apply", "-f", "-", stdin=CONFIG_MAP % "allocate")
        user = {**up.json("config", "view", "--raw")}
        user["users"][0]["user"]["as"] = "somebody"
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(user))
        for command in ("apply", "diff"):
            answer = up.stromboli(
                "policy", command, "--preset", "full", "--kubeconfig", str(kubeconfig), ok=False
            )
            assert "may not get configmaps in namespace volcano-system" in answer
            assert "does the same" not in answer
