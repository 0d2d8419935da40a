"""Manifests that are applied again, in every way: what admission filled in and they do not name is no change."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.manifests.yaml_reader import documents
from tests.kubernetes.controlplane import ControlPlane

Json = Any
Way = Callable[["Manifests", list[Json]], str]
EXAMPLES = Path("examples/jobs")
POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
HOST = {"spec": {**POD["spec"], "hostNetwork": True}}
PARTITIONS = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
HIERARCHY = {"volcano.sh/hierarchy": "eng/dev", "volcano.sh/hierarchy-weights": "2/3"}


def task(replicas: int = 3, **more: Json) -> Json:
    return {"replicas": replicas, "template": POD, **more}


def volcano(kind: str, name: str, spec: Json, **metadata: Json) -> Json:
    groups = {
        "Queue": "scheduling.volcano.sh/v1beta1",
        "PodGroup": "scheduling.volcano.sh/v1beta1",
        "JobFlow": "flow.volcano.sh/v1alpha1",
        "JobTemplate": "flow.volcano.sh/v1alpha1",
        "HyperNode": "topology.volcano.sh/v1alpha1",
    }
    return {
        "apiVersion": groups.get(kind, "batch.volcano.sh/v1alpha1"),
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def job(name: str = "train", *tasks: Json, **spec: Json) -> Json:
    return volcano("Job", name, {"tasks": list(tasks) or [task()], **spec})


class Manifests:
    """kubectl with manifests of a namespace whose pod groups belong to a queue of its own."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def run(self, command: str, manifests: list[Json], *flags: str) -> str:
        listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
        words = (*command.split(), "-n", self.namespace, "-f", "-", *flags)
        return self.plane.kubectl(*words, stdin=json.dumps(listed))

    def stored(self, manifests: list[Json]) -> list[Json]:
        found: list[Json] = json.loads(self.run("get -o json", manifests))["items"]
        return found

    def spec(self, manifest: Json) -> Json:
        return json.loads(self.run("get -o json", [manifest]))["items"][0]["spec"]


@pytest.fixture
def manifests(admitting_plane: ControlPlane, request: pytest.FixtureRequest) -> Manifests:
    name = f"twice-{abs(hash(request.node.nodeid)) % 10**8}"
    annotations = {"scheduling.volcano.sh/queue-name": f"{name}-queue"}
    namespace = {"metadata": {"name": name, "annotations": annotations}}
    admitting_plane.request("POST", "/api/v1/namespaces", namespace)
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    admitting_plane.request("POST", queues, volcano("Queue", f"{name}-queue", {}))
    return Manifests(admitting_plane, name)


def every_kind(name: str) -> list[Json]:
    """What admission, schemas and servers fill in, of every kind that users write."""
    return [
        job("plain"),
        job("named", task(2, name="a", minAvailable=1), task(1, name="b"), minAvailable=2),
        job("master", task(1, name="master"), task(2), plugins={"mpi": [], "env": []}, maxRetry=5),
        job("data", volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}], ttlSecondsAfterFinished=0),
        job("host", {"replicas": 1, "template": HOST}, queue="default"),
        job("parts", task(4, partitionPolicy=PARTITIONS)),
        volcano("CronJob", "nightly", {"schedule": "0 2 * * *", "jobTemplate": {"spec": job()["spec"]}}),
        volcano(
            "JobFlow", "flow", {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]}
        ),
        volcano("JobTemplate", "a", job()["spec"]),
        volcano("PodGroup", "implicit", {"minMember": 1}),
        volcano("PodGroup", "explicit", {"minMember": 1, "queue": "default"}),
        volcano("Queue", f"{name}-light", {}),
        volcano("Queue", f"{name}-tree", {"weight": 2}, annotations=HIERARCHY),
        volcano(
            "HyperNode",
            f"{name}-rack",
            {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}]},
        ),
    ]


def client_side(manifests: Manifests, items: list[Json]) -> str:
    return manifests.run("apply", items)


def server_side(manifests: Manifests, items: list[Json]) -> str:
    return manifests.run("apply --server-side", items)


def replace(manifests: Manifests, items: list[Json]) -> str:
    return manifests.run("replace", items)


WAYS = pytest.mark.parametrize("way", [client_side, server_side, replace])


@pytest.mark.parametrize("way", [client_side, server_side])
def test_applying_the_same_files_again_writes_nothing_and_there_is_no_difference(
    manifests: Manifests, way: Way
) -> None:
    items = every_kind(manifests.namespace)
    way(manifests, items)
    before = manifests.stored(items)
    way(manifests, items)
    assert manifests.stored(items) == before
    assert manifests.run("diff", items, *(["--server-side"] if way is server_side else [])) == ""


