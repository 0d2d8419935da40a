"""The job that a flow makes of a JobTemplate (spec 06 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stromboli.api.types.jobflow import Flow, JobFlow, JobTemplate
from stromboli.controllers.owner_references import controller_reference

CREATED_BY_TEMPLATE = "volcano.sh/createdByJobTemplate"
CREATED_BY_FLOW = "volcano.sh/createdByJobFlow"
DEFAULTS = {"queue": "default", "maxRetry": 3}
"""Defaults that the API server writes into every patch, so that a patch with these values does not ask for them."""

Spec = Mapping[str, Any]


def job_name(flow: JobFlow, name: str) -> str:
    return f"{flow.name}-{name}"


def job_of(flow: JobFlow, step: Flow, template: JobTemplate) -> dict[str, Any]:
    """The manifest of a step's job: the template's spec with the step's patch."""
    created_by = {
        CREATED_BY_TEMPLATE: f"{flow.namespace}.{template.name}",
        CREATED_BY_FLOW: f"{flow.namespace}.{flow.name}",
    }
    patch = step.patch.job_spec if step.patch is not None else {}
    return {
        "metadata": {
            "name": job_name(flow, step.name),
            "namespace": flow.namespace,
            "labels": created_by,
            "annotations": created_by,
            "ownerReferences": [controller_reference(flow)],
        },
        "spec": patched(template.spec, patch),
    }


def patched(spec: Spec, patch: Spec) -> dict[str, Any]:
    """A job's spec with a patch: maps are merged, tasks by name, everything else is replaced."""
    changes = {key: value for key, value in patch.items() if DEFAULTS.get(key) != value}
    return _merged(spec, changes)


def _merged(base: Spec, changes: Spec) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        before = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            result[key] = _merged(before, value)
        elif key == "tasks" and isinstance(value, list) and isinstance(before, list):
            result[key] = _tasks(before, value)
        else:
            result[key] = value
    return result


def _tasks(before: list[Any], patches: list[Any]) -> list[Any]:
    """Tasks of the same name are merged, others appended."""
    named = {patch.get("name"): patch for patch in patches if isinstance(patch, Mapping)}
    merged = [
        _merged(task, named.pop(task.get("name")))
        if isinstance(task, Mapping) and task.get("name") in named
        else task
        for task in before
    ]
    return merged + list(named.values())
