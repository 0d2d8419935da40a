"""From Volcano to Stromboli and back on a real API server, by the commands of docs/install.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.object_census import Key, census, steady
from tests.kubernetes.volcano_cluster import BAD, GOOD, VolcanoCluster, job
from tests.kubernetes.volcano_installation import REPLICAS, SYSTEM, TEAM, command_abort

pytestmark = pytest.mark.real_only
Json = Any


def test_the_way_there_and_back(volcano: VolcanoCluster) -> None:
    """Everything that docs/install.md says, in its order."""
    volcano.wait(volcano.settled, "pods that Volcano has bound to run")
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


def _take_the_scheduler(volcano: VolcanoCluster) -> None:
    volcano.steps.follow("The scheduler")
    for name in ("waiting", "half"):
        volcano.wait(lambda: volcano.running(name) == 3, f"the gang {name} to start")  # noqa: B023
    assert len(volcano.kubelet.leaders("stromboli-scheduler")) == 1
    assert volcano.phase("waiting") == "Pending", "its controllers are still Volcano's, and say nothing"


def _take_the_controllers(volcano: VolcanoCluster) -> None:
    command_abort(volcano.plane, "unwanted")
    volcano.steps.follow("The controllers")
    volcano.wait(lambda: volcano.phase("waiting") == "Running", "a job of Volcano's to be looked after")
    volcano.wait(lambda: volcano.phase("unwanted") == "Aborted", "a command to be carried out")
    volcano.wait(lambda: volcano.running("study-train") == 1, "the second step of a flow")
    assert volcano.phase("suspended") == "Aborted"
    assert volcano.pods("suspended") == []
    assert volcano.phase("done") == "Completed"


def _take_admission(volcano: VolcanoCluster) -> None:
    volcano.steps.follow("Admission", lambda line: _somebody_checks(volcano, line))
    volcano.plane.apply(job("fresh"))
    volcano.wait(lambda: volcano.phase("fresh") == "Running", "a new job")
    assert "failed" not in volcano.steps.type("stromboli check")


def _somebody_checks(volcano: VolcanoCluster, line: str) -> None:
    """After each step but the one that brings servers which are not ready yet."""
    if line.startswith("kubectl apply -k deploy/admission"):
        return
    assert "created (server dry run)" in volcano.answer_to(GOOD), line
    assert '"validatejob.volcano.sh" denied the request' in volcano.answer_to(BAD), line


def _take_the_crds(volcano: VolcanoCluster) -> None:
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


def _of_volcanos_kinds(volcano: VolcanoCluster) -> dict[Key, Json]:
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


def test_a_crd_with_objects_in_a_version_that_ours_lacks_stays_as_it_is(volcano: VolcanoCluster) -> None:
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
