"""Jobs of `batch/v1`: the selector and the labels that the server generates, and their validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stromboli.api.schemas.batch.job_spec_rules import job_problems, job_update_problems
from stromboli.api.schemas.schema_problems import Problem, invalid, required
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.controllers.workloads.workload_pods import CONTROLLER_UID, job_labels
from stromboli.embedded.kinds.kind import IN_ALL, STATUS, Content, SelectableField, builtin
from stromboli.embedded.kinds.pod_owners import ControllerStrategy, image_cells
from stromboli.embedded.tables.age_text import age, duration_text, instant
from stromboli.embedded.tables.table_printer import (
    Cells,
    condition,
    name_of,
    nested_map,
    printer,
    selector_text,
)

_LABELS = "spec.template.metadata.labels"
_DEFAULTS = {
    "parallelism": 1,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "manualSelector": False,
}
_STATES = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _row(job: Content, now: float) -> Cells:
    spec, status = nested_map(job, "spec"), nested_map(job, "status")
    return [
        name_of(job),
        _state(job),
        _completions(spec, status),
        _duration(job, now),
        age(job, now),
        *image_cells(job, "spec"),
        selector_text(spec.get("selector")),
    ]


def _state(job: Content) -> str:
    if nested_map(job, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return next((type for type in _STATES if condition(job, type).get("status") == "True"), "Running")


def _completions(spec: Content, status: Content) -> str:
    done, completions = status.get("succeeded") or 0, spec.get("completions")
    if completions is not None:
        return f"{done}/{completions}"
    parallel = spec.get("parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Content, now: float) -> str:
    status = nested_map(job, "status")
    begin = instant(status.get("startTime"))
    if begin is None:
        return ""
    end = instant(status.get("completionTime")) or instant(condition(job, "Failed").get("lastTransitionTime"))
    return duration_text((end or now) - begin)


class JobStrategy(ControllerStrategy):
    kind_name = "Job"
    restart_policies = ("OnFailure", "Never")
    printer = printer(
        "Name | Status | Completions | Duration | Age | Containers+ | Images+ | Selector+", _row
    )

    def set_defaults(self, content: Content) -> None:
        """Of jobs alone; the template of a CronJob gets these when a job is created from it."""
        super().set_defaults(content)
        spec = content.get("spec") or {}
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = 1
        for field, value in _DEFAULTS.items():
            spec.setdefault(field, value)
        policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        spec.setdefault("podReplacementPolicy", policy)

    def generate(self, content: Content) -> None:
        """Label the pods of a new job with its name and uid, and select them by the uid, without `manualSelector`.

        A job without labels of its own gets those of its template.
        """
        spec = content["spec"]
        if not spec.get("manualSelector"):
            meta = spec["template"].setdefault("metadata", {})
            meta["labels"] = {**_generated_labels(content), **(meta.get("labels") or {})}
            selector = spec.setdefault("selector", {})
            selector["matchLabels"] = {
                CONTROLLER_UID: content["metadata"]["uid"],
                **(selector.get("matchLabels") or {}),
            }
        labels = _template_labels(spec)
        if labels and not content["metadata"].get("labels"):
            content["metadata"]["labels"] = dict(labels)

    def stored_problems(self, content: Content, old: Content | None) -> Iterable[Problem]:
        """What is wrong with a job that is new or whose spec has changed; its status says nothing of that."""
        if old is not None and old["spec"] == content["spec"]:
            return
        yield from job_problems(content)
        if old is None:
            yield from _selector_problems(content)
        else:
            yield from job_update_problems(old, content)


def _generated_labels(job: Content) -> dict[str, str]:
    return job_labels(job["metadata"]["name"], job["metadata"]["uid"])


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
    if selector is None or not matches_labels(msgspec.convert(selector, LabelSelector), labels):
        yield invalid(_LABELS, labels or None, "`selector` does not match template `labels`")


def _template_labels(spec: Content) -> dict[str, Any]:
    return (spec["template"].get("metadata") or {}).get("labels") or {}


KIND = builtin(
    "batch",
    "jobs",
    "Job",
    "",
    STATUS,
    selectable_fields={"status.successful": SelectableField("status.succeeded", "0")},
    strategy=JobStrategy(),
    **IN_ALL,
)
