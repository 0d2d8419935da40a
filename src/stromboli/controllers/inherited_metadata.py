"""Annotations and labels that a job's pods inherit from it, and a group from its pods."""

from collections.abc import Mapping

from stromboli.api import names

_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)


def inherited_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Of the two disruption budgets, only the first that is set is inherited."""
    budgets = [key for key in _BUDGETS if key in annotations][:1]
    return {key: annotations[key] for key in (*_ANNOTATIONS, *budgets) if key in annotations}


def inherited_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: labels[key] for key in _LABELS if key in labels}
