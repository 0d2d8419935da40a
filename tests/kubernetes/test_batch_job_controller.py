"""Jobs of `batch/v1`, by kube-controller-manager and by our controllers. The tests are the kubelet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.kubernetes.workload_cluster import WorkloadCluster, controller_name, names, template

Json = Any
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"


def create(cluster: WorkloadCluster, name: str = "it", pods: Json = None, **spec: Json) -> Json:
    body = {"template": template({}, **{"restartPolicy": "Never", **(pods or {})}), **spec}
    return cluster.create("jobs", name, body)


def indexed(cluster: WorkloadCluster, **spec: Json) -> Json:
    return create(cluster, completionMode="Indexed", **spec)


def conditions(job: Json) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition."""
    listed = job["status"].get("conditions") or ()
    return {each["type"]: (each["status"], each.get("reason", "")) for each in listed}


def has(condition: str, status: str = "True") -> Callable[[Json], bool]:
    return lambda job: conditions(job).get(condition, ("",))[0] == status


def wait_for(cluster: WorkloadCluster, condition: str, name: str = "it") -> Json:
    """The job, once it has the condition and counts all pods."""
    return cluster.wait("jobs", name, has(condition), f"the job to be {condition}")


def fail(cluster: WorkloadCluster, pod: Json, code: int = 1, ago: float = 60.0, **status: Json) -> None:
    """The pod's container ended with a code some time ago, so that nobody waits before the pod is replaced."""
    moment = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"exitCode": code, "finishedAt": moment, "startedAt": moment, "reason": "Error"}
    container = {"name": "main", "image": "busybox", "imageID": "", "ready": False, "restartCount": 0}
    statuses = [{**container, "state": {"terminated": ended}}]
    cluster.set_status(pod, phase="Failed", containerStatuses=statuses, **status)


def bind(cluster: WorkloadCluster, pod: Json) -> None:
    """The pod gets a node, which exists and does nothing."""
    node = {"metadata": {"name": f"node-of-{cluster.namespace}"}}
    cluster.plane.request("POST", "/api/v1/nodes", node)
    name = pod["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"]}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    cluster.plane.request("POST", cluster.path("pods", name, "binding"), body)


def index_of(pod: Json) -> str:
    return str(pod["metadata"]["annotations"][INDEX])


def by_index(pods: list[Json]) -> dict[str, Json]:
    return {index_of(pod): pod for pod in pods}


def wait_indexes(cluster: WorkloadCluster, *indexes: str) -> dict[str, Json]:
    """The active pods, once they have these indexes."""
    cluster.eventually(
        lambda: sorted(by_index(cluster.pods("it"))) == sorted(indexes), f"active pods of {indexes}"
    )
    return by_index(cluster.pods("it"))


def finalizers(pod: Json) -> list[str]:
    return pod["metadata"].get("finalizers") or []


# -- to completion


