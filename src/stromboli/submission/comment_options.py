"""Options of `stromboli run` in comments of a script: the same names, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stromboli.submission.bad_request import BadRequest
from stromboli.submission.run_settings import RunSettings

LISTS = ("env", "after")
FIELDS = {
    **{
        name: name
        for name in ("name", "replicas", "gang", "gpus", "cpus", "memory", "queue", "priority", "time")
    },
    **{name: name for name in ("array", "env", "export", "image", "after", "plugin", "workdir")},
    "tasks-per-pod": "tasks_per_pod",
    "log-file": "output",
}
"""The field of the settings by the name of the option."""
SWITCHES = {"no-requeue": ("requeue", False), "tty": ("tty", True)}


def settings_in(words: Sequence[str], mark: str = "#STROMBOLI") -> RunSettings:
    """The settings that options ask for, `--gpus 2` or `--gpus=2`."""
    settings, left = RunSettings(), list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and name in SWITCHES and not equals:
            settings = _with(settings, *SWITCHES[name])
            continue
        if not word.startswith("--") or name not in FIELDS:
            known = ", ".join(f"--{option}" for option in (*FIELDS, *SWITCHES))
            raise BadRequest(mark, word, f"no option of stromboli run that a script may have; use {known}")
        if not equals:
            if not left:
                raise BadRequest(mark, word, "needs a value")
            value = left.pop(0)
        field = FIELDS[name]
        kept = (*getattr(settings, field), value) if name in LISTS else value
        settings = _with(settings, field, kept)
    return settings


def _with(settings: RunSettings, field: str, value: Any) -> RunSettings:
    return replace(settings, **{field: value})
