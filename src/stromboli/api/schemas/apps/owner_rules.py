"""What owners of pods may not say: sizes beyond measure, and selectors that miss their own pods or select all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stromboli.api.object_bounds import MAX_PODS
from stromboli.api.schemas.metadata_rules import label_problems
from stromboli.api.schemas.schema_problems import Problem, invalid, required
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector

Content = dict[str, Any]


def size_problems(spec: Content, kind: str) -> Iterator[Problem]:
    """Kubernetes itself limits indexed jobs alone, and says so in its own words."""
    field = "parallelism" if kind == "Job" else "replicas"
    if (pods := spec.get(field) or 0) > MAX_PODS and spec.get("completionMode") != "Indexed":
        yield invalid(f"spec.{field}", pods, f"must be no more than {MAX_PODS}, the most pods of one owner")


def selector_problems(spec: Content, kind: str) -> Iterator[Problem]:
    """A selector that is empty would select the pods of everybody."""
    labels, selector = template_labels(spec), msgspec.convert(spec.get("selector") or {}, LabelSelector)
    yield from label_problems(labels, "spec.template.labels")
    if selector == LabelSelector():
        yield invalid("spec.selector", {}, f"empty selector is invalid for {kind.lower()}")
    if not matches_labels(selector, labels):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def replication_problems(spec: Content) -> Iterator[Problem]:
    labels, selector = template_labels(spec), spec.get("selector") or {}
    if not selector:
        yield required("spec.selector")
    if not selector.items() <= labels.items():
        detail = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", labels or None, detail)


def template_labels(spec: Content) -> dict[str, str]:
    labels: dict[str, str] = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return labels
