"""Which controllers run (`--controllers`, spec 06 1.2)."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from stromboli.daemon.flags import BadFlag

ALL = "*"
JOB, POD_GROUP, QUEUE, GC = "job-controller", "pg-controller", "queue-controller", "gc-controller"
JOB_FLOW, JOB_TEMPLATE, CRON_JOB = "jobflow-controller", "jobtemplate-controller", "cronjob-controller"
HYPER_NODE, SHARDING = "hyperNode-controller", "sharding-controller"
COLOCATION = "colocation-config-controller"
NAMES = (JOB, POD_GROUP, QUEUE, GC, JOB_FLOW, JOB_TEMPLATE, CRON_JOB, HYPER_NODE, SHARDING, COLOCATION)
FEATURES = {JOB: "VolcanoJobSupport", CRON_JOB: "CronVolcanoJobSupport"}
"""Feature gates that controllers depend on."""
DEFAULT = (ALL, f"-{SHARDING}")


def check(selection: Sequence[str]) -> None:
    """`BadFlag` for an unknown name, or one that is listed twice."""
    named = [entry.removeprefix("-").removeprefix("+") for entry in selection if entry != ALL]
    for name in named:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
            raise BadFlag(f"--controllers: {name!r} is no controller; {remedy}")
        if named.count(name) > 1:
            raise BadFlag(
                f"--controllers: {name} is named twice; name it once, with - in front to leave it out"
            )


def is_enabled(selection: Sequence[str], name: str) -> bool:
    """Whether a controller runs: its own entry decides, else whether all are selected.

    A list that only excludes some selects all others: in Volcano it selects none, which its own help denies.
    """
    if f"-{name}" in selection:
        return False
    if name in selection or f"+{name}" in selection:
        return True
    return ALL in selection or all(entry.startswith("-") for entry in selection)
