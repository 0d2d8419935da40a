"""Jobs and CronJobs of `batch/v1` on the API server: the selector and labels that it generates, and what it refuses."""

from __future__ import annotations

import json
import urllib.error
from typing import Any

import pytest

from tests.kubernetes.controlplane import ControlPlane

Json = Any
UID, NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
OTHER = {"matchLabels": {"app": "x"}}
NO_MATCH = ("spec.template.metadata.labels", "`selector` does not match template `labels`")


def create(plane: ControlPlane, namespace: str, labels: Json = None, pods: Json = None, **spec: Json) -> Json:
    template = {
        "metadata": {"labels": pods or {}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    body = {"metadata": {"name": "it", "labels": labels or {}}, "spec": {"template": template, **spec}}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs?fieldManager=kubectl-create"
    return json.loads(plane.request("POST", path, body))


def generated(job: Json) -> Json:
    uid = job["metadata"]["uid"]
    return {UID: uid, NAME: "it", "controller-uid": uid, "job-name": "it"}


@pytest.mark.parametrize(
    ("labels", "pods", "own"),
    [({}, {}, {}), ({}, {"app": "x"}, {"app": "x"}), ({"team": "blue"}, {"app": "x"}, None)],
)
def test_a_job_selects_its_pods_by_its_uid(
    plane: ControlPlane, namespace: str, labels: Json, pods: Json, own: Json
) -> None:
    job = create(plane, namespace, labels, pods)
    assert job["spec"]["selector"] == {"matchLabels": {UID: job["metadata"]["uid"]}}
    assert job["spec"]["template"]["metadata"]["labels"] == {**generated(job), **pods}
    assert job["metadata"]["labels"] == (labels if own is None else {**generated(job), **own})
    (manager,) = job["metadata"]["managedFields"]
    assert "f:selector" not in manager["fieldsV1"]["f:spec"]


def test_a_manual_selector_is_left_alone(plane: ControlPlane, namespace: str) -> None:
    job = create(plane, namespace, None, {"app": "x"}, manualSelector=True, selector=OTHER)
    assert job["spec"]["selector"] == OTHER
    assert job["spec"]["template"]["metadata"]["labels"] == {"app": "x"}


@pytest.mark.parametrize(
    ("pods", "spec", "problems"),
    [
        ({"job-name": "other"}, {}, [("spec.template.metadata.labels[job-name]", "must be 'it'")]),
        ({}, {"selector": OTHER}, [("spec.selector", "`selector` not auto-generated"), NO_MATCH]),
        ({"app": "x"}, {"selector": OTHER}, [("spec.selector", "`selector` not auto-generated")]),
        ({}, {"manualSelector": True}, [("spec.selector", "Required value"), NO_MATCH]),
        ({"app": "y"}, {"manualSelector": True, "selector": OTHER}, [NO_MATCH]),
    ],
)
def test_labels_and_selectors_that_contradict_each_other_are_refused(
    plane: ControlPlane, namespace: str, pods: Json, spec: Json, problems: Json
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        create(plane, namespace, None, pods, **spec)
    status = json.loads(refused.value.read())
    causes = [(cause["field"], cause["message"].rpartition(": ")[2]) for cause in status["details"]["causes"]]
    assert (status["code"], causes) == (422, problems)


def test_the_version_is_told_with_and_without_a_slash(plane: ControlPlane) -> None:
    assert plane.request("GET", "/version/") == plane.request("GET", "/version")


# -- what is refused

INDEXED = {"completionMode": "Indexed", "completions": 2}
ALONE = "requires indexed completion mode"
IMMUTABLE = "field is immutable"
POLICY = "spec.podFailurePolicy.rules[0]"
SUCCESS = "spec.successPolicy.rules[0]"


def on_codes(action: str = "Count", **codes: Json) -> Json:
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [1], **codes}}
    return {"podFailurePolicy": {"rules": [rule]}}


def on_conditions(*conditions: Json, **more: Json) -> Json:
    return {"podFailurePolicy": {"rules": [{"action": "Count", "onPodConditions": conditions, **more}]}}


def succeeded(**rule: Json) -> Json:
    return {"successPolicy": {"rules": [rule]}}


def pods(**spec: Json) -> Json:
    return {"template": {"spec": spec}}


def refusals(plane: ControlPlane, method: str, path: str, body: Json, content: str = "json") -> Json:
    """Field and message of whatever is wrong, or nothing."""
    try:
        plane.request(method, f"{path}?dryRun=All", body, f"application/{content}")
    except urllib.error.HTTPError as refused:
        with refused:
            causes = json.loads(refused.read())["details"]["causes"]
        texts = {(cause["field"], cause["message"].partition(": ")[2]) for cause in causes}
        return {(field, text.partition(": ")[2] or text) for field, text in texts}
    return set()


def job_body(**spec: Json) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    return {"metadata": {"name": "it"}, "spec": {"template": {"spec": pod}, **spec}}


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        (
            {"completionMode": "Indexed", "parallelism": 1},
            {("spec.completions", "when completion mode is Indexed")},
        ),
        (
            {"backoffLimitPerIndex": 1, "maxFailedIndexes": 1},
            {("spec.backoffLimitPerIndex", ALONE), ("spec.maxFailedIndexes", ALONE)},
        ),
        (
            {**INDEXED, "maxFailedIndexes": 1},
            {("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")},
        ),
        (
            {**INDEXED, "backoffLimitPerIndex": 1, "maxFailedIndexes": 3},
            {("spec.maxFailedIndexes", "must be less than or equal to completions")},
        ),
        (
            {**INDEXED, "parallelism": 100001},
            {("spec.parallelism", "must be less than or equal to 100000 when completion mode is Indexed")},
        ),
        (
            {**INDEXED, "completions": 200000, "backoffLimitPerIndex": 1},
            {("spec.maxFailedIndexes", "must be specified when completions is above 100000")},
        ),
        (succeeded(succeededCount=1), {("spec.successPolicy", ALONE)}),
        (
            {**INDEXED, **succeeded()},
            {(SUCCESS, "at least one of succeededCount or succeededIndexes must be specified")},
        ),
        (
            {**INDEXED, **succeeded(succeededCount=3)},
            {
                (
                    f"{SUCCESS}.succeededCount",
                    "must be less than or equal to 2 (the number of specified completions)",
                )
            },
        ),
        (
            {**INDEXED, **succeeded(succeededIndexes="1,0")},
            {
                (
                    f"{SUCCESS}.succeededIndexes",
                    "error parsing succeededIndexes: non-increasing order, previous: 1, current: 0",
                )
            },
        ),
        (
            {**INDEXED, **succeeded(succeededIndexes="0-2")},
            {(f"{SUCCESS}.succeededIndexes", 'error parsing succeededIndexes: too large index: "2"')},
        ),
        ({**INDEXED, **succeeded(succeededIndexes="0-1", succeededCount=2)}, set()),
        (
            {"managedBy": "nodomain"},
            {("spec.managedBy", 'must be a domain-prefixed path (such as "acme.io/foo")')},
        ),
        ({"managedBy": "example.com/theirs"}, set()),
        (
            on_codes("FailIndex"),
            {(f"{POLICY}.action", "requires the backoffLimitPerIndex to be set")},
        ),
        ({**INDEXED, "backoffLimitPerIndex": 1, **on_codes("FailIndex")}, set()),
        (
            on_codes(values=[0, 2, 1, 1]),
            {
                (f"{POLICY}.onExitCodes.values", "must be ordered"),
                (f"{POLICY}.onExitCodes.values[0]", "must not be 0 for the In operator"),
                (f"{POLICY}.onExitCodes.values[3]", "1"),
            },
        ),
        (
            on_codes(containerName="who"),
            {
                (
                    f"{POLICY}.onExitCodes.containerName",
                    "must be one of the container or initContainer names in the pod template",
                )
            },
        ),
        (on_codes(containerName="main"), set()),
        (on_conditions(), {(POLICY, "specifying one of OnExitCodes and OnPodConditions is required")}),
        (
            on_conditions({"type": "X", "status": "True"}, onExitCodes={"operator": "In", "values": [1]}),
            {(POLICY, "specifying both OnExitCodes and OnPodConditions is not supported")},
        ),
        (
            on_conditions({"type": "X", "status": "Maybe"}),
            {(f"{POLICY}.onPodConditions[0].status", 'supported values: "False", "True", "Unknown"')},
        ),
        (
            {**on_codes(), "podReplacementPolicy": "TerminatingOrFailed"},
            {("spec.podReplacementPolicy", 'supported values: "Failed"')},
        ),
    ],
)
def test_a_job_whose_fields_contradict_each_other_is_refused(
    plane: ControlPlane, spec: Json, problems: Json
) -> None:
    path = "/apis/batch/v1/namespaces/default/jobs"
    assert refusals(plane, "POST", path, job_body(**spec)) == problems


