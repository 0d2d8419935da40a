"""From Volcano to Stromboli and back on a real API server, by the commands of docs/install.md.

There is no kubelet: `process_kubelet.py` runs the pods of our Deployments as processes, with the arguments, volumes and
rights of the manifests, and says of all other pods that they run. Deployments are rolled out by the real
kube-controller-manager. Volcano's scheduler and controllers are pods that do nothing; its webhook server is ours with
Volcano's flags and certificate.
"""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stromboli import __version__
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.documented_steps import PAGE, DocumentedSteps, lines_of
from tests.kubernetes.object_census import Key, census, steady
from tests.kubernetes.process_kubelet import ProcessKubelet
from tests.kubernetes.volcano_installation import (
    BATCH,
    REPLICAS,
    SYSTEM,
    TEAM,
    add_infrastructure_node,
    command_abort,
    install_components,
    install_webhooks,
    start_work,
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.real_only]
Json = Any
CONTROLLERS = (
    "deployment-controller,replicaset-controller,garbage-collector-controller,serviceaccount-controller"
)
PODS = f"/api/v1/namespaces/{TEAM}/pods"
JOBS = f"{BATCH}/namespaces/{TEAM}/jobs"


def own_address() -> str:
    """An address of this machine that is not a loopback one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback, and EndpointSlices take no such one")
        address: str = probe.getsockname()[0]
        return address


class TakenOver:
    """A cluster with Volcano, and what is asked of it."""

    def __init__(self, plane: ControlPlane, kubelet: ProcessKubelet, steps: DocumentedSteps) -> None:
        self.plane = plane
        self.kubelet = kubelet
        self.steps = steps

    def read(self, path: str) -> Json:
        return json.loads(self.plane.request("GET", path))

    def pods(self, job: str) -> list[Json]:
        return list(self.read(f"{PODS}?labelSelector=volcano.sh%2Fjob-name%3D{job}")["items"])

    def running(self, job: str) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods(job))

    def phase(self, job: str) -> str:
        return str(self.read(f"{JOBS}/{job}").get("status", {}).get("state", {}).get("phase", ""))

    def images(self, component: str) -> set[str]:
        """What the pods of a component of ours run."""
        path = f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3D{component}"
        return {pod["spec"]["containers"][0]["image"] for pod in self.read(path)["items"]}

    def ready(self, deployment: str) -> int:
        path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{deployment}"
        return int(self.read(path)["status"].get("readyReplicas", 0))

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        try:
            self.plane.wait(condition, what, seconds)
        except (TimeoutError, RuntimeError) as error:
            raise AssertionError(f"{error}\n{self.kubelet.failures}\n{self.kubelet.logs()}") from None

    def refuses_misspelt_fields(self) -> bool:
        """Whether pod templates of jobs are checked to the last field."""
        misspelt = job("misspelt")
        misspelt["spec"]["tasks"][0]["template"]["spec"]["nodeSelecter"] = {}
        return 'unknown field "spec.tasks[0].template.spec.nodeSelecter"' in self.answer_to(misspelt)

    def answer_to(self, job: Json) -> str:
        """What the API server says to a new job, which is not stored."""
        try:
            return self.plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job))
        except RuntimeError as error:
            return str(error)


@pytest.fixture
def volcano(built: None, tmp_path: Path) -> Iterator[TakenOver]:
    """A cluster with Volcano at work."""
    address = own_address()
    flags = {
        "api_server_flags": ("--enable-aggregator-routing=true",),
        "controller_flags": (f"--controllers={CONTROLLERS}",),
    }
    logs = tmp_path / "pods"
    logs.mkdir()
    with ControlPlane(tmp_path, **flags) as plane, ProcessKubelet(plane, logs, address) as kubelet:
        plane.start("kube-controller-manager")
        cluster = TakenOver(plane, kubelet, DocumentedSteps(tmp_path, plane))
        add_infrastructure_node(plane)
        install_components(plane)
        cluster.wait(lambda: cluster.ready("volcano-admission") == 1, "Volcano's webhook server to be ready")
        install_webhooks(plane)
        start_work(plane)
        yield cluster


def job(name: str, **spec: Json) -> Json:
    template = {
        "spec": {"containers": [{"name": "main", "image": "a:1"}], "terminationGracePeriodSeconds": 0}
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"tasks": [{"name": "worker", "replicas": 1, "template": template}], **spec},
    }


GOOD, BAD = job("good"), job("bad", minAvailable=9)


def test_the_way_there_and_back(volcano: TakenOver) -> None:
    """Everything that docs/install.md says, in its order."""
    volcano.wait(lambda: volcano.running("running") == 2, "what runs to run")
    before = census(volcano.plane)
    plan = volcano.steps.follow("Look first")
    assert all(f"{name}-worker-1" in plan for name in ("waiting", "half"))

    _take_the_scheduler(volcano)
    _take_the_controllers(volcano)
    _take_admission(volcano)
    _take_the_crds(volcano)
    volcano.steps.follow("Go back", lambda line: _somebody_checks(volcano, line))

    after = census(volcano.plane)
    assert [key for key, item in after.items() if "stromboli" in key[3] or _is_ours(item)] == []
    _compare_installations(before, after)
    _compare_work(before, after)
    assert volcano.kubelet.failures == []


def _take_the_scheduler(volcano: TakenOver) -> None:
    volcano.steps.follow("The scheduler")
    for name in ("waiting", "half"):
        volcano.wait(lambda: volcano.running(name) == 3, f"the gang {name} to start")  # noqa: B023
    assert len(volcano.kubelet.leaders("stromboli-scheduler")) == 1
    assert volcano.phase("waiting") == "Pending", "its controllers are still Volcano's, and say nothing"


def _take_the_controllers(volcano: TakenOver) -> None:
    command_abort(volcano.plane, "unwanted")
    volcano.steps.follow("The controllers")
    volcano.wait(lambda: volcano.phase("waiting") == "Running", "a job of Volcano's to be looked after")
    volcano.wait(lambda: volcano.phase("unwanted") == "Aborted", "a command to be carried out")
    volcano.wait(lambda: volcano.running("study-train") == 1, "the second step of a flow")
    assert volcano.phase("suspended") == "Aborted"
    assert volcano.pods("suspended") == []
    assert volcano.phase("done") == "Completed"


def _take_admission(volcano: TakenOver) -> None:
    volcano.steps.follow("Admission", lambda line: _somebody_checks(volcano, line))
    volcano.plane.apply(job("fresh"))
    volcano.wait(lambda: volcano.phase("fresh") == "Running", "a new job")


def _somebody_checks(volcano: TakenOver, line: str) -> None:
    """After each step but the one that brings servers which are not ready yet."""
    if line.startswith("kubectl apply -k deploy/admission"):
        return
    assert "created (server dry run)" in volcano.answer_to(GOOD), line
    assert '"validatejob.volcano.sh" denied the request' in volcano.answer_to(BAD), line


def _take_the_crds(volcano: TakenOver) -> None:
    """What is stored stays as it is, but for a field that our CRDs do not know; with Volcano's it is there again."""
    before = _of_volcanos_kinds(volcano)
    volcano.steps.follow("The CRDs")
    volcano.wait(volcano.refuses_misspelt_fields, "our CRDs to be in force")
    after = _of_volcanos_kinds(volcano)
    assert before.keys() == after.keys()
    racks = {("topology.volcano.sh", "HyperNode", "", name) for name in ("rack-0", "rack-1")}
    assert {key for key in before if _lost(before[key], after[key])} == racks
    assert {field for key in racks for field in _lost(before[key], after[key])} == {"building"}


