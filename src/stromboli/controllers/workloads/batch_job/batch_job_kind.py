"""A Job of `batch/v1` as its controller reads it. The pod template stays plain, so that nothing of it is lost."""

from __future__ import annotations

from msgspec import field

from stromboli.api.types.meta import Condition, Count, Int32, LabelSelector, Time, Value
from stromboli.controllers.workloads.workload import INDEXED, WorkloadSpec, WorkloadStatus
from stromboli.controllers.workloads.workload_kinds import SelectingWorkload

CONTROLLER_NAME = "kubernetes.io/job-controller"
NON_INDEXED = "NonIndexed"
FAILED_ONLY = "Failed"
"""The podReplacementPolicy that waits until a pod has ended before it is replaced."""
COMPLETE, FAILED, SUSPENDED = "Complete", "Failed", "Suspended"
SUCCESS_CRITERIA_MET, FAILURE_TARGET = "SuccessCriteriaMet", "FailureTarget"
TRUE, FALSE = "True", "False"


class OnExitCodes(Value, frozen=True):
    container_name: str | None = None
    operator: str = ""
    values: tuple[Int32, ...] = ()


class OnPodCondition(Value, frozen=True):
    type: str = ""
    status: str = TRUE


class PodFailureRule(Value, frozen=True):
    """What a failed pod means, if it ended like this."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] | None = None


class PodFailurePolicy(Value, frozen=True):
    rules: tuple[PodFailureRule, ...] = ()


class SuccessRule(Value, frozen=True):
    """Indexes, or how many of them, that are enough."""

    succeeded_indexes: str | None = None
    succeeded_count: Count | None = None


class SuccessPolicy(Value, frozen=True):
    rules: tuple[SuccessRule, ...] = ()


class BatchJobSpec(WorkloadSpec):
    selector: LabelSelector | None = None
    backoff_limit: Count = 6
    backoff_limit_per_index: Count | None = None
    max_failed_indexes: Count | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    ttl_seconds_after_finished: Count | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class JobCondition(Condition, frozen=True):
    last_probe_time: Time | None = None


class UncountedPods(Value, frozen=True):
    """Uids of ended pods whose finalizers are still to be removed, after which they are counted."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed)


class BatchJobStatus(WorkloadStatus):
    conditions: tuple[JobCondition, ...] = ()
    start_time: Time | None = None
    completion_time: Time | None = None
    active: Count = 0
    ready: Count | None = None
    terminating: Count | None = None
    succeeded: Count = 0
    failed: Count = 0
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedPods | None = None


class BatchJob(SelectingWorkload):
    """Pods that run to their end: so many at a time, and so many in all."""

    kind: str = "Job"
    api_version: str = "batch/v1"
    spec: BatchJobSpec = field(default_factory=BatchJobSpec)
    status: BatchJobStatus = field(default_factory=BatchJobStatus)

    @property
    def selector(self) -> LabelSelector | None:
        return self.spec.selector

    @property
    def indexed(self) -> bool:
        return self.spec.completion_mode == INDEXED

    @property
    def completions(self) -> int:
        """Of an indexed job, which always has a number."""
        return self.spec.completions or 0

    @property
    def parallelism(self) -> int:
        return 1 if self.spec.parallelism is None else self.spec.parallelism

    @property
    def waits_for_ends(self) -> bool:
        """Whether a pod is replaced only once it has ended."""
        return self.spec.pod_replacement_policy == FAILED_ONLY

    @property
    def is_managed_elsewhere(self) -> bool:
        return self.spec.managed_by not in (None, CONTROLLER_NAME)

    @property
    def finished(self) -> JobCondition | None:
        """The condition that the job has ended with."""
        return true_condition(self.status, COMPLETE, FAILED)


def true_condition(status: BatchJobStatus, *types: str) -> JobCondition | None:
    """The first condition of one of these types that holds."""
    return next((each for each in status.conditions if each.type in types and each.status == TRUE), None)


def new_condition(type_: str, reason: str, message: str, now: Time, status: str = TRUE) -> JobCondition:
    return JobCondition(type_, status, reason, message, last_transition_time=now, last_probe_time=now)


def with_condition(status: BatchJobStatus, condition: JobCondition) -> bool:
    """Set a condition unless it is there already; whether that changed anything.

    A condition that does not hold is not added: it only takes the place of one that held.
    """
    for position, old in enumerate(status.conditions):
        if old.type != condition.type:
            continue
        if (old.status, old.reason, old.message) == (condition.status, condition.reason, condition.message):
            return False
        before, after = status.conditions[:position], status.conditions[position + 1 :]
        status.conditions = (*before, condition, *after)
        return True
    if condition.status == FALSE:
        return False
    status.conditions = (*status.conditions, condition)
    return True
