"""Jobs and CronJobs of `batch/v1`: the selector and the labels that the server generates, and their validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stromboli.api.schemas.batch.cronjob_spec_rules import cronjob_problems
from stromboli.api.schemas.batch.job_spec_rules import job_problems, job_update_problems
from stromboli.api.schemas.schema_problems import Problem, invalid, required
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.controllers.workloads.workload_pods import CONTROLLER_UID, job_labels
from stromboli.embedded.kinds.kind import Content

KIND = "jobs.batch"
CRON_JOBS = "cronjobs.batch"
KINDS = (KIND, CRON_JOBS)
_LABELS = "spec.template.metadata.labels"


def generate_selector(job: Content) -> None:
    """Label the pods of a new job with its name and uid, and select them by the uid, unless `manualSelector` is set.

    A job without labels of its own gets those of its template.
    """
    spec = job["spec"]
    if not spec.get("manualSelector"):
        meta = spec["template"].setdefault("metadata", {})
        meta["labels"] = {**_generated_labels(job), **(meta.get("labels") or {})}
        selector = spec.setdefault("selector", {})
        selector["matchLabels"] = {
            CONTROLLER_UID: job["metadata"]["uid"],
            **(selector.get("matchLabels") or {}),
        }
    labels = _template_labels(spec)
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _generated_labels(job: Content) -> dict[str, str]:
    return job_labels(job["metadata"]["name"], job["metadata"]["uid"])


def problems(kind: str, content: Content, old: Content | None) -> Iterator[Problem]:
    """What is wrong with a Job or CronJob that is new or whose spec has changed; its status says nothing of that."""
    if old is not None and old["spec"] == content["spec"]:
        return
    if kind == CRON_JOBS:
        yield from cronjob_problems(content, old)
        return
    yield from job_problems(content)
    if old is None:
        yield from _selector_problems(content)
    else:
        yield from job_update_problems(old, content)


def _selector_problems(job: Content) -> Iterator[Problem]:
    """What is wrong with the selector of a new job, or with labels that contradict it."""
    spec = job["spec"]
    labels, selector = _template_labels(spec), spec.get("selector")
    if not spec.get("manualSelector"):
        generated = _generated_labels(job)
        for key, value in generated.items():
            if labels.get(key) != value:
                yield invalid(f"{_LABELS}[{key}]", labels, f"must be '{value}'")
        if selector != {"matchLabels": {CONTROLLER_UID: generated[CONTROLLER_UID]}}:
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    elif selector is None:
        yield required("spec.selector")
    if selector is None or not matches_labels(_label_selector(selector), labels):
        yield invalid(_LABELS, labels or None, "`selector` does not match template `labels`")


def _template_labels(spec: Content) -> dict[str, Any]:
    return (spec["template"].get("metadata") or {}).get("labels") or {}


def _label_selector(selector: Content) -> LabelSelector:
    return msgspec.convert(selector, LabelSelector)
