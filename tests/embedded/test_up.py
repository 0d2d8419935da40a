"""`stromboli up` as users have it: real kubectl, real processes, stopped, killed and started again."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.nodes.machine.fake_nvidia_smi import install, row, uuid
from tests.embedded.up_process import Up, eventually

_numbers = itertools.count(1)
ROOT = Path(__file__).parents[2]
GANG = str(ROOT / "examples" / "laptop" / "gang.yaml")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl here"),
]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: web, tier: front}}
spec:
  schedulerName: volcano
  restartPolicy: Never
  containers: [{name: main, image: none, command: [%s], resources: {requests: {cpu: 100m}}}]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: main, image: none}]}
"""

_TEMPLATE = """
  template:
    metadata: {labels: {app: %s}}
    spec:
      nodeSelector: {stromboli.sh/node: real}
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: none
        command: [sh, -c, 'echo started >> "$STROMBOLI_ROOT/data/log"; exec sleep 1000']
        volumeMounts: [{name: d, mountPath: /data}]
"""
_CLAIM = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
CLAIMS = f"""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
{_CLAIM}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: shared}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: shared}}}}
{_TEMPLATE % "shared"}
      volumes: [{{name: d, persistentVolumeClaim: {{claimName: data}}}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: own}}
spec:
  serviceName: own
  replicas: 1
  selector: {{matchLabels: {{app: own}}}}
{_TEMPLATE % "own"}
  volumeClaimTemplates:
  - metadata: {{name: d}}
    {_CLAIM}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    options = ("--nodes", "2x8cpu", "--nodes", "real=2x4cpu,8Gi,real", "--schedule-period", "200ms")
    with Up(tmp_path_factory.mktemp("up") / "data", *options) as up:
        yield up


@pytest.fixture
def space(cluster: Up) -> Iterator[str]:
    """A namespace of its own, which kubectl uses."""
    name = f"space-{next(_numbers)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("config", "set-context", "--current", f"--namespace={name}")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def test_apply_get_describe_and_delete(cluster: Up, space: str) -> None:
    assert "pod/a created" in cluster.kubectl("apply", "-f", "-", stdin=POD % ("a", "sleep, '1000'"))
    assert "pod/a unchanged" in cluster.kubectl("apply", "-f", "-", stdin=POD % ("a", "sleep, '1000'"))
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/a")
    lines = cluster.kubectl("get", "pods", "-o", "wide").splitlines()
    assert lines[0].split()[:8] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED"]
    assert lines[1].split()[:4] == ["a", "1/1", "Running", "0"]
    assert cluster.json("get", "pod", "a")["status"]["phase"] == "Running"
    assert "phase: Running" in cluster.kubectl("get", "pod", "a", "-o", "yaml")
    assert cluster.kubectl("get", "pods", "-l", "app=web,tier in (front)", "-o", "name") == "pod/a\n"
    assert "No resources" in cluster.kubectl("get", "pods", "-l", "app!=web")
    assert (
        cluster.kubectl("get", "pods", "--field-selector", "status.phase=Running", "-o", "name") == "pod/a\n"
    )
    assert cluster.kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}") == "a"
    assert cluster.kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name", "--no-headers") == "a\n"
    described = cluster.kubectl("describe", "pod", "a")
    assert "Successfully assigned" in described
    assert "Command:" in described
    assert "deleted" in cluster.kubectl("delete", "pod", "a")
    assert "NotFound" in cluster.kubectl("get", "pod", "a", ok=False)


def test_watch_tells_every_change(cluster: Up, space: str) -> None:
    watching = subprocess.Popen(
        ["kubectl", "get", "pods", "-w", "--no-headers"],
        env=cluster.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    with watching:
        cluster.kubectl("create", "-f", "-", stdin=POD % ("first", "sleep, '1000'"))
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("first")
        cluster.kubectl("create", "-f", "-", stdin=POD % ("w", "sleep, '1'"))
        states = []
        for line in watching.stdout:
            name, _, state, *_ = line.split()
            states += [state] if name == "w" else []
            if state == "Completed":
                break
        watching.terminate()
    assert states[0] == "Pending"
    assert "Running" in states


def test_change_by_patch_label_annotate_and_scale(cluster: Up, space: str, tmp_path: Path) -> None:
    cluster.kubectl("create", "configmap", "c", "--from-literal=a=1")
    cluster.kubectl("label", "configmap", "c", "team=blue")
    cluster.kubectl("annotate", "configmap", "c", "note=hello there")
    cluster.kubectl("patch", "configmap", "c", "-p", '{"data":{"b":"2"}}')
    cluster.kubectl("patch", "configmap", "c", "--type=json", "-p", '[{"op":"remove","path":"/data/a"}]')
    cluster.kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"c":"3"}}')
    shown = cluster.json("get", "configmap", "c")
    assert shown["data"] == {"b": "2", "c": "3"}
    assert shown["metadata"]["labels"] == {"team": "blue"}
    assert "overwrite" in cluster.kubectl("label", "configmap", "c", "team=red", ok=False)
    cluster.kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    cluster.kubectl("scale", "deployment", "web", "--replicas=5")
    assert cluster.json("get", "deployment", "web")["spec"]["replicas"] == 5
    assert cluster.kubectl("get", "deployments").splitlines()[1].split()[:2] == ["web", "0/5"]
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/team: blue/team: green/' \"$1\"\n")
    editor.chmod(0o700)
    edited = cluster.run("env", f"KUBE_EDITOR={editor}", "kubectl", "edit", "configmap", "c")
    assert "configmap/c edited" in edited
    assert cluster.json("get", "configmap", "c")["metadata"]["labels"] == {"team": "green"}


def test_a_gang_of_real_processes_runs_and_speaks(cluster: Up, space: str) -> None:
    text = (
        Path(GANG)
        .read_text()
        .replace(
            "schedulerName: volcano", "schedulerName: volcano\n  nodeSelector: {stromboli.sh/node: real}"
        )
    )
    cluster.kubectl("apply", "-f", "-", stdin=text)
    pods = [f"pod/ring-{number}" for number in range(3)]
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=40s", *pods)
    runs = []
    for rank in range(3):
        assert cluster.kubectl("logs", f"ring-{rank}") == f"rank {rank} of 3 in ring-{rank}\n"
        status = cluster.json("get", "pod", f"ring-{rank}")["status"]
        runs.append(status["containerStatuses"][0]["state"]["terminated"])
    assert max(run["startedAt"] for run in runs) <= min(run["finishedAt"] for run in runs)
    assert cluster.json("get", "podgroup", "ring")["status"]["phase"] in ("Running", "Completed")


TALKS = """
apiVersion: v1
kind: Pod
metadata: {name: talks}
spec:
  nodeName: real-1
  restartPolicy: OnFailure
  containers:
  - name: main
    image: none
    command: [sh, -c, "echo one; echo two; sleep 1; echo three; test -e done || { touch done; exit 1; }"]
