"""Which controllers are on (`--controllers`, spec 06 1.2)."""

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
"""Feature gates without which a controller has nothing to look after."""
DEFAULT = (ALL, f"-{SHARDING}")


def check(gates: Sequence[str]) -> None:
    """`BadFlag` for a name that there is not, or one that is named twice."""
    named = [_bare(one) for one in gates if one != ALL]
    for name in named:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            way_out = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
            raise BadFlag(f"--controllers: {name!r} is no controller; {way_out}")
        if named.count(name) > 1:
            raise BadFlag(
                f"--controllers: {name} is named twice; name it once, with - in front to leave it out"
            )


def is_on(gates: Sequence[str], name: str) -> bool:
    """Whether a controller is on: what names it decides, else whether all are asked for.

    A list that only leaves some out means all others: in Volcano it means none, which its own help denies.
    """
    if f"-{name}" in gates:
        return False
    if name in gates or f"+{name}" in gates:
        return True
    return ALL in gates or all(one.startswith("-") for one in gates)


def _bare(gate: str) -> str:
    return gate.removeprefix("-").removeprefix("+")