def _lost(before: Json, after: Json) -> set[str]:
    """What the spec of an object had and has no longer."""
    return {field for field, value in before["spec"].items() if after["spec"].get(field) != value}


def _of_volcanos_kinds(volcano: TakenOver) -> dict[Key, Json]:
    groups = ("batch.", "flow.", "scheduling.", "topology.")
    kept = {"Job", "CronJob", "JobFlow", "JobTemplate", "Queue", "HyperNode"}
    return {
        key: item
        for key, item in census(volcano.plane).items()
        if key[0].startswith(groups) and key[0].endswith("volcano.sh") and key[1] in kept
    }


def _compare_work(before: dict[Key, Json], after: dict[Key, Json]) -> None:
    """Pods that ran or were done are the same ones; all objects of users are there, and ask for the same."""
    for name in ("running-worker-0", "running-worker-1", "half-worker-0", "done-worker-0", "notebook"):
        old, new = before["", "Pod", TEAM, name], after["", "Pod", TEAM, name]
        assert new["metadata"]["uid"] == old["metadata"]["uid"]
        assert new["spec"] == old["spec"]
        assert new["status"]["phase"] == old["status"]["phase"]
    for key, item in before.items():
        if key[2] == TEAM and key[1] in ("Job", "CronJob", "JobFlow", "JobTemplate"):
            assert steady(after[key])["metadata"] == steady(item)["metadata"], key
            assert after[key]["spec"] == item["spec"], key
    assert (
        after["batch.volcano.sh", "CronJob", TEAM, "yearly"]["status"]
        == before["batch.volcano.sh", "CronJob", TEAM, "yearly"]["status"]
    )
    states = {key[3]: item["status"]["state"] for key, item in after.items() if key[1] == "Queue"}
    assert states == {"root": "Open", "default": "Open", "science": "Open", "closed": "Closed"}


def _is_ours(item: Json) -> bool:
    return item["metadata"].get("labels", {}).get("app.kubernetes.io/name") == "stromboli"