@pytest.mark.parametrize(
    ("before", "change", "problems"),
    [
        ({"completions": 2}, {"completions": 3}, {("spec.completions", IMMUTABLE)}),
        (
            {**INDEXED, "parallelism": 2},
            {"completions": 3},
            {("spec.completions", "can only be modified in tandem with spec.parallelism")},
        ),
        ({**INDEXED, "parallelism": 2}, {"completions": 3, "parallelism": 3}, set()),
        ({}, {"managedBy": "example.com/theirs"}, {("spec.managedBy", IMMUTABLE)}),
        (INDEXED, succeeded(succeededCount=1), {("spec.successPolicy", IMMUTABLE)}),
        (
            {**INDEXED, "backoffLimitPerIndex": 1},
            {"backoffLimitPerIndex": 2},
            {("spec.backoffLimitPerIndex", IMMUTABLE)},
        ),
        ({}, pods(nodeSelector={"a": "b"}), {("spec.template", IMMUTABLE)}),
        ({"suspend": True}, pods(nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}]), set()),
        ({"suspend": True}, {"template": {"metadata": {"labels": {"x": "y"}}}}, set()),
        ({"suspend": True}, pods(priorityClassName="x"), {("spec.template.spec", IMMUTABLE)}),
        ({}, {"parallelism": 0, "suspend": True, "backoffLimit": 3, "ttlSecondsAfterFinished": 5}, set()),
    ],
)
def test_what_a_job_is_made_of_cannot_be_changed(
    plane: ControlPlane, namespace: str, before: Json, change: Json, problems: Json
) -> None:
    create(plane, namespace, None, None, **before)
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/it"
    assert refusals(plane, "PATCH", path, {"spec": change}, "merge-patch+json") == problems


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"schedule": "nonsense"}, "spec.schedule", ""),
        ({"schedule": "60 * * * *"}, "spec.schedule", ""),
        ({"schedule": "* * * * * *"}, "spec.schedule", ""),
        (
            {"schedule": "TZ=UTC * * * * *"},
            "spec.schedule",
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ),
        ({"timeZone": ""}, "spec.timeZone", "timeZone must be nil or non-empty string"),
        ({"timeZone": "Moon/Sea"}, "spec.timeZone", "unknown time zone Moon/Sea"),
        ({"timeZone": "../etc"}, "spec.timeZone", "unknown time zone ../etc"),
        (
            {"timeZone": "Local"},
            "spec.timeZone",
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        ),
        (
            {"jobTemplate": {"spec": {**job_body()["spec"], "selector": OTHER}}},
            "spec.jobTemplate.spec.selector",
            "`selector` will be auto-generated",
        ),
        (
            {"jobTemplate": {"spec": {**job_body()["spec"], "completionMode": "Indexed"}}},
            "spec.jobTemplate.spec.completions",
            "when completion mode is Indexed",
        ),
        ({"schedule": "@every 1h", "timeZone": "Europe/Rome"}, "", ""),
    ],
)
def test_a_cronjob_with_a_wrong_schedule_zone_or_template_is_refused(
    plane: ControlPlane, spec: Json, field: str, text: str
) -> None:
    template = {"spec": job_body()["spec"]}
    body = {"metadata": {"name": "it"}, "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec}}
    problems = refusals(plane, "POST", "/apis/batch/v1/namespaces/default/cronjobs", body)
    assert {name for name, _ in problems} == ({field} if field else set())
    assert not text or {detail for _, detail in problems} == {text}


def test_names_leave_room_for_what_is_made_of_them(plane: ControlPlane) -> None:
    cron = {"schedule": "* * * * *", "jobTemplate": {"spec": job_body()["spec"]}}
    body = {"metadata": {"name": "x" * 53}, "spec": cron}
    problems = refusals(plane, "POST", "/apis/batch/v1/namespaces/default/cronjobs", body)
    assert problems == {("metadata.name", "must be no more than 52 characters")}
    job = {**job_body(**INDEXED), "metadata": {"name": "x" * 62}}
    problems = refusals(plane, "POST", "/apis/batch/v1/namespaces/default/jobs", job)
    detail = f"will not able to create pod with invalid DNS label: {'x' * 62}-1"
    assert problems == {("metadata.name", detail)}
