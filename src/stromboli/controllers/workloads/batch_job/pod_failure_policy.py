"""`spec.podFailurePolicy`: the first rule that a failed pod matches says what its failure means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from stromboli.api.types.controlled_pod import ContainerStatus, Pod
from stromboli.api.types.meta import Condition
from stromboli.controllers.workloads.batch_job.batch_job_kind import (
    BatchJob,
    OnExitCodes,
    OnPodCondition,
    PodFailureRule,
)

FAIL_JOB, FAIL_INDEX, IGNORE, COUNT = "FailJob", "FailIndex", "Ignore", "Count"


class FailureMeaning(NamedTuple):
    """`action` is that of the rule, or empty; `message` says why the whole job fails, if it does."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether it counts towards the limits."""
        return self.action != IGNORE


def meaning_of(job: BatchJob, pod: Pod) -> FailureMeaning:
    """What the failure of a pod means."""
    policy = job.spec.pod_failure_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        cause = _cause(rule, pod)
        if cause and rule.action in (FAIL_JOB, FAIL_INDEX, IGNORE, COUNT):
            message = f"{cause} matching {rule.action} rule at index {number}"
            return FailureMeaning(rule.action, message if rule.action == FAIL_JOB else "")
    return FailureMeaning()


def _cause(rule: PodFailureRule, pod: Pod) -> str:
    """How the pod failed, if the rule is about that, else nothing."""
    if rule.on_exit_codes is not None:
        container = _matching_container(rule.on_exit_codes, pod)
        if container is None or container.state.terminated is None:
            return ""
        code = container.state.terminated.exit_code
        return f"Container {container.name} for pod {pod.key} failed with exit code {code}"
    condition = _matching_condition(rule.on_pod_conditions or (), pod)
    return f"Pod {pod.key} has condition {condition.type}" if condition is not None else ""


def _matching_container(wanted: OnExitCodes, pod: Pod) -> ContainerStatus | None:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return next((each for each in statuses if _matches(wanted, each)), None)


def _matches(wanted: OnExitCodes, container: ContainerStatus) -> bool:
    ended = container.state.terminated
    if ended is None or ended.exit_code == 0 or wanted.container_name not in (None, container.name):
        return False
    listed = ended.exit_code in wanted.values
    return listed if wanted.operator == "In" else wanted.operator == "NotIn" and not listed


def _matching_condition(patterns: Iterable[OnPodCondition], pod: Pod) -> Condition | None:
    wanted = {(pattern.type, pattern.status) for pattern in patterns}
    return next((each for each in pod.status.conditions if (each.type, each.status) in wanted), None)
