"""Series of jobs: what a job lacks counts until it changes, whatever else does."""

from __future__ import annotations

from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.testing import World
from tests.manifests import EPOCH, group, queue

SHORT, RETRIES = "volcano_unschedule_job_count", 'volcano_job_retry_counts{job_id="train"}'


def test_a_job_that_lacks_members_counts_until_it_changes() -> None:
    world = World("n1 cpu=4", now=EPOCH + 100)
    metrics = SchedulerMetrics(world.rehearsal.now)

    def counts() -> tuple[float, float]:
        """How many jobs lack members, and in how many cycles the first did."""
        metrics.cycle(world.step().outcome)
        samples = (line.rsplit(" ", 1) for line in metrics.text().decode().splitlines())
        known = {series: number for series, number in samples if series in (SHORT, RETRIES)}
        return float(known[SHORT]), float(known[RETRIES])

    world.job("train", pods=5, cpu=1)
    assert counts() == (1, 1)
    world.job("late", cpu=1)
    assert counts() == (1, 2)
    world.add(queue("other"))
    assert counts() == (1, 3)
    world.add(group("train", 3, phase="Inqueue"))
    assert counts() == (0, 3)
