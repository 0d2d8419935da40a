"""Annotations of ours on a Job that its controller reads, besides those of its order among other jobs."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import names
from stromboli.api.object_bounds import MAX_PODS


def parallelism_of(annotations: Mapping[str, str]) -> int | None:
    """How many pods of a job may run at a time; None if it does not say so, or not in a way that can be read."""
    text = annotations.get(names.PARALLELISM)
    if text is None or not is_parallelism(text):
        return None
    return int(text)


def is_parallelism(text: object) -> bool:
    """Whether that is a number of pods."""
    if not isinstance(text, str) or not text.isascii() or not text.isdecimal() or len(text) > 6:
        return False
    return 1 <= int(text) <= MAX_PODS