@pytest.mark.smoke
def test_a_job_makes_a_pod_and_is_complete_when_that_succeeds(workloads: WorkloadCluster) -> None:
    job = create(workloads)
    (pod,) = workloads.wait_pods(1, "it")
    meta = pod["metadata"]
    assert meta["generateName"] == "it-"
    assert finalizers(pod) == [TRACKING]
    assert meta["labels"] == job["spec"]["template"]["metadata"]["labels"]
    (owner,) = meta["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["controller"]) == ("batch/v1", "Job", True)
    running = workloads.wait_status("jobs", "it", active=1, ready=0, terminating=0)["status"]
    assert running["uncountedTerminatedPods"] == {}
    assert "startTime" in running
    workloads.set_ready([pod])
    workloads.wait_status("jobs", "it", active=1, ready=1)
    workloads.end(pod)
    done = wait_for(workloads, "Complete")
    assert conditions(done) == {
        "SuccessCriteriaMet": ("True", "CompletionsReached"),
        "Complete": ("True", "CompletionsReached"),
    }
    status = done["status"]
    assert (status["succeeded"], status.get("active"), status["ready"], status["terminating"]) == (
        1,
        None,
        0,
        0,
    )
    assert status["completionTime"] >= status["startTime"]
    assert status["uncountedTerminatedPods"] == {}
    assert finalizers(workloads.get("pods", meta["name"])) == []
    events = {
        ("job-controller", "SuccessfulCreate", f"Created pod: {meta['name']}"),
        ("job-controller", "Completed", "Job completed"),
    }
    workloads.eventually(lambda: workloads.event_texts("it") == events, "the events")


def test_no_more_pods_run_at_a_time_than_parallelism_and_completions_allow(
    workloads: WorkloadCluster,
) -> None:
    create(workloads, parallelism=2, completions=3)
    for pod in workloads.wait_pods(2, "it"):
        workloads.end(pod)
    workloads.wait_status("jobs", "it", succeeded=2, active=1)
    (last,) = workloads.wait_pods(1, "it")
    workloads.end(last)
    assert wait_for(workloads, "Complete")["status"]["succeeded"] == 3
    assert len(workloads.list("pods")) == 3


def test_a_work_queue_is_complete_when_a_pod_has_succeeded_and_all_have_ended(
    workloads: WorkloadCluster,
) -> None:
    create(workloads, parallelism=2)
    first, second = workloads.wait_pods(2, "it")
    workloads.end(first)
    workloads.wait_status("jobs", "it", succeeded=1, active=1)
    workloads.end(second)
    done = wait_for(workloads, "Complete")
    assert done["status"]["succeeded"] == 2
    assert len(workloads.list("pods")) == 2


def test_a_job_is_scaled_by_its_parallelism_without_counting_pods_that_go(workloads: WorkloadCluster) -> None:
    create(workloads, parallelism=3, completions=4)
    workloads.wait_pods(3, "it")
    workloads.patch("jobs", "it", {"spec": {"parallelism": 1}})
    workloads.wait_pods(1, "it")
    workloads.wait_status("jobs", "it", active=1, terminating=0, failed=None)
    workloads.patch("jobs", "it", {"spec": {"parallelism": 4}})
    workloads.wait_pods(4, "it")
    workloads.wait_status("jobs", "it", active=4, failed=None)


def test_a_job_for_which_nothing_is_to_be_done_is_complete(workloads: WorkloadCluster) -> None:
    create(workloads, completions=0)
    wait_for(workloads, "Complete")
    assert workloads.list("pods") == []


def test_ends_that_nobody_saw_are_counted_when_the_controller_is_back(workloads: WorkloadCluster) -> None:
    create(workloads, parallelism=3, completions=4)
    first, second, third = workloads.wait_pods(3, "it")
    workloads.wait_status("jobs", "it", active=3)
    workloads.plane.kill("kube-controller-manager")
    workloads.end(first)
    workloads.end(second)
    workloads.delete("pods", second["metadata"]["name"])
    fail(workloads, third)
    workloads.delete("pods", third["metadata"]["name"])
    workloads.plane.start("kube-controller-manager")
    workloads.wait_status("jobs", "it", succeeded=2, failed=1, active=2)
    workloads.eventually(lambda: len(workloads.list("pods")) == 3, "the deleted pods to go")


# -- failures


def test_a_failed_pod_is_replaced_until_the_backoff_limit_is_exceeded(workloads: WorkloadCluster) -> None:
    create(workloads, backoffLimit=1, parallelism=2, completions=2)
    first, other = workloads.wait_pods(2, "it")
    fail(workloads, first)
    workloads.wait_status("jobs", "it", failed=1, active=2)
    second = next(
        pod for pod in workloads.wait_pods(2, "it") if pod["metadata"]["name"] not in names([other])
    )
    fail(workloads, second)
    done = wait_for(workloads, "Failed")
    reason = ("True", "BackoffLimitExceeded")
    assert conditions(done) == {"FailureTarget": reason, "Failed": reason}
    status = done["status"]
    assert (status["failed"], status.get("succeeded"), status.get("active")) == (3, None, None)
    assert workloads.get("pods", other["metadata"]["name"]) is None
    failed = ("job-controller", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    workloads.eventually(lambda: failed in workloads.event_texts("it"), "the event of the failure")


def test_after_a_failure_a_job_waits_before_the_next_pod(workloads: WorkloadCluster) -> None:
    create(workloads)
    (pod,) = workloads.wait_pods(1, "it")
    begin = datetime.now(UTC)
    fail(workloads, pod, ago=6.0)
    workloads.wait_status("jobs", "it", failed=1, active=None)
    (again,) = workloads.wait_pods(1, "it")
    assert datetime.now(UTC) - begin > timedelta(seconds=2.5)
    assert again["metadata"]["name"] != pod["metadata"]["name"]


def test_restarts_of_containers_count_towards_the_backoff_limit(workloads: WorkloadCluster) -> None:
    create(workloads, pods={"restartPolicy": "OnFailure"}, backoffLimit=2)
    (pod,) = workloads.wait_pods(1, "it")
    restarted = {"name": "main", "image": "busybox", "imageID": "", "ready": False, "restartCount": 2}
    workloads.set_status(pod, phase="Running", containerStatuses=[{**restarted, "state": {"running": {}}}])
    assert conditions(wait_for(workloads, "Failed"))["Failed"] == ("True", "BackoffLimitExceeded")


def test_a_pod_that_is_deleted_has_failed(workloads: WorkloadCluster) -> None:
    create(workloads)
    (pod,) = workloads.wait_pods(1, "it")
    workloads.delete("pods", pod["metadata"]["name"])
    workloads.wait_status("jobs", "it", failed=1)
    workloads.eventually(
        lambda: workloads.get("pods", pod["metadata"]["name"]) is None, "the counted pod to go"
    )


def test_an_ended_pod_that_is_deleted_before_it_is_counted_counts(workloads: WorkloadCluster) -> None:
    create(workloads, completions=2)
    (pod,) = workloads.wait_pods(1, "it")
    workloads.end(pod)
    workloads.delete("pods", pod["metadata"]["name"])
    workloads.wait_status("jobs", "it", succeeded=1, failed=None)


def test_a_job_that_runs_for_too_long_fails(workloads: WorkloadCluster) -> None:
    create(workloads, activeDeadlineSeconds=1)
    done = wait_for(workloads, "Failed")
    assert conditions(done)["FailureTarget"] == ("True", "DeadlineExceeded")
    assert done["status"]["failed"] == 1
    told = ("job-controller", "DeadlineExceeded", "Job was active longer than specified deadline")
    workloads.eventually(lambda: told in workloads.event_texts("it"), "the event of the failure")


def rules(*entries: Json) -> Json:
    return {"rules": list(entries)}


def on_codes(action: str, *codes: int, operator: str = "In", **more: Json) -> Json:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes), **more}}