"""


def test_logs_followed_cut_and_of_the_run_before(cluster: Up, space: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=TALKS)
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", "pod/talks")
    assert cluster.kubectl("logs", "talks") == "one\ntwo\nthree\n"
    assert cluster.kubectl("logs", "talks", "--tail=1") == "three\n"
    assert cluster.kubectl("logs", "talks", "--previous") == "one\ntwo\nthree\n"
    assert cluster.kubectl("logs", "talks", "-f", "--timestamps").splitlines()[0].endswith("Z one")
    assert "not found" in cluster.kubectl("logs", "none", ok=False)
    assert cluster.json("get", "pod", "talks")["status"]["containerStatuses"][0]["restartCount"] == 1
    assert "Started container main" in cluster.kubectl("describe", "pod", "talks")


def test_a_pod_that_names_no_scheduler_runs_too(cluster: Up, space: str) -> None:
    cluster.kubectl("run", "hi", "--image=none", "--restart=Never", "--command", "--", "sleep", "1")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", "pod/hi")
    assert "PodGroup" in cluster.kubectl("get", "podgroups", "-o", "yaml")


def test_rights_are_asked_for_and_enforced(cluster: Up, space: str) -> None:
    assert cluster.kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "*.*" in cluster.kubectl("auth", "can-i", "--list")
    cluster.kubectl("create", "serviceaccount", "bot")
    account_user = f"system:serviceaccount:{space}:bot"
    assert cluster.kubectl("auth", "can-i", "list", "pods", "--as", account_user, ok=False) == "no\n"
    assert "forbidden" in cluster.kubectl("get", "pods", "--as", account_user, ok=False)
    cluster.kubectl("create", "rolebinding", "view", "--clusterrole=view", f"--serviceaccount={space}:bot")
    assert cluster.kubectl("auth", "can-i", "list", "pods", "--as", account_user) == "yes\n"
    assert "No resources" in cluster.kubectl("get", "pods", "--as", account_user)
    assert "forbidden" in cluster.kubectl("get", "pods", "-n", "kube-system", "--as", account_user, ok=False)
    assert "forbidden" in cluster.kubectl("get", "secrets", "--as", account_user, ok=False)
    token = cluster.kubectl("create", "token", "bot").strip()
    assert account_user in cluster.kubectl("auth", "whoami", "--token", token)


def test_kinds_are_listed_and_explained(cluster: Up) -> None:
    listed = cluster.kubectl("api-resources")
    for kind in ("Pod", "PodGroup", "Queue", "Deployment", "PodDisruptionBudget", "CustomResourceDefinition"):
        assert any(line.split()[-1] == kind for line in listed.splitlines()), kind
    assert "minMember" in cluster.kubectl("explain", "podgroup.spec")
    assert "restartPolicy" in cluster.kubectl("explain", "pod.spec")
    assert "scheduling.volcano.sh/v1beta1" in cluster.kubectl("api-versions")


def test_what_makes_no_sense_is_refused(cluster: Up, space: str) -> None:
    wrong = (POD % ("a", "x")).replace("schedulerName: volcano", "schedulerNaem: volcano")
    assert "schedulerNaem" in cluster.kubectl("apply", "-f", "-", stdin=wrong, ok=False)
    group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: many}"
    assert "minMember" in cluster.kubectl("apply", "-f", "-", stdin=group, ok=False)


def test_claims_of_workloads_are_bound_to_folders_that_outlive_their_pods(cluster: Up, space: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=CLAIMS)
    cluster.kubectl("rollout", "status", "deployment/shared", "--timeout=60s")
    cluster.kubectl("rollout", "status", "statefulset/own", "--timeout=60s")
    claims = {item["metadata"]["name"]: item for item in cluster.json("get", "pvc")["items"]}
    assert {name: claim["status"]["phase"] for name, claim in claims.items()} == {
        "data": "Bound",
        "d-own-0": "Bound",
    }
    volumes = {name: cluster.data / "volumes" / claim["spec"]["volumeName"] for name, claim in claims.items()}

    def starts(claim: str) -> int:
        file = volumes[claim] / "log"
        return file.read_text().count("started\n") if file.exists() else 0

    eventually(lambda: starts("data") == 2)
    cluster.kubectl("delete", "pod", "own-0")
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/own-0")
    eventually(lambda: starts("d-own-0") == 2)
    cluster.kubectl("delete", "deployment/shared", "statefulset/own")
    cluster.kubectl("delete", "pvc", "--all", "--timeout=60s")
    eventually(lambda: not any(folder.exists() for folder in volumes.values()))


def test_a_node_is_described_as_a_kubelet_reports_it(cluster: Up, space: str) -> None:
    pod = (POD % ("d", "sleep, '1000'")).replace("schedulerName: volcano", "nodeName: real-1")
    cluster.kubectl("apply", "-f", "-", stdin=pod)
    described = cluster.kubectl("describe", "node", "real-1")
    sections = [line.partition(":")[0] for line in described.splitlines() if line[:1].isalpha()]
    for section in ("Lease", "Conditions", "Addresses", "Capacity", "Allocatable", "System Info"):
        assert section in sections
    for text in (
        "HolderIdentity:  real-1",
        "kubelet has no disk pressure",
        "Machine ID:  ",
        "ephemeral-storage",
    ):
        assert text in described
    allocated = described.partition("Allocated resources:")[2]
    assert [line.split() for line in allocated.splitlines() if " cpu " in line] == [
        ["cpu", "100m", "(2%)", "0", "(0%)"]
    ]


def test_top_shows_what_nodes_pods_and_containers_use(cluster: Up, space: str) -> None:
    pod = (POD % ("t", "sh, -c, 'while :; do :; done'")).replace("schedulerName: volcano", "nodeName: real-1")
    cluster.kubectl("apply", "-f", "-", stdin=pod)
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/t")
    nodes = {line.split()[0]: line.split() for line in cluster.kubectl("top", "nodes").splitlines()}
    assert {"NAME", "n1", "n2", "real-1", "real-2"} <= nodes.keys()
    assert all(column.strip("m%Mi").isdecimal() for column in nodes["n1"][1:])
    header, row = (
        line.split() for line in cluster.kubectl("top", "pods", "--containers", "-l", "app=web").splitlines()
    )
    assert header == ["POD", "NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert row[:2] == ["t", "main"]
    assert int(row[2].removesuffix("m")) > 0
    assert "cpu" in cluster.kubectl("get", "pods.metrics.k8s.io").splitlines()[0].lower()


def test_a_node_fails_and_comes_back(cluster: Up, space: str) -> None:
    pod = (POD % ("v", "sleep, '1000'")).replace("schedulerName: volcano", "nodeName: n2")
    cluster.kubectl("apply", "-f", "-", stdin=pod)
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/v")
    assert "n2: failed" in cluster.stromboli("node", "fail", "n2")
    cluster.kubectl("wait", "--for=delete", "--timeout=30s", "pod/v")
    assert cluster.kubectl("get", "node", "n2", "--no-headers").split()[1] == "NotReady"
    assert "n2: back" in cluster.stromboli("node", "recover", "n2")
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "node/n2")
    assert "not found" in cluster.stromboli("node", "fail", "nowhere", ok=False)
    cluster.kubectl("create", "-f", "-", stdin="apiVersion: v1\nkind: Node\nmetadata: {name: foreign}")
    assert "not one that we run" in cluster.stromboli("node", "fail", "foreign", ok=False)
    cluster.kubectl("delete", "node", "foreign")


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


# -- stopped, killed, started again


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


GPU_POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  schedulerName: volcano
  restartPolicy: Never
  containers:
  - {name: main, image: none, command: [%s], resources: {limits: {nvidia.com/gpu: 1}}}
"""


