"""What people do with kubectl on `stromboli up`, here on a folder that an earlier release left."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from tests.embedded.former_release import make_folder
from tests.embedded.up_process import Up, eventually

pytestmark = pytest.mark.programs("kubectl")

UNIT = "stromboli.service"
QUEUED = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: serving}
spec: {weight: 1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: queued}
spec:
  selector: {matchLabels: {app: queued}}
  template:
    metadata:
      labels: {app: queued}
      annotations: {scheduling.volcano.sh/queue-name: serving}
    spec:
      schedulerName: volcano
      containers: [{name: main, image: none, resources: {requests: {cpu: 300m}}}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: chosen}
spec:
  replicas: 2
  selector: {matchLabels: {app: chosen}}
  template:
    metadata: {labels: {app: chosen}}
    spec:
      schedulerName: volcano
      nodeSelector: {kubernetes.io/hostname: n1}
      containers: [{name: main, image: none, resources: {requests: {cpu: 100m}, limits: {cpu: 100m}}}]
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: fluid}
spec:
  minAvailable: 2
  schedulerName: volcano
  policies: [{event: PodEvicted, action: RestartJob}, {event: PodFailed, action: RestartJob}]
  tasks:
  - name: pserver
    replicas: 1
    template:
      spec:
        restartPolicy: OnFailure
        containers: [{name: main, image: none, command: [paddle, start]}]
  - name: trainer
    replicas: 1
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template:
      spec:
        restartPolicy: OnFailure
        imagePullSecrets: [{name: nowhere}]
        volumes: [{name: data, hostPath: {path: /nowhere, type: ''}}]
        containers:
        - name: main
          image: none
          command: [sh, -c, 'echo trained']
          volumeMounts: [{name: data, mountPath: /mnt}]
          resources: {requests: {cpu: 100m, ephemeral-storage: 1Gi}, limits: {ephemeral-storage: 10Gi}}
          env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
"""


AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""
"""From a file: the flags of `kubectl autoscale` differ between versions."""


class ServiceUp(Up):
    """As systemd runs it."""

    @property
    def environment(self) -> dict[str, str]:
        notify = str(self.data.parent / "notify")
        return super().environment | {"STROMBOLI_UNIT": UNIT, "NOTIFY_SOCKET": notify}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceUp]:
    folder = tmp_path_factory.mktemp("stories")
    make_folder(folder / "data")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(folder / "notify"))
        with ServiceUp(folder / "data", "--start-delay", "50ms", "--schedule-period", "200ms") as running:
            assert listener.recv(1000).startswith(b"READY=1\nSTATUS=at https://127.0.0.1:")
            yield running


def test_what_an_earlier_release_stored_comes_alive(cluster: ServiceUp) -> None:
    cluster.kubectl("rollout", "status", "deployment/old", "--timeout=50s")
    address = cluster.json("get", "service", "old")["spec"]["clusterIP"]
    assert address.startswith("10.63.")
    eventually(lambda: cluster.kubectl("get", "endpoints", "old").count(":80") == 2)
    assert cluster.kubectl("get", "node", "n1", "--no-headers").split()[1] == "Ready"
    cluster.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "rc/older", "--timeout=50s")
    lost = cluster.kubectl("describe", "rs", "lost")  # it would not know its pods again
    assert "0 current / 2 desired" in lost
    assert "spec.selector: does not select the pods of spec.template" in lost
    cluster.kubectl("delete", "hpa/old", "rc/older", "rs/lost")
    assert json.loads((cluster.data / "format.json").read_text())["format"] == 2
    assert "runs at https://" in (cluster.data / "stromboli.log").read_text()


