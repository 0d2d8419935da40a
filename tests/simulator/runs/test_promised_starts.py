"""A job that is promised a start never starts later, as long as jobs keep to their time limits and to the order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.engine.catalog import Catalog
from stromboli.engine.plugin import NoArguments, Plugin
from stromboli.engine.session import Session
from stromboli.policy.policy import load_policy
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.runs.job_objects import EPOCH
from stromboli.simulator.runs.simulation import simulate
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from tests.number_of_examples import scaled
from tests.simulator.runs.small_runs import CATALOG

GPU = "nvidia.com/gpu"
NODES = f"a cpu=4,{GPU}=2 zone=x; b cpu=4 zone=y; c cpu=2,{GPU}=1 zone=y; d cpu=3 zone=x"
POLICY = """\
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: binpack}, {name: witness}]
- plugins: [{name: backfill-reservation, arguments: {mode: MODE}}]
"""
Promises = dict[str, list[float]]


def with_witness(promises: Promises) -> Catalog:
    """A catalogue with a plugin that notes every promise, in seconds since the simulation began."""

    class Witness(Plugin):
        """Notes what is promised."""

        name = "witness"

        def __init__(self, arguments: NoArguments, switches: dict[str, bool]) -> None:
            super().__init__(arguments, switches)

        def closing(self, session: Session) -> None:
            for job in session.cluster.backlog:
                if promise := session.rules.promised(job):
                    promises.setdefault(job.name, []).append(promise.start - EPOCH)

    return Catalog(CATALOG.actions, {**CATALOG.plugins, "witness": Witness})


def keep_promises(jobs: list[SubmittedJob], mode: str = "easy") -> Promises:
    """Simulate, and hold the start of every job against what it was promised."""
    promises: Promises = {}
    catalog = with_witness(promises)
    workload = Workload("promises", tuple(jobs), tuple(nodes(NODES)), tuple(queues("q1; q2")))
    record = simulate(workload, (), load_policy(POLICY.replace("MODE", mode), catalog), catalog)
    assert not record.failed, record.notes
    starts = {job.name: job.started for job in record.jobs}
    for name, promised in promises.items():
        start = starts[name]
        assert start is not None
        assert start <= min(promised), f"{name} starts at {start} and was promised {promised}"
    return promises


def numbered(jobs: list[SubmittedJob]) -> list[SubmittedJob]:
    """In the order of their submission, each with a name of its own."""
    jobs = sorted(jobs, key=lambda job: job.submit_time)
    return [replace(job, name=f"job-{number}") for number, job in enumerate(jobs)]


def random_job(
    submits: st.SearchStrategy[int], queue: st.SearchStrategy[str]
) -> st.SearchStrategy[SubmittedJob]:
    """Gangs with CPUs and GPUs, some bound to a zone, whose time limit may be too long and never is too short."""
    return st.builds(
        lambda submit, run, more, pods, cpu, gpu, zone, queue: SubmittedJob(
            *("job", submit, run, pods),
            requests={"cpu": cpu, GPU: 1} if gpu else {"cpu": cpu},
            time_limit=run + more,
            spec={"nodeSelector": {"zone": zone}} if zone else {},
            queue=queue,
        ),
        *(submits, st.integers(1, 15), st.sampled_from([0, 0, 3, 20]), st.integers(1, 3), st.integers(1, 3)),
        *(st.sampled_from([False, False, True]), st.sampled_from(["", "", "x", "y"]), queue),
    )


def fits(job: SubmittedJob) -> bool:
    """Whether an empty cluster has room for a job: jobs that can never start are promised nothing."""
    zone = job.spec.get("nodeSelector", {}).get("zone", "")
    sizes = [("x", 4, 2), ("y", 4, 0), ("y", 2, 1), ("x", 3, 0)]
    cpu, gpu = int(job.requests["cpu"]), int(job.requests.get(GPU, 0))
    rooms = [
        min(cpus // cpu, gpus // gpu if gpu else cpus) for place, cpus, gpus in sizes if zone in ("", place)
    ]
    return sum(rooms) >= job.pods


@pytest.mark.parametrize("mode", ["easy", "conservative"])
@settings(max_examples=scaled(20))
@given(jobs=st.lists(random_job(st.integers(0, 20), st.just("")).filter(fits), min_size=2, max_size=10))
def test_promises_to_gangs_are_kept_while_jobs_arrive(mode, jobs):
    keep_promises(numbered(jobs), mode)


@pytest.mark.parametrize("mode", ["easy", "conservative"])
@settings(max_examples=scaled(15))
@given(
    jobs=st.lists(random_job(st.just(0), st.sampled_from(["q1", "q2"])).filter(fits), min_size=2, max_size=10)
)
def test_promises_are_kept_to_jobs_of_several_queues(mode, jobs):
    keep_promises(numbered(jobs), mode)


def test_a_gang_is_promised_the_end_of_what_runs_and_starts_then():
    def job(name: str, at: float, run: float, pods: int, cpu: int) -> SubmittedJob:
        return SubmittedJob(name, at, run, pods, requests={"cpu": cpu}, time_limit=run)

    jobs = [
        job("first", 0, 50, 3, 3),
        job("gang", 1, 10, 4, 2),
        job("short", 2, 48, 1, 1),
        job("long", 3, 90, 1, 2),
    ]
    assert set(keep_promises(jobs)["gang"]) == {50}
