"""CronJobs of `batch/v1`, by kube-controller-manager and by our controllers.

Nobody waits for a full minute: a CronJob that was last due long ago is due as soon as it is resumed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.kubernetes.workload_cluster import WorkloadCluster, controller_name, names, template

Json = Any
AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def job_spec(**spec: Json) -> Json:
    return {"template": template({}, restartPolicy="Never"), **spec}


def create(cluster: WorkloadCluster, schedule: str = "0 * * * *", job: Json = None, **spec: Json) -> Json:
    """A suspended CronJob."""
    labels = {"metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}}}
    body: Json = {"schedule": schedule, "timeZone": "Etc/UTC", "suspend": True}
    body["jobTemplate"] = {**labels, "spec": job or job_spec()}
    return cluster.create("cronjobs", "tick", {**body, **spec})


def resume(cluster: WorkloadCluster, last: timedelta = timedelta(hours=2), **status: Json) -> None:
    """Let it be last due some time ago, and go on."""
    moment = (datetime.now(UTC) - last).strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster.patch("cronjobs", "tick", {"status": {"lastScheduleTime": moment, **status}}, "status")
    cluster.patch("cronjobs", "tick", {"spec": {"suspend": False}})


def own_job(cluster: WorkloadCluster, cron: Json, name: str, **spec: Json) -> Json:
    """A job that the CronJob controls."""
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": cron["metadata"]["uid"]}
    return cluster.create("jobs", name, job_spec(**spec), ownerReferences=[{**owner, "controller": True}])


def reference(job: Json) -> Json:
    meta = job["metadata"]
    base = {"apiVersion": "batch/v1", "kind": "Job", "namespace": meta["namespace"]}
    return {**base, "name": meta["name"], "uid": meta["uid"]}


def wait_jobs(cluster: WorkloadCluster, count: int) -> list[Json]:
    cluster.eventually(lambda: len(cluster.list("jobs")) == count, f"{count} jobs")
    return cluster.list("jobs")


def wait_event(cluster: WorkloadCluster, reason: str, message: str = "") -> None:
    def told() -> bool:
        texts = cluster.event_texts("tick")
        return any(each[:2] == ("cronjob-controller", reason) and message in each[2] for each in texts)

    cluster.eventually(told, f"an event {reason}: {message}, not only {cluster.event_texts('tick')}")


def full_hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


@pytest.mark.smoke
def test_a_job_starts_for_the_last_time_that_was_missed(workloads: WorkloadCluster) -> None:
    cron = create(workloads)
    before = full_hour(datetime.now(UTC))
    resume(workloads)
    (job,) = wait_jobs(workloads, 1)
    due = {before, full_hour(datetime.now(UTC))}
    minutes = int(job["metadata"]["name"].removeprefix("tick-"))
    assert datetime.fromtimestamp(minutes * 60, UTC) in due
    meta = job["metadata"]
    assert meta["labels"]["l"] == "1"
    assert meta["annotations"]["a"] == "2"
    stamp = datetime.fromtimestamp(minutes * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert meta["annotations"][AT] == stamp
    (owner,) = meta["ownerReferences"]
    assert owner == {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "tick",
        "uid": cron["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    status = workloads.wait_status("cronjobs", "tick", lastScheduleTime=stamp)["status"]
    assert [(each["kind"], each["name"], each["uid"]) for each in status["active"]] == [
        ("Job", meta["name"], meta["uid"])
    ]
    wait_event(workloads, "SuccessfulCreate", f"Created job {meta['name']}")
    (pod,) = workloads.wait_pods(1, meta["name"])
    workloads.end(pod)
    ended = workloads.wait("cronjobs", "tick", lambda it: not it["status"].get("active"), "no active job")
    done = workloads.get("jobs", meta["name"])["status"]["completionTime"]
    assert ended["status"]["lastSuccessfulTime"] == done
    wait_event(workloads, "SawCompletedJob", f"Saw completed job: {meta['name']}, condition: Complete")


def test_a_time_zone_shifts_the_schedule(workloads: WorkloadCluster) -> None:
    local = datetime.now(UTC) + timedelta(hours=5, minutes=45)
    create(workloads, f"{(local - timedelta(minutes=5)).minute} * * * *", timeZone="Asia/Kathmandu")
    resume(workloads)
    (job,) = wait_jobs(workloads, 1)
    assert job["metadata"]["annotations"][AT].endswith("+05:45")
    due = datetime.fromisoformat(job["metadata"]["annotations"][AT])
    assert timedelta(minutes=4) < datetime.now(UTC) - due < timedelta(minutes=7)


def test_times_before_the_deadline_are_not_made_up_for(workloads: WorkloadCluster) -> None:
    past = datetime.now(UTC) - timedelta(minutes=20)
    create(workloads, f"{past.minute} {past.hour} * * *", startingDeadlineSeconds=600)
    resume(workloads, timedelta(days=2))
    workloads.patch("cronjobs", "tick", {"metadata": {"labels": {"seen": "yes"}}})
    workloads.kubectl("create", "job", "by-hand", "--from=cronjob/tick")
    wait_event(workloads, "UnexpectedJob", "by-hand")
    assert names(workloads.list("jobs")) == ["by-hand"]


def test_too_many_missed_times_are_told_of_and_the_last_is_made_up_for(workloads: WorkloadCluster) -> None:
    create(workloads, "* * * * *")
    resume(workloads, timedelta(hours=4))
    wait_event(workloads, "TooManyMissedTimes", "too many missed start times")
    workloads.eventually(lambda: workloads.list("jobs"), "a job")


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_the_concurrency_policy_decides_about_a_job_that_still_runs(
    workloads: WorkloadCluster, policy: str
) -> None:
    cron = create(workloads, concurrencyPolicy=policy)
    running = own_job(workloads, cron, "running")
    workloads.wait_pods(1, "running")
    resume(workloads, active=[reference(running)])
    if policy == "Forbid":
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        wait_event(workloads, "JobAlreadyActive", message)
        assert names(workloads.list("jobs")) == ["running"]
        return

    def settled(cron: Json) -> bool:
        jobs = sorted(names(workloads.list("jobs")))
        started = [name for name in jobs if name.startswith("tick-")]
        expected = ["running", *started] if policy == "Allow" else started
        active = sorted(each["name"] for each in cron["status"].get("active", ()))
        return bool(started) and jobs == expected == active

    workloads.wait("cronjobs", "tick", settled, "another job, beside or instead of the running job")
    if policy == "Replace":
        wait_event(workloads, "SuccessfulDelete", "Deleted job running")


def test_only_so_many_ended_jobs_are_kept(workloads: WorkloadCluster) -> None:
    cron = create(workloads, successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for name in ("a", "b"):
        own_job(workloads, cron, name, completions=0)
        workloads.wait("jobs", name, lambda it: it["status"].get("completionTime"), f"{name} to be complete")
    own_job(workloads, cron, "c", activeDeadlineSeconds=1)
    workloads.eventually(lambda: names(workloads.list("jobs")) == ["b"], "the other jobs to go")
    for name in ("a", "c"):
        wait_event(workloads, "SuccessfulDelete", f"Deleted job {name}")


def test_a_job_that_goes_missing_is_no_longer_active(workloads: WorkloadCluster) -> None:
    cron = create(workloads)
    running = own_job(workloads, cron, "running")
    path = {"status": {"active": [reference(running)]}}
    workloads.patch("cronjobs", "tick", path, "status")
    workloads.delete("jobs", "running")
    workloads.wait("cronjobs", "tick", lambda it: not it["status"].get("active"), "no active job")
    wait_event(workloads, "MissingJob", "Active job went missing: running")


def test_a_job_is_created_from_a_cronjob_by_hand(workloads: WorkloadCluster) -> None:
    create(workloads)
    workloads.kubectl("create", "job", "now", "--from=cronjob/tick")
    job = workloads.get("jobs", "now")
    assert controller_name(job) == "tick"
    assert job["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    workloads.wait_pods(1, "now")
    workloads.delete("cronjobs", "tick")
    wait_jobs(workloads, 0)
    workloads.eventually(lambda: workloads.list("pods") == [], "the pods to go")


def test_kubectl_creates_a_cronjob(workloads: WorkloadCluster) -> None:
    workloads.kubectl("create", "cronjob", "tick", "--image=busybox", "--schedule=*/5 * * * *", "--", "date")
    assert workloads.kubectl("get", "cronjob", "tick", "--no-headers").split()[:3] == ["tick", "*/5", "*"]
    assert workloads.list("jobs") == []