def test_a_deployment_is_created_exposed_scaled_rolled_out_and_taken_back(cluster: ServiceUp) -> None:
    created = cluster.kubectl("create", "deployment", "web", "--image=a", "--replicas=2", "--port=80")
    assert created == "deployment.apps/web created\n"
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=50s")
    cluster.kubectl("expose", "deployment", "web")
    for change in (("set", "image", "deployment/web", "a=b"), ("rollout", "restart", "deployment/web")):
        cluster.kubectl(*change)
        rolled = cluster.kubectl("rollout", "status", "deployment/web", "--timeout=50s")
        assert rolled.endswith('deployment "web" successfully rolled out\n')
    assert "2         <none>\n3" in cluster.kubectl("rollout", "history", "deployment/web")
    cluster.kubectl("rollout", "pause", "deployment/web")
    cluster.kubectl("rollout", "undo", "deployment/web", "--to-revision=1", ok=False)
    cluster.kubectl("rollout", "resume", "deployment/web")
    cluster.kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
    cluster.kubectl("scale", "deployment/web", "--replicas=3")
    cluster.kubectl("rollout", "status", "deployment/web", "--timeout=50s")
    assert cluster.kubectl("get", "deployment", "web", "-o", "wide", "--no-headers").split()[1] == "3/3"
    described = cluster.kubectl("describe", "deployment,service", "web")
    assert "3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in described
    eventually(lambda: cluster.kubectl("get", "endpoints", "web").count(":80") == 3)
    everything = cluster.kubectl("get", "all")
    for kind in (
        "pod/web-",
        "service/web ",
        "service/kubernetes ",
        "deployment.apps/web ",
        "replicaset.apps/web-",
    ):
        assert kind in everything
    refused = cluster.kubectl("create", "-f", "-", stdin=AUTOSCALER, ok=False)
    assert "set the number of pods with `kubectl scale`" in refused
    cluster.kubectl("delete", "deployment", "web", "--cascade=orphan")
    assert cluster.kubectl("get", "rs", "-l", "app=web", "-o", "name").count("replicaset") >= 2
    cluster.kubectl("delete", "rs", "-l", "app=web", "--cascade=foreground", "--timeout=50s")
    assert cluster.kubectl("get", "pods", "-l", "app=web", "-o", "name") == ""


def test_jobs_cron_jobs_and_single_pods_run_to_their_end(cluster: ServiceUp) -> None:
    cluster.kubectl("create", "job", "once", "--image=a", "--", "echo", "hello")
    cluster.kubectl("create", "cronjob", "tick", "--image=a", "--schedule=0 0 1 1 *", "--", "echo", "tock")
    cluster.kubectl("create", "job", "now", "--from=cronjob/tick")
    cluster.kubectl("wait", "--for=condition=complete", "--timeout=50s", "job/once", "job/now")
    assert cluster.kubectl("logs", "job/now") == "tock\n"
    described = cluster.kubectl("describe", "job,cronjob")
    assert "1 Succeeded / 0 Failed" in described
    assert "0 0 1 1 *" in described
    run = ("run", "one", "--rm", "-i", "--image=a", "--restart=Never", "--", "sh", "-c", "echo said; exit 3")
    said = cluster.kubectl(*run, ok=False)
    assert "said\n" in said
    assert 'pod "one" deleted' in said
    exposed = cluster.kubectl("run", "two", "--image=a", "--expose", "--port=80")
    assert exposed == "service/two created\npod/two created\n"
    cluster.kubectl("delete", "job,cronjob", "--all")


def test_workloads_of_kubernetes_go_by_queues_and_jobs_end_with_a_task(cluster: ServiceUp) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=QUEUED)
    cluster.kubectl("rollout", "status", "deployment/queued", "--timeout=50s")
    groups = cluster.json("get", "podgroups.scheduling.volcano.sh")["items"]
    assert "serving" in [group["spec"]["queue"] for group in groups]
    ready = "--for=jsonpath={.status.readyReplicas}=2"
    cluster.kubectl("wait", ready, "rs/chosen", "--timeout=50s")
    done = "--for=jsonpath={.status.state.phase}=Completed"
    cluster.kubectl("wait", done, "jobs.batch.volcano.sh/fluid", "--timeout=50s")


def test_down_says_that_systemd_starts_it_again(cluster: ServiceUp) -> None:
    stopped = cluster.stromboli("down", "--data", str(cluster.data))
    assert f"{UNIT} starts it again when you log in" in stopped
    assert cluster.process is not None
    assert cluster.process.wait(30) == 0  # so that it is not restarted