def _compare_installations(before: dict[Key, Json], after: dict[Key, Json]) -> None:
    """Nothing of what Volcano installed differs, or is missing."""
    for key, item in before.items():
        group, kind, space, name = key
        if kind in ("Pod", "Node", "PodGroup", "Job") or (group.endswith("volcano.sh") and space):
            continue
        assert _installed(after[key]) == _installed(item), key
    for name, replicas in REPLICAS.items():
        assert after["apps", "Deployment", SYSTEM, name]["spec"]["replicas"] == replicas


def _installed(item: Json) -> Json:
    """Without its status, which goes with its pods, and for what kubectl notes of the last `apply`."""
    shown = {key: part for key, part in steady(item).items() if key != "status"}
    notes = shown["metadata"].get("annotations", {})
    shown["metadata"]["annotations"] = {key: note for key, note in notes.items() if "kubectl" not in key}
    return shown


class Submissions:
    """Jobs that are submitted, without being stored, again and again as long as something lasts."""

    def __init__(self, volcano: TakenOver) -> None:
        self.answers: list[str] = []
        self._volcano = volcano
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Submissions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stopping.wait(0.2):
            try:
                self._volcano.plane.request("POST", f"{JOBS}?dryRun=All", GOOD)
                self.answers.append("created")
            except urllib.error.HTTPError as error:
                with error:
                    self.answers.append(error.read().decode())


def test_an_upgrade_from_one_release_to_the_next_is_rolled_out_without_a_pause(volcano: TakenOver) -> None:
    for heading in ("The scheduler", "The controllers", "Admission"):
        volcano.steps.follow(heading)
    volcano.wait(lambda: volcano.phase("waiting") == "Running", "the gang to start")
    old = {container.pod for container in volcano.kubelet.containers.values()}
    volcano.steps.edit_manifests(f"newTag: {__version__}", "newTag: 9.9.9")

    with Submissions(volcano) as submissions:
        for line in lines_of("Upgrades"):
            if "rollout undo" in line:
                _is_new(volcano, old)
                volcano.plane.apply(job("after-upgrade"))
                volcano.wait(lambda: volcano.phase("after-upgrade") == "Running", "a new job to start")
            volcano.steps.type(line)
    assert set(submissions.answers) == {"created"}
    volcano.wait(lambda: volcano.images("scheduler") == {f"stromboli:{__version__}"}, "new pods to go again")
    volcano.wait(lambda: len(volcano.kubelet.leaders("stromboli-scheduler")) == 1, "a leader")
    volcano.plane.apply(job("after-undo"))
    volcano.wait(lambda: volcano.phase("after-undo") == "Running", "a new job to start")
    assert volcano.running("running") == 2
    assert volcano.kubelet.failures == []


def _is_new(volcano: TakenOver, old: set[str]) -> None:
    for component in ("scheduler", "controllers", "admission"):
        volcano.wait(lambda: volcano.images(component) == {"stromboli:9.9.9"}, "old pods to go")  # noqa: B023
    assert old.isdisjoint(container.pod for container in volcano.kubelet.containers.values())
    for component in ("scheduler", "controllers"):
        volcano.wait(lambda: len(volcano.kubelet.leaders(f"stromboli-{component}")) == 1, "a leader")  # noqa: B023


def test_a_takeover_that_is_broken_off_lets_jobs_in_again(volcano: TakenOver) -> None:
    """Admission that does not come up, and the way out that docs/install.md names."""
    volcano.steps.follow("Admission")
    volcano.steps.type("kubectl -n volcano-system scale deployment stromboli-admission --replicas=0")
    volcano.wait(lambda: "failed calling webhook" in volcano.answer_to(GOOD), "jobs to be refused")
    way_out = "kubectl delete -f deploy/admission/webhooks.yaml"
    assert f"`{way_out}`" in PAGE.read_text()
    volcano.steps.type(way_out)
    volcano.wait(lambda: "created" in volcano.answer_to(GOOD), "jobs to be taken")
    volcano.steps.type("kubectl apply -k deploy/admission")
    volcano.wait(lambda: "denied the request" in volcano.answer_to(BAD), "jobs to be checked again")


def test_a_crd_with_objects_in_a_version_that_ours_lacks_stays_as_it_is(volcano: TakenOver) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hypernodes.topology.volcano.sh"
    crd = volcano.read(path)
    (version,) = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**version, "name": "v1"}, {**version, "storage": False}]
    volcano.plane.request("PUT", path, crd)
    volcano.wait(lambda: "v1" in volcano.read(path)["status"]["storedVersions"], "the new version")
    with pytest.raises(
        AssertionError, match=r"status.storedVersions\[\d\]: Invalid value: \"v1\": missing from spec"
    ):
        volcano.steps.follow("The CRDs")
    assert [version["name"] for version in volcano.read(path)["spec"]["versions"]] == ["v1", "v1alpha1"]
