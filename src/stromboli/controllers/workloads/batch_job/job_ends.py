"""Whether a job ends, and why: what an earlier sync decided stands, then failures are looked for, then success."""

from __future__ import annotations

from stromboli.api.pods import is_finished
from stromboli.api.types.meta import Time
from stromboli.controllers.workloads.batch_job.batch_job_kind import (
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    BatchJob,
    JobCondition,
    new_condition,
    true_condition,
)
from stromboli.controllers.workloads.batch_job.job_view import JobView
from stromboli.controllers.workloads.batch_job.pod_ends import is_failed
from stromboli.controllers.workloads.batch_job.pod_failure_policy import meaning_of
from stromboli.controllers.workloads.batch_job.success_policy import matched_rule


def early_end(view: JobView, now: Time) -> JobCondition | None:
    """The condition of a job that ends whatever its active pods do: it has failed, or its success policy is met."""
    job = view.job
    decided = true_condition(job.status, SUCCESS_CRITERIA_MET) or true_condition(job.status, FAILURE_TARGET)
    if decided is not None:
        return decided
    failure = _failure(view, now)
    if failure is not None:
        return new_condition(FAILURE_TARGET, *failure, now)
    rule = matched_rule(job, view.indexes.succeeded) if job.indexed else None
    if rule is None:
        return None
    return new_condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", f"Matched rules at index {rule}", now)


def completion(view: JobView, active: int, now: Time) -> JobCondition | None:
    """The condition of a job whose pods have all succeeded; of one without `completions`, whose pods have all ended."""
    completions = view.job.spec.completions
    reached = view.succeeded > 0 if completions is None else view.succeeded >= completions
    if not reached or active:
        return None
    message = "Reached expected number of succeeded pods"
    return new_condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, now)


def deadline_in(job: BatchJob, now: Time) -> float | None:
    """Seconds until a job that runs has run for too long."""
    allowed, since = job.spec.active_deadline_seconds, job.status.start_time
    if allowed is None or since is None or job.spec.suspend:
        return None
    return since.timestamp() + allowed - now.timestamp()


def _failure(view: JobView, now: Time) -> tuple[str, str] | None:
    """Reason and message, if the job has failed."""
    job, spec = view.job, view.job.spec
    message = _policy_message(view)
    if message:
        return "PodFailurePolicy", message
    if view.failed > spec.backoff_limit or _restarts_exceeded(view):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = deadline_in(job, now)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    failed = view.indexes.failed
    if failed is None:
        return None
    if spec.max_failed_indexes is not None and len(failed) > spec.max_failed_indexes:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if failed and len(failed) + len(view.indexes.succeeded) >= job.completions:
        return "FailedIndexes", "Job has failed indexes"
    return None


def _policy_message(view: JobView) -> str:
    if view.job.spec.pod_failure_policy is None:
        return ""
    failed = (pod for pod in view.pods if is_failed(pod, view.job))
    return next((message for pod in failed if (message := meaning_of(view.job, pod).message)), "")


def _restarts_exceeded(view: JobView) -> bool:
    """Whether containers were restarted too often, where the node restarts them and pods do not fail."""
    spec = view.job.spec
    if (spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        container.restart_count
        for pod in view.pods
        if not is_finished(pod)
        for container in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts > 0 if spec.backoff_limit == 0 else restarts >= spec.backoff_limit
