"""What people use with Volcano works with `stromboli up`: its own `vcctl`, Helm, and the Python client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import kubernetes.client as official
import kubernetes.watch
import pytest

from tests.embedded.up_process import Up, eventually
from tests.embedded.volcano_programs import program

pytestmark = [
    pytest.mark.programs("kubectl"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the clients' own making
]
BATCH = ("batch.volcano.sh", "v1alpha1", "default", "jobs")
SCHEDULING = ("scheduling.volcano.sh", "v1beta1")


def job(name: str, replicas: int = 2, seconds: int = 600, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sleep", str(seconds)]}
    container["resources"] = {"requests": {"cpu": "1"}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "minAvailable": replicas, "tasks": [task]} | spec,
    }


@pytest.fixture(scope="module")
def vcctl() -> str:
    return program("vcctl")


@pytest.fixture(scope="module")
def helm() -> str:
    return program("helm")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    options = ("--nodes", "2x4cpu,8Gi", "--schedule-period", "50ms", "--start-delay", "10ms")
    with Up(tmp_path_factory.mktemp("up") / "data", *options) as up:
        yield up


@pytest.fixture
def client(cluster: Up) -> Iterator[official.ApiClient]:
    kubernetes.config.load_kube_config(str(cluster.data / "kubeconfig"))
    with official.ApiClient() as client:
        yield client


def test_the_python_client_submits_a_job_follows_it_to_its_end_and_deletes_it(
    client: official.ApiClient,
) -> None:
    custom, core = official.CustomObjectsApi(client), official.CoreV1Api(client)
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "python"}}
    custom.create_cluster_custom_object(*SCHEDULING, "queues", queue | {"spec": {"weight": 2}})
    made = custom.create_namespaced_custom_object(*BATCH, job("estimate", seconds=1, queue="python"))
    assert made["spec"]["maxRetry"] == 3, "admission fills in what the manifest leaves out"
    phases = []
    watch = kubernetes.watch.Watch()
    version = made["metadata"]["resourceVersion"]
    for event in watch.stream(
        custom.list_namespaced_custom_object,
        *BATCH,
        field_selector="metadata.name=estimate",
        resource_version=version,
        timeout_seconds=30,
    ):
        phases.append(event["object"].get("status", {}).get("state", {}).get("phase"))
        if phases[-1] == "Completed":
            watch.stop()
    assert list(dict.fromkeys(filter(None, phases)))[:1] == ["Pending"]
    assert phases[-1] == "Completed"
    pods = core.list_namespaced_pod("default", label_selector="volcano.sh/job-name=estimate").items
    assert {pod.status.phase for pod in pods} == {"Succeeded"}
    custom.delete_namespaced_custom_object(*BATCH, "estimate")
    with pytest.raises(official.ApiException) as refused:
        custom.create_namespaced_custom_object(*BATCH, job("none", minAvailable=3))
    assert "minAvailable" in refused.value.body


def test_vcctl_runs_suspends_resumes_and_deletes_a_job(vcctl: str, cluster: Up) -> None:
    def of_job(*arguments: str) -> str:
        return cluster.run(vcctl, "job", *arguments)

    def phase() -> str:
        row = next(line.split() for line in of_job("list").splitlines() if line.startswith("shell "))
        return row[2]

    of_job("run", "--name", "shell", "--replicas", "2", "--min", "2")
    eventually(lambda: phase() == "Running")
    assert "Min Available:" in of_job("view", "--name", "shell")
    of_job("suspend", "--name", "shell")
    eventually(lambda: phase() == "Aborted")
    of_job("resume", "--name", "shell")
    eventually(lambda: phase() == "Running")
    assert "shell-default0-1" in cluster.run(vcctl, "pod", "list")
    of_job("delete", "--name", "shell")
    eventually(lambda: "shell" not in of_job("list"))


def test_vcctl_creates_closes_opens_and_deletes_a_queue(vcctl: str, cluster: Up) -> None:
    def of_queue(*arguments: str) -> str:
        return cluster.run(vcctl, "queue", *arguments, "--name", "research")

    def state() -> str:
        return of_queue("get").splitlines()[1].split()[2]

    of_queue("create", "--weight", "3")
    eventually(lambda: state() == "Open")
    of_queue("operate", "--action", "close")
    eventually(lambda: state() == "Closed")
    of_queue("operate", "--action", "open")
    eventually(lambda: state() == "Open")
    of_queue("operate", "--action", "update", "--weight", "5")
    assert of_queue("get").splitlines()[1].split()[1] == "5"
    of_queue("operate", "--action", "close")
    eventually(lambda: state() == "Closed")
    of_queue("delete")


TEMPLATES = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: {{ .Release.Name }}}
spec: {weight: {{ .Values.weight }}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: {{ .Release.Name }}}
spec:
  schedulerName: volcano
  minAvailable: {{ .Values.replicas }}
  tasks:
  - name: frame
    replicas: {{ .Values.replicas }}
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: busybox, command: [sleep, "600"], resources: {requests: {cpu: 500m}}}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart with a Queue of some weight and a Job of some replicas."""
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: render\nversion: 0.1.0\n")
    (folder / "values.yaml").write_text("weight: 2\nreplicas: 2\n")
    (folder / "templates" / "objects.yaml").write_text(TEMPLATES)
    return folder


def test_helm_installs_upgrades_rolls_back_and_uninstalls_a_chart_with_a_job(
    helm: str, cluster: Up, client: official.ApiClient, chart: Path
) -> None:
    custom, core = official.CustomObjectsApi(client), official.CoreV1Api(client)

    def pods() -> list[str]:
        listed = core.list_namespaced_pod("default", label_selector="volcano.sh/job-name=render")
        return [pod.status.phase for pod in listed.items]

    def weight() -> int:
        return custom.get_cluster_custom_object(*SCHEDULING, "queues", "render")["spec"]["weight"]

    cluster.run(helm, "install", "render", str(chart), "--wait", "--timeout", "30s")
    eventually(lambda: pods() == ["Running"] * 2)
    assert weight() == 2
    cluster.run(helm, "upgrade", "render", str(chart))
    cluster.run(helm, "upgrade", "render", str(chart), "--set", "replicas=3,weight=4")
    eventually(lambda: pods() == ["Running"] * 3)
    assert weight() == 4
    cluster.run(helm, "rollback", "render", "1")
    eventually(lambda: pods() == ["Running"] * 2)
    assert weight() == 2
    assert "superseded" in cluster.run(helm, "history", "render")
    cluster.run(helm, "uninstall", "render")
    eventually(lambda: pods() == [])
    with pytest.raises(official.ApiException, match="404"):
        custom.get_namespaced_custom_object(*BATCH, "render")
    with pytest.raises(official.ApiException, match="404"):
        weight()
