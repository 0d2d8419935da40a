"""kubectl, which others wrote, does with the embedded server what it does with a real one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from stromboli.embedded.nodes.pod_logs import LogQuery
from tests.embedded.background_server import background_server

pytestmark = pytest.mark.programs("kubectl")
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: x}}
spec:
  nodeName: n1
  containers: [{name: main, image: busybox, command: [sleep, "5"]}]
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 3}
"""


class FixedLogs:
    async def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncIterator[bytes]:
        yield b"hello\n"
        yield b"world\n"


class Kubectl:
    """Runs it, as somebody at a terminal would."""

    def __init__(self, folder: Path):
        self._command = ("kubectl", "--kubeconfig", str(folder / "kubeconfig"))

    def __call__(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        done = subprocess.run(
            (*self._command, *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen((*self._command, *arguments), stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("kubectl")
    with background_server(folder, crds=True, logs=FixedLogs()):
        run = Kubectl(folder)
        assert "created" in run("apply", "-f", "-", stdin=MANIFEST)
        yield run


def test_get_shows_tables_and_objects(kubectl: Kubectl) -> None:
    head, row, *_ = kubectl("get", "pods").splitlines()
    assert head.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["a", "0/1", "Pending", "0"]
    assert "n1" in kubectl("get", "pods", "-o", "wide")
    assert json.loads(kubectl("get", "pod", "a", "-o", "json"))["spec"]["nodeName"] == "n1"
    assert "nodeName: n1" in kubectl("get", "pod", "a", "-o", "yaml")
    assert kubectl("get", "po", "-l", "app in (x,y)", "-o", "name") == "pod/a\n"
    assert kubectl("get", "po", "-A", "--field-selector", "spec.nodeName=n1", "-o", "name") == "pod/a\n"
    assert kubectl("get", "pods", "-l", "app=none") == "No resources found in default namespace.\n"
    assert kubectl("get", "q", "research", "--no-headers").split()[0] == "research"
    assert 'pods "none" not found' in kubectl("get", "pod", "none", fails=True)
    assert "deployment.apps/web" in kubectl("get", "all")


def test_who_creates_what_nobody_acts_on_is_warned(kubectl: Kubectl) -> None:
    told = "Warning: no controller here makes the pods of a Job; `stromboli up` runs a cluster that does"
    create = ("create", "job", "once", "--image=busybox", "--dry-run=server")
    assert told in kubectl(*create)
    assert "Warning" not in kubectl("create", "configmap", "once", "--dry-run=server")


def test_watching_shows_what_happens(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "first", "-n", "kube-public")
    watching = kubectl.start("get", "configmaps", "-w", "--output-watch-events", "-n", "kube-public")
    assert watching.stdout is not None
    lines = [watching.stdout.readline().split()[:2] for _ in range(2)]
    kubectl("create", "configmap", "seen", "--from-literal=a=b", "-n", "kube-public")
    kubectl("delete", "configmap", "seen", "-n", "kube-public")
    lines += [watching.stdout.readline().split()[:2] for _ in range(2)]
    watching.kill()
    watching.wait()
    watching.stdout.close()
    assert lines == [["EVENT", "NAME"], ["ADDED", "first"], ["ADDED", "seen"], ["DELETED", "seen"]]


def test_objects_are_described_labelled_annotated_patched_and_scaled(kubectl: Kubectl) -> None:
    text = kubectl("describe", "pod", "a")
    assert "Node:" in text
    assert "QoS Class:" in text
    assert "labeled" in kubectl("label", "pod", "a", "tier=front")
    assert "annotated" in kubectl("annotate", "pod", "a", "note=yes")
    changed = json.loads(kubectl("get", "pod", "a", "-o", "json"))["metadata"]
    assert (changed["labels"]["tier"], changed["annotations"]["note"]) == ("front", "yes")
    kubectl("patch", "deployment", "web", "-p", '{"spec": {"minReadySeconds": 7}}')
    kubectl(
        "patch",
        "deployment",
        "web",
        "--type=json",
        "-p",
        '[{"op": "remove", "path": "/spec/minReadySeconds"}]',
    )
    kubectl("set", "image", "deployment/web", "main=nginx:2")
    assert "scaled" in kubectl("scale", "deployment", "web", "--replicas=5")
    spec = json.loads(kubectl("get", "deployment", "web", "-o", "json"))["spec"]
    assert (spec["replicas"], "minReadySeconds" in spec) == (5, False)
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert "cordoned" in kubectl("cordon", "n1")
    assert "uncordoned" in kubectl("uncordon", "n1")


def test_logs_waits_and_deletions(kubectl: Kubectl) -> None:
    assert kubectl("logs", "a") == "hello\nworld\n"
    assert kubectl("logs", "-f", "a") == "hello\nworld\n"
    kubectl("run", "gone", "--image=busybox")
    assert "condition met" in kubectl(
        "wait", "--for=jsonpath={.status.phase}=Pending", "pod/gone", "--timeout=20s"
    )
    assert "deleted" in kubectl("delete", "pod", "gone")
    kubectl("create", "namespace", "short")
    kubectl("create", "configmap", "in-it", "-n", "short")
    assert "deleted" in kubectl("delete", "namespace", "short", "--timeout=20s")
    assert "NotFound" in kubectl("get", "namespace", "short", fails=True)


def test_rights_and_resources_are_told(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "bob")
    as_bob = ("--as", "system:serviceaccount:default:bob")
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert kubectl("auth", "can-i", "get", "pods", *as_bob, fails=True) == "no\n"
    kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:bob")
    assert kubectl("auth", "can-i", "get", "pods", *as_bob) == "yes\n"
    assert "cannot list resource" in kubectl("get", "pods", *as_bob, fails=True)
    assert kubectl("create", "token", "bob").count(".") == 2
    assert "podgroups" in kubectl("api-resources", "--api-group", "scheduling.volcano.sh")
    assert "scheduling.volcano.sh/v1beta1" in kubectl("api-versions")
    assert "weight" in kubectl("explain", "queue.spec")
    assert "Server Version" in kubectl("version")


def test_an_editor_changes_an_object(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("create", "configmap", "edited", "--from-literal=a=old")
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/old/new/")
    assert "edited" in kubectl("edit", "configmap", "edited")
    assert json.loads(kubectl("get", "configmap", "edited", "-o", "json"))["data"] == {"a": "new"}