@pytest.mark.parametrize("way", [client_side, server_side])
def test_the_examples_can_be_applied_again(manifests: Manifests, way: Way) -> None:
    listed = (item for file in sorted(EXAMPLES.glob("*.yaml")) for item in documents(file.read_text()))
    items = [item for item in listed if "name" in item["metadata"]]  # kubectl applies no generated names
    way(manifests, items)
    before = manifests.stored(items)
    way(manifests, items)
    assert manifests.stored(items) == before
    assert manifests.run("diff", items, *(["--server-side"] if way is server_side else [])) == ""
    replace(manifests, items)
    assert [item["spec"] for item in manifests.stored(items) if "spec" in item] == [
        item["spec"] for item in before if "spec" in item
    ]


def test_replacing_by_the_same_files_changes_no_spec(manifests: Manifests) -> None:
    items = every_kind(manifests.namespace)
    manifests.run("create", items)
    before = manifests.stored(items)
    replace(manifests, items)
    after = manifests.stored(items)
    assert [item["spec"] for item in after] == [item["spec"] for item in before]
    assert [item["metadata"]["generation"] for item in after] == [
        item["metadata"]["generation"] for item in before
    ]


@WAYS
@pytest.mark.parametrize(("replicas", "minimum"), [(5, 3), (2, 2)])
def test_a_job_is_rescaled_by_its_file(manifests: Manifests, way: Way, replicas: int, minimum: int) -> None:
    (client_side if way is replace else way)(manifests, [job()])
    way(manifests, [job("train", task(replicas))])
    spec = manifests.spec(job())
    assert (spec["tasks"][0]["replicas"], spec["tasks"][0]["minAvailable"]) == (replicas, minimum)
    assert (spec["minAvailable"], spec["tasks"][0]["name"]) == (minimum, "default0")


@WAYS
def test_what_a_file_names_is_stored_and_what_may_not_change_is_refused(
    manifests: Manifests, way: Way
) -> None:
    (client_side if way is replace else way)(manifests, [job(minAvailable=2)])
    way(manifests, [job("train", task(4, minAvailable=3), minAvailable=4, priorityClassName="high")])
    spec = manifests.spec(job())
    assert (spec["minAvailable"], spec["tasks"][0]["minAvailable"]) == (4, 3)
    with pytest.raises(RuntimeError, match=r"job updates may not change fields .*\(spec.queue; take"):
        way(manifests, [job(queue="other")])
    with pytest.raises(RuntimeError, match="job 'minAvailable' must not be greater than total replicas"):
        way(manifests, [job("train", task(1), minAvailable=2)])


def test_managers_of_server_side_apply_share_a_job(manifests: Manifests) -> None:
    """One has the tasks, another the minimum; whoever wants what the other has must force it."""
    sized = copy.deepcopy(job(minAvailable=2))
    del sized["spec"]["tasks"]
    manifests.run("apply --server-side --field-manager=owner", [job()])
    manifests.run("apply --server-side --field-manager=sizer", [sized])
    manifests.run("apply --server-side --field-manager=owner", [job("train", task(4))])
    spec = manifests.spec(job())
    assert (spec["tasks"][0]["replicas"], spec["minAvailable"]) == (4, 2)
    with pytest.raises(RuntimeError, match=r'conflict with "sizer": \.spec\.minAvailable'):
        manifests.run("apply --server-side --field-manager=owner", [job(minAvailable=1)])
    manifests.run("apply --server-side --force-conflicts --field-manager=owner", [job(minAvailable=1)])
    assert manifests.spec(job())["minAvailable"] == 1


def test_from_client_side_to_server_side_apply_and_back(manifests: Manifests) -> None:
    client_side(manifests, [job()])
    manifests.run("apply --server-side --force-conflicts", [job("train", task(4))])
    client_side(manifests, [job("train", task(2))])
    assert manifests.spec(job())["minAvailable"] == 2


def test_helm_upgrades_a_job_that_it_installed(manifests: Manifests, helm: Path, tmp_path: Path) -> None:
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: chart\nversion: 1.0.0\n")

    def run(*command: str) -> None:
        flags = ("--kubeconfig", str(manifests.plane.kubeconfig), "-n", manifests.namespace)
        environment = {**os.environ, "HOME": str(tmp_path), "HELM_DRIVER": "configmap"}
        done = subprocess.run(
            (str(helm), *command, *flags), capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr

    def template(*items: Json) -> None:
        (folder / "templates" / "all.json").write_text("\n---\n".join(map(json.dumps, items)))

    template(job("plain"), job("named", task(2, name="a"), minAvailable=1))
    run("install", "it", str(folder))
    run("upgrade", "it", str(folder))
    assert manifests.spec(job("plain"))["minAvailable"] == 3
    template(job("plain", task(2)), job("named", task(4, name="a"), minAvailable=1))
    run("upgrade", "it", str(folder))
    assert manifests.spec(job("plain"))["tasks"][0]["replicas"] == 2
    assert (manifests.spec(job("plain"))["minAvailable"], manifests.spec(job("named"))["minAvailable"]) == (
        2,
        1,
    )
    run("rollback", "it")
    assert manifests.spec(job("plain"))["tasks"][0]["replicas"] == 3