def test_the_first_rule_that_a_failed_pod_matches_decides(workloads: WorkloadCluster) -> None:
    disruption = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    policy = rules(disruption, on_codes("Count", 3), on_codes("FailJob", 42, containerName="main"))
    create(workloads, backoffLimit=6, podFailurePolicy=policy)
    (first,) = workloads.wait_pods(1, "it")
    fail(workloads, first, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    workloads.eventually(
        lambda: names(workloads.pods("it")) not in ([], names([first])), "a pod in the place of the evicted"
    )
    (second,) = workloads.wait_pods(1, "it")
    fail(workloads, second, 3)
    workloads.wait_status("jobs", "it", failed=1, active=1)
    (third,) = workloads.wait_pods(1, "it")
    fail(workloads, third, 42)
    done = wait_for(workloads, "Failed")
    assert conditions(done)["Failed"] == ("True", "PodFailurePolicy")
    name = f"{workloads.namespace}/{third['metadata']['name']}"
    message = f"Container main for pod {name} failed with exit code 42 matching FailJob rule at index 2"
    assert {each.get("message") for each in done["status"]["conditions"]} == {message}
    assert done["status"]["failed"] == 2


# -- indexed jobs


def test_an_indexed_job_has_a_pod_for_each_index(workloads: WorkloadCluster) -> None:
    indexed(workloads, completions=4, parallelism=4)
    pods = wait_indexes(workloads, "0", "1", "2", "3")
    pod = pods["2"]
    assert pod["metadata"]["generateName"] == "it-2-"
    assert pod["metadata"]["labels"][INDEX] == "2"
    assert pod["spec"]["hostname"] == "it-2"
    (variable,) = pod["spec"]["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    for index in ("0", "2", "3"):
        workloads.end(pods[index])
    workloads.wait_status("jobs", "it", completedIndexes="0,2,3", succeeded=3, active=1)
    workloads.end(pods["1"])
    assert wait_for(workloads, "Complete")["status"]["completedIndexes"] == "0-3"


def test_an_index_that_fails_is_tried_again_and_two_pods_never_share_it(workloads: WorkloadCluster) -> None:
    indexed(workloads, completions=2, parallelism=2)
    pods = wait_indexes(workloads, "0", "1")
    fail(workloads, pods["1"])
    workloads.wait_status("jobs", "it", failed=1, active=2)
    again = wait_indexes(workloads, "0", "1")
    assert again["0"]["metadata"]["uid"] == pods["0"]["metadata"]["uid"]
    assert again["1"]["metadata"]["uid"] != pods["1"]["metadata"]["uid"]


def test_each_index_has_its_own_backoff_limit(workloads: WorkloadCluster) -> None:
    indexed(workloads, completions=2, parallelism=2, backoffLimitPerIndex=1)
    pods = wait_indexes(workloads, "0", "1")
    assert pods["0"]["metadata"]["annotations"][INDEX_FAILURES] == "0"
    fail(workloads, pods["0"])
    workloads.wait_status("jobs", "it", failed=1, active=2, failedIndexes="")
    again = wait_indexes(workloads, "0", "1")["0"]
    assert again["metadata"]["annotations"][INDEX_FAILURES] == "1"
    fail(workloads, again)
    workloads.wait_status("jobs", "it", failed=2, active=1, failedIndexes="0")
    workloads.end(pods["1"])
    done = wait_for(workloads, "Failed")
    assert conditions(done)["Failed"] == ("True", "FailedIndexes")
    status = done["status"]
    assert (status["succeeded"], status["failed"], status["completedIndexes"]) == (1, 2, "1")


def test_too_many_failed_indexes_fail_the_job(workloads: WorkloadCluster) -> None:
    policy = rules(on_codes("FailIndex", 42))
    indexed(
        workloads,
        completions=3,
        parallelism=3,
        backoffLimitPerIndex=3,
        maxFailedIndexes=0,
        podFailurePolicy=policy,
    )
    pods = wait_indexes(workloads, "0", "1", "2")
    fail(workloads, pods["1"], 42)
    done = wait_for(workloads, "Failed")
    assert conditions(done)["Failed"] == ("True", "MaxFailedIndexesExceeded")
    assert (done["status"]["failedIndexes"], done["status"]["failed"]) == ("1", 3)


def test_a_success_policy_ends_a_job_early(workloads: WorkloadCluster) -> None:
    policy = rules({"succeededIndexes": "0,2", "succeededCount": 2}, {"succeededCount": 3})
    indexed(workloads, completions=4, parallelism=4, successPolicy=policy)
    pods = wait_indexes(workloads, "0", "1", "2", "3")
    workloads.end(pods["0"])
    workloads.wait_status("jobs", "it", completedIndexes="0", active=3)
    workloads.end(pods["2"])
    done = wait_for(workloads, "Complete")
    assert conditions(done) == {
        "SuccessCriteriaMet": ("True", "SuccessPolicy"),
        "Complete": ("True", "SuccessPolicy"),
    }
    status = done["status"]
    assert {each["message"] for each in status["conditions"]} == {"Matched rules at index 0"}
    assert (status["succeeded"], status.get("failed"), status.get("active")) == (2, None, None)


def test_an_indexed_job_is_scaled_by_completions_and_parallelism_together(workloads: WorkloadCluster) -> None:
    indexed(workloads, completions=2, parallelism=2)
    pods = wait_indexes(workloads, "0", "1")
    workloads.patch("jobs", "it", {"spec": {"completions": 3, "parallelism": 3}})
    pods = wait_indexes(workloads, "0", "1", "2")
    workloads.end(pods["2"])
    workloads.wait_status("jobs", "it", completedIndexes="2", active=2)
    workloads.patch("jobs", "it", {"spec": {"completions": 1, "parallelism": 1}})
    wait_indexes(workloads, "0")
    workloads.wait_status("jobs", "it", completedIndexes=None, succeeded=None, active=1)
    workloads.end(pods["0"])
    assert wait_for(workloads, "Complete")["status"]["completedIndexes"] == "0"


# -- suspension


def test_a_suspended_job_has_no_pods_and_starts_anew_when_it_is_resumed(workloads: WorkloadCluster) -> None:
    create(workloads, parallelism=2, completions=2, suspend=True)
    waiting = wait_for(workloads, "Suspended")
    assert "startTime" not in waiting["status"]
    assert workloads.list("pods") == []
    workloads.patch("jobs", "it", {"spec": {"suspend": False}})
    workloads.wait_pods(2, "it")
    running = workloads.wait("jobs", "it", has("Suspended", "False"), "the job to be resumed")
    assert conditions(running)["Suspended"] == ("False", "JobResumed")
    assert "startTime" in running["status"]
    workloads.patch("jobs", "it", {"spec": {"suspend": True}})
    workloads.wait_pods(0, "it")
    stopped = workloads.wait(
        "jobs", "it", lambda job: has("Suspended")(job) and not job["status"].get("active"), "a suspended job"
    )
    assert "startTime" not in stopped["status"]
    assert stopped["status"].get("failed") is None
    texts = {(reason, text) for _, reason, text in workloads.event_texts("it")}
    assert {("Suspended", "Job suspended"), ("Resumed", "Job resumed")} <= texts


# -- policies and owners


def test_a_pod_is_replaced_only_once_it_has_ended_if_the_job_says_so(workloads: WorkloadCluster) -> None:
    create(workloads, podReplacementPolicy="Failed")
    (pod,) = workloads.wait_pods(1, "it")
    name = pod["metadata"]["name"]
    bind(workloads, pod)  # else nobody would wait for its end
    workloads.patch("pods", name, {"metadata": {"finalizers": [TRACKING, "example.com/hold"]}})
    workloads.delete("pods", name)
    workloads.wait_status("jobs", "it", active=None, terminating=1, failed=None)
    assert workloads.pods("it") == []
    fail(workloads, pod)
    workloads.wait_status("jobs", "it", active=1, terminating=0, failed=1)
    workloads.patch("pods", name, {"metadata": {"finalizers": None}})


def test_a_job_of_another_controller_is_left_alone(workloads: WorkloadCluster) -> None:
    create(workloads, "foreign", managedBy="example.com/theirs")
    create(workloads)
    workloads.wait_pods(1, "it")
    assert workloads.pods("foreign") == []
    assert workloads.get("jobs", "foreign")["status"] == {}


def test_a_job_adopts_pods_by_its_own_selector_and_releases_them(workloads: WorkloadCluster) -> None:
    labels = {"app": "mine"}
    orphan = {**template(labels, restartPolicy="Never"), "metadata": {"name": "orphan", "labels": labels}}
    workloads.plane.request("POST", workloads.path("pods"), orphan)
    body = {
        "manualSelector": True,
        "selector": {"matchLabels": labels},
        "template": template(labels, restartPolicy="Never"),
        "parallelism": 2,
        "completions": 2,
    }
    workloads.create("jobs", "it", body)
    adopted = workloads.wait("pods", "orphan", lambda pod: controller_name(pod) == "it", "the orphan adopted")
    assert finalizers(adopted) == [TRACKING]
    pods = workloads.wait_pods(2, "it")
    assert all(pod["metadata"]["labels"] == labels for pod in pods)
    workloads.patch("pods", "orphan", {"metadata": {"labels": {"app": "other"}}})
    released = workloads.wait("pods", "orphan", lambda pod: not controller_name(pod), "the pod released")
    workloads.wait("pods", "orphan", lambda pod: not finalizers(pod), "the finalizer to go")
    assert released["metadata"]["uid"] == adopted["metadata"]["uid"]
    workloads.wait_pods(2, "it")


# -- deletion


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_pods_go_with_their_job_and_no_finalizer_keeps_them(
    workloads: WorkloadCluster, propagation: str
) -> None:
    create(workloads, parallelism=2, completions=3)
    first, _ = workloads.wait_pods(2, "it")
    workloads.end(first)
    workloads.wait_status("jobs", "it", succeeded=1, active=2)
    workloads.delete("jobs", "it", propagation)
    workloads.eventually(lambda: workloads.get("jobs", "it") is None, "the job to go")
    workloads.eventually(lambda: workloads.list("pods") == [], "the pods to go")


def test_pods_that_a_deleted_job_leaves_behind_lose_the_finalizer(workloads: WorkloadCluster) -> None:
    create(workloads)
    (pod,) = workloads.wait_pods(1, "it")
    workloads.delete("jobs", "it", "Orphan")
    name = pod["metadata"]["name"]
    workloads.wait(
        "pods", name, lambda pod: not finalizers(pod) and not controller_name(pod), "the pod to be free"
    )
    workloads.eventually(lambda: workloads.get("jobs", "it") is None, "the job to go")


def test_a_finished_job_is_deleted_when_its_time_is_over(workloads: WorkloadCluster) -> None:
    create(workloads, ttlSecondsAfterFinished=1)
    (pod,) = workloads.wait_pods(1, "it")
    workloads.end(pod)
    workloads.eventually(lambda: workloads.get("jobs", "it") is None, "the job to go")
    workloads.eventually(lambda: workloads.list("pods") == [], "its pod to go")


def test_a_new_job_of_the_same_name_counts_anew(workloads: WorkloadCluster) -> None:
    create(workloads)
    (pod,) = workloads.wait_pods(1, "it")
    workloads.end(pod)
    wait_for(workloads, "Complete")
    workloads.delete("jobs", "it")
    workloads.eventually(lambda: workloads.get("jobs", "it") is None, "the job to go")
    create(workloads)
    workloads.wait_status("jobs", "it", active=1, succeeded=None)


# -- users


def test_kubectl_creates_a_job_and_waits_for_it(workloads: WorkloadCluster) -> None:
    workloads.kubectl("create", "job", "hello", "--image=busybox", "--", "date")
    (pod,) = workloads.wait_pods(1, "hello")
    workloads.end(pod)
    workloads.kubectl("wait", "--for=condition=complete", "--timeout=60s", "job/hello")
    assert "Complete" in workloads.kubectl("get", "job", "hello", "--no-headers")
