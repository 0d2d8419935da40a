"""A policy may wait for the time alone: there is a cycle then, though no job comes and no pod ends."""

from __future__ import annotations

import pytest

from tests.simulator.runs.small_runs import PREEMPTING, job, run, times

NO_GANGS = PREEMPTING.replace("  - name: gang\n", "")
MIN_RUN_TIME = NO_GANGS.replace(
    "tiers:", "configurations:\n- name: preempt\n  arguments: {minRunTime: 62s}\ntiers:", 1
)
COOLDOWN = NO_GANGS.replace("  - name: priority\n", "  - name: priority\n  - name: cdp\n")


@pytest.mark.parametrize("policy", [MIN_RUN_TIME, COOLDOWN], ids=["minRunTime", "cdp"])
@pytest.mark.parametrize(("settings", "moment"), [({}, 62), ({"on_every_event": False, "period": 5.0}, 65)])
def test_a_victim_is_evicted_as_soon_as_its_protection_ends(
    policy: str, settings: dict[str, float], moment: float
) -> None:
    marks = {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "62s"}
    low = job("low", run=1000, cpu=4, annotations=marks)
    record = run(low, job("high", at=5, run=10, cpu=4, priority=100), policy=policy, **settings)
    assert [eviction.time for eviction in record.evictions] == [moment]
    assert times(record)["high"][0] in (moment, moment + settings.get("period", 0))
    assert not record.failed
