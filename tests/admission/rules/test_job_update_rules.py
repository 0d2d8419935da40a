"""A manifest that is applied again: what admission had filled in, and the manifest does not name, is no change."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stromboli.admission.rules.admission_table import REVIEWS, UPDATE, validate, with_defaults
from stromboli.admission.rules.rule_context import Context
from tests.admission.reviewing import cluster, job, submitted, task

Json = Any
CLAIM = {"resources": {"requests": {"storage": "1Gi"}}}


def manifest(replicas: int = 3, **spec: Json) -> Json:
    """A job that names no more than it must."""
    unnamed = task(replicas=replicas)
    del unnamed["name"]
    return {"metadata": {"name": "train"}, "spec": {"tasks": [unnamed], **spec}}


def stored(sent: Json, context: Context | None = None) -> Json:
    """The job as the API server keeps it after it was created: nobody manages what admission filled in."""
    made = copy.deepcopy(submitted("Job", sent, context).object)
    made["metadata"]["managedFields"] = [
        {"manager": "kubectl", "fieldsV1": {"f:spec": {f"f:{key}": {} for key in sent["spec"]}}}
    ]
    return made


def updated(old: Json, sent: Json, context: Context | None = None) -> tuple[Json, list[str]]:
    """The job after an update, and why it would be refused."""
    context = context or cluster()
    new = with_defaults(REVIEWS["/jobs/mutate"], sent, context, old)
    report = validate(REVIEWS["/jobs/validate"], new, old, UPDATE, context)
    return new, [str(problem) for problem in report]


def replaced(old: Json, sent: Json, context: Context | None = None) -> tuple[Json, list[str]]:
    """As `kubectl replace` does it."""
    return updated(old, {**copy.deepcopy(sent), "metadata": managed(old, sent)}, context)


def applied(old: Json, sent: Json) -> tuple[Json, list[str]]:
    """As `kubectl apply` does it: fields that neither this manifest nor the last one names stay; lists are whole."""
    last = {
        field for entry in old["metadata"].get("managedFields", ()) for field in entry["fieldsV1"]["f:spec"]
    }
    kept = {key: value for key, value in old["spec"].items() if f"f:{key}" not in last}
    return updated(old, copy.deepcopy({"metadata": managed(old, sent), "spec": {**kept, **sent["spec"]}}))


def managed(old: Json, sent: Json) -> Json:
    """The metadata after an update: who changes a field manages it, until it is gone."""
    metadata = copy.deepcopy(old["metadata"])
    for entry in metadata.get("managedFields", ()):
        fields = entry["fieldsV1"]["f:spec"]
        entry["fieldsV1"]["f:spec"] = {
            f"f:{key}": {}
            for key, value in sent["spec"].items()
            if f"f:{key}" in fields or old["spec"].get(key) != value
        }
    return metadata


def counts(changed: Json) -> tuple[int, int, int]:
    spec = changed["spec"]
    return spec["tasks"][0]["replicas"], spec["tasks"][0]["minAvailable"], spec["minAvailable"]


@pytest.mark.parametrize("how", [applied, replaced])
@pytest.mark.parametrize(
    "sent",
    [
        manifest(),
        manifest(minAvailable=2),
        manifest(plugins={"pytorch": []}),
        manifest(volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}]),
        job(task("a", 2), task("b", 1, minAvailable=0), maxRetry=7, schedulerName="mine"),
        job(task(template={"spec": {"hostNetwork": True, "containers": [{"name": "m", "image": "i"}]}})),
    ],
)
def test_the_same_manifest_once_more_is_no_change(sent: Json, how: Any) -> None:
    old = stored(sent)
    assert how(old, sent) == (old, [])


@pytest.mark.parametrize("how", [applied, replaced])
@pytest.mark.parametrize(("replicas", "wanted"), [(5, (5, 3, 3)), (2, (2, 2, 2))])
def test_a_minimum_that_nobody_named_stays_or_falls_with_the_replicas(
    replicas: int, wanted: Json, how: Any
) -> None:
    new, problems = how(stored(manifest(3)), manifest(replicas))
    assert (counts(new), problems) == (wanted, [])


@pytest.mark.parametrize("how", [applied, replaced])
def test_a_minimum_that_the_manifest_names_stays(how: Any) -> None:
    old = stored(manifest(3, minAvailable=3))
    new, problems = how(old, manifest(5, minAvailable=3))
    assert (counts(new), problems) == ((5, 3, 3), [])
    _, problems = how(old, manifest(2, minAvailable=3))
    assert problems == ["job 'minAvailable' must not be greater than total replicas"]


def test_a_minimum_of_which_nobody_knows_who_named_it_stays() -> None:
    old = stored(manifest(3))
    del old["metadata"]["managedFields"]
    _, problems = applied(old, manifest(2))
    assert problems == ["job 'minAvailable' must not be greater than total replicas"]


def test_a_minimum_that_is_not_named_any_more_is_that_of_a_new_job() -> None:
    new, problems = replaced(stored(manifest(3, minAvailable=2)), manifest(5))
    assert (counts(new), problems) == ((5, 3, 3), [])


def test_replicas_alone_are_changed_as_in_volcano() -> None:
    """A patch of one number leaves the minimum where it was."""
    old = stored(manifest(3))
    sent = copy.deepcopy(old)
    sent["spec"]["tasks"][0]["replicas"] = 5
    new, problems = updated(old, sent)
    assert (counts(new), problems) == ((5, 3, 3), [])


def test_a_job_stays_with_its_scheduler_when_the_default_is_another() -> None:
    old = stored(manifest())
    context = cluster(scheduler_names=("mine", "volcano"))
    assert replaced(old, manifest(), context) == (old, [])
    named = stored(manifest(schedulerName="volcano"))
    _, problems = replaced(named, manifest(), context)
    assert "job updates may not change fields" in problems[0]


def test_a_field_that_was_named_and_is_not_any_more_is_a_change() -> None:
    old = stored(manifest(maxRetry=7))
    _, problems = replaced(old, manifest())
    assert "job updates may not change fields" in problems[0]


def test_claims_that_were_made_for_volumes_stay_theirs() -> None:
    sent = manifest(volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}])
    old = stored(sent)
    old["spec"]["volumes"][0]["volumeClaimName"] = "train-volume-abc"
    assert replaced(old, copy.deepcopy(sent)) == (old, [])
    moved = manifest(volumes=[{"mountPath": "/other", "volumeClaim": CLAIM}])
    new, problems = replaced(old, moved)
    assert "volumeClaimName" not in new["spec"]["volumes"][0]
    assert "job updates may not change fields" in problems[0]


def test_a_job_that_was_stored_without_defaults_can_still_be_changed() -> None:
    """Made before admission was installed, or by an older Volcano."""
    old = manifest()
    sent = copy.deepcopy(old)
    sent["metadata"]["labels"] = {"team": "blue"}
    assert updated(old, sent) == (sent, [])
    sent["spec"]["tasks"][0]["replicas"] = 4
    new, problems = updated(old, sent)
    assert (new["spec"]["tasks"][0]["name"], problems) == ("default0", [])


@st.composite
def manifests(draw: st.DrawFn) -> Json:
    """A manifest with some of the fields that admission fills in; the number of tasks is fixed."""
    tasks = []
    for name in ("a", "b"):
        replicas = draw(st.integers(0, 4))
        more = draw(st.fixed_dictionaries({}, optional={"minAvailable": st.integers(0, replicas)}))
        tasks.append(task(name, replicas, **more))
    total = sum(part["replicas"] for part in tasks)
    sized = draw(st.fixed_dictionaries({}, optional={"minAvailable": st.integers(1, max(total, 1))}))
    return job(*tasks, **sized)


@given(first=manifests(), second=manifests(), how=st.sampled_from([applied, replaced]))
def test_any_manifest_can_be_applied_after_any_other_and_then_changes_nothing(
    first: Json, second: Json, how: Any
) -> None:
    """What could be created can be applied, what it names is stored, and once more is no change."""
    assume(not submitted("Job", first).report and not submitted("Job", second).report)
    new, problems = how(stored(first), second)
    assert problems == []
    wanted = second["spec"]
    assert new["spec"]["minAvailable"] == wanted.get("minAvailable", new["spec"]["minAvailable"])
    for part, named in zip(new["spec"]["tasks"], wanted["tasks"], strict=True):
        assert part == {**part, **named}
    assert how(new, second) == (new, [])
