"""Which rules apply to which objects: the table for webhooks, the embedded API server and `lint`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from stromboli.admission.rules import (
    cronjob_rules,
    hypernode_rules,
    job_rules,
    job_update_rules,
    jobflow_rules,
    pod_rules,
    podgroup_rules,
    queue_rules,
)
from stromboli.admission.rules.field import Field, Report
from stromboli.admission.rules.rule_context import Context
from stromboli.api.schemas.schema_problems import sentence

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"

Default = Callable[[dict[str, Any], Any, Context], None]
"""Completes an object in place; the old object is None for a new one."""
Check = Callable[[Field, Any, str, Context], None]


class Resource(NamedTuple):
    """What is reviewed, as the API server names it."""

    group: str
    version: str
    plural: str
    kind: str

    def __str__(self) -> str:
        """As Go prints it, for messages."""
        return f"{self.group}/{self.version}, Resource={self.plural}"


@dataclass(frozen=True, slots=True)
class Review:
    """One endpoint: for which resource and operations, under which name, and what it does."""

    path: str
    name: str
    resource: Resource
    operations: tuple[str, ...]
    default: Default | None = None
    check: Check | None = None


class AdmissionResult(NamedTuple):
    """An object with its defaults, and its problems."""

    object: dict[str, Any]
    report: Report


def _on_create(check: Callable[[Field, Context], None]) -> Check:
    return lambda field, old, operation, context: check(field, context)


def _default_job(job: dict[str, Any], old: Any, context: Context) -> None:
    if isinstance(old, dict):
        job_update_rules.default(job, old, context)
    else:
        job_rules.default(job, context)


def _default_group(group: dict[str, Any], old: Any, context: Context) -> None:
    if podgroup_rules.names_default_queue(group) and not podgroup_rules.names_default_queue(old):
        podgroup_rules.default(group, context)


def _default_alike(default: Callable[[dict[str, Any], Context], None]) -> Default:
    """Of a kind whose defaults do not depend on what was stored before."""
    return lambda content, old, context: default(content, context)


def _check_job(field: Field, old: Any, operation: str, context: Context) -> None:
    if operation == CREATE:
        job_rules.check(field, context)
    else:
        job_update_rules.check(field, old, context)


def _check_queue(field: Field, old: Any, operation: str, context: Context) -> None:
    if operation == DELETE:
        queue_rules.check_deletion(field, context)
    else:
        queue_rules.check(field, old if operation == UPDATE else None, context)


_JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
_CRON_JOBS = Resource("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob")
_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
_QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue")
_HYPER_NODES = Resource("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode")
_FLOWS = Resource("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow")
_PODS = Resource("", "v1", "pods", "Pod")

REVIEWS = {
    review.path: review
    for review in (
        Review("/jobs/mutate", "mutatejob.volcano.sh", _JOBS, (CREATE, UPDATE), default=_default_job),
        Review("/jobs/validate", "validatejob.volcano.sh", _JOBS, (CREATE, UPDATE), check=_check_job),
        Review(
            "/podgroups/mutate",
            "mutatepodgroup.volcano.sh",
            _GROUPS,
            (CREATE, UPDATE),
            default=_default_group,
        ),
        Review(
            "/podgroups/validate",
            "validatepodgroup.volcano.sh",
            _GROUPS,
            (CREATE,),
            check=_on_create(podgroup_rules.check),
        ),
        Review(
            "/pods/mutate",
            "mutatepod.volcano.sh",
            _PODS,
            (CREATE,),
            default=_default_alike(pod_rules.default),
        ),
        Review(
            "/pods/validate", "validatepod.volcano.sh", _PODS, (CREATE,), check=_on_create(pod_rules.check)
        ),
        Review(
            "/queues/mutate",
            "mutatequeue.volcano.sh",
            _QUEUES,
            (CREATE, UPDATE),
            default=_default_alike(queue_rules.default),
        ),
        Review(
            "/queues/validate",
            "validatequeue.volcano.sh",
            _QUEUES,
            (CREATE, UPDATE, DELETE),
            check=_check_queue,
        ),
        Review(
            "/hypernodes/validate",
            "validatehypernodes.volcano.sh",
            _HYPER_NODES,
            (CREATE, UPDATE),
            check=_on_create(hypernode_rules.check),
        ),
        Review(
            "/jobflows/validate",
            "validatejobflow.volcano.sh",
            _FLOWS,
            (CREATE, UPDATE),
            check=_on_create(jobflow_rules.check),
        ),
        Review(
            "/cronjobs/validate",
            "validatecronjob.volcano.sh",
            _CRON_JOBS,
            (CREATE, UPDATE),
            check=_on_create(cronjob_rules.check),
        ),
    )
}
"""By path, as Volcano's webhook server has them."""


def with_defaults(
    review: Review, content: dict[str, Any], context: Context, old: Any = None
) -> dict[str, Any]:
    """A copy of the object with defaults for what its user left out; `old` is what an update replaces."""
    if review.default is None:
        return content
    completed: dict[str, Any] = msgspec.to_builtins(content)  # a copy, much quicker than deepcopy
    review.default(completed, old, context)
    return completed


def validate(review: Review, content: Any, old: Any, operation: str, context: Context) -> Report:
    """The problems of an object."""
    report = Report()
    if review.check is not None:
        try:
            review.check(Field(content, report), old, operation, context)
        except RecursionError:
            report.add(sentence("nested too deeply to be read"))
    return report


def admit(group: str, kind: str, content: Any, context: Context) -> AdmissionResult:
    """Set the defaults of a new object, then validate it. Objects of kinds without rules pass as they are."""
    report = Report()
    for review in REVIEWS.values():
        if (review.resource.group, review.resource.kind) == (group, kind):
            content = with_defaults(review, content, context)
            for problem in validate(review, content, None, CREATE, context):
                report.add(problem)
    return AdmissionResult(content, report)


def message(review: Review, report: Report) -> str:
    """The message of a refusal, as the API server writes it."""
    return f"admission webhook {json.dumps(review.name)} denied the request: {report}"
