"""What a simulation leaves out of its cycles changes no decision: words, and cycles in which nobody waits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import msgspec
import pytest
from msgspec.structs import replace as replaced

from stromboli.engine.catalog import Catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import preset
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.cluster_notation import nodes
from stromboli.simulator.runs import simulation_loop
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.simulation import SimulationSettings
from stromboli.simulator.runs.virtual_world import VirtualWorld
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from tests.simulator.runs import small_runs
from tests.simulator.runs.small_runs import CATALOG, job, run

POLICIES = {
    "full": preset("full"),
    "backfill": 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n'
    "  - name: backfill-reservation\n",
}


def busy(seed: int) -> list[SubmittedJob]:
    """Gangs of several sizes and priorities, more than there is room for."""
    random = Random(seed)
    return [
        job(
            f"job-{number}",
            at=number * 2,
            run=(length := random.randint(5, 60)),
            cpu=random.choice([1, 1, 2, 2]),
            pods=random.choice([1, 1, 2, 4]),
            priority=random.choice([0, 0, 100]),
            time_limit=length * random.choice([1, 2]),
            annotations={"volcano.sh/preemptable": "true"},
        )
        for number in range(40)
    ]


def simulated(policy: str) -> RunRecord:
    record = run(*busy(3), nodes="n1 cpu=4; n2 cpu=4; n3 cpu=3", policy=POLICIES[policy])
    record.cycles = 0  # as is the number of samples, since each cycle takes one
    before = [None, *(replaced(sample, time=0.0) for sample in record.samples)]
    record.samples = [
        sample
        for sample, last in zip(record.samples, before, strict=False)
        if replaced(sample, time=0.0) != last
    ]
    assert all(each.ended is not None for each in record.jobs)
    return record


@pytest.mark.parametrize("policy", POLICIES)
def test_cycles_without_words_decide_the_same(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = simulated(policy)
    monkeypatch.setattr(
        simulation_loop, "Scheduler", lambda *args, **_: partial(Scheduler, reports=True)(*args)
    )
    assert msgspec.to_builtins(simulated(policy)) == msgspec.to_builtins(silent)


@pytest.mark.parametrize("policy", POLICIES)
def test_another_cycle_where_nobody_waits_decides_nothing(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = simulated(policy)
    eager = {name: replace(action, for_waiting=False) for name, action in CATALOG.actions.items()}
    monkeypatch.setattr(small_runs, "CATALOG", Catalog(eager, CATALOG.plugins))
    assert msgspec.to_builtins(simulated(policy)) == msgspec.to_builtins(without)


def test_shapes_are_forgotten_with_which_nobody_waits_any_more() -> None:
    jobs = [job(f"job-{i}", at=i, run=2, cpu=201 + i, time_limit=2) for i in range(200)]
    policy = load_policy(POLICIES["backfill"], CATALOG)
    settings = SimulationSettings()
    world = VirtualWorld(Workload("shapes", tuple(jobs)), nodes("n1 cpu=400"), settings)
    known: list[int] = []
    loop = simulation_loop.SimulationLoop(
        world, policy, CATALOG, settings, lambda outcome: known.append(len(outcome.session.waits.bound))
    )
    while loop.step():
        pass
    assert max(known) > known[-1] < len(jobs) / 2