def test_the_gpu_of_a_killed_cluster_is_given_out_once_its_processes_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin = install(tmp_path, row(0))
    monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with Up(tmp_path / "data", "--real", "--schedule-period", "200ms") as up:
        [node] = up.json("get", "nodes")["items"]
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
        assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H200"
        daemon = "setsid sleep 987 & echo $!; echo $CUDA_VISIBLE_DEVICES; wait"
        up.kubectl("apply", "-f", "-", stdin=GPU_POD % ("old", f"sh, -c, '{daemon}'"))
        up.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/old")
        eventually(lambda: len(up.kubectl("logs", "old").split()) == 2)
        pid, card = up.kubectl("logs", "old").split()
        assert card == uuid(0)
        up.kubectl("apply", "-f", "-", stdin=GPU_POD % ("next", f"sh, -c, 'cat /proc/{pid}/status || true'"))
        up.stop(signal.SIGKILL)
        up.start()
        up.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", "pod/next")
        log = up.kubectl("logs", "next")
        assert "No such file" in log or "Z (zombie)" in log
        assert up.json("get", "pod", "old")["status"]["phase"] == "Failed"
        assert [each["metadata"]["name"] for each in up.json("get", "nodes")["items"]] == [
            node["metadata"]["name"]
        ]
        assert "2 GPUs for real nodes: this machine has 1" in up.stromboli(
            "up", "--nodes", "2cpu,2gpu,real", ok=False
        )


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
    ],
)
def test_options_that_make_no_sense_are_explained(tmp_path: Path, options: list[str], problem: str) -> None:
    up = Up(tmp_path / "data")
    assert problem in up.stromboli("up", *options, ok=False)
