"""How long tasks run at most: whose word counts, and what counts as none."""

import pytest

from stromboli.model.job import Job, JobId
from stromboli.model.time_limits import job_time_limit, limit_in
from stromboli.testing import World

LIMIT = "stromboli.sh/time-limit"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m", 5400), ("5400", 5400), ("90s", 90), ("0.5h", 1800), ("1", 1), ("2m", 120)],
)
def test_a_limit_is_a_duration_or_seconds(text: str, seconds: float) -> None:
    assert limit_in(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "-1h", "1 h", "forever", "1h" * 40, "9" * 40, "9999999h", "nan", "1e3", "٣", "1d"]
)
def test_what_is_no_limit_counts_as_none(text: str) -> None:
    assert limit_in(text) is None


def limit_of(world: World, name: str) -> float | None:
    job: Job = world.cluster.jobs[JobId("PodGroup", "default", name)]
    return job_time_limit(job, world.cluster.queues)


def test_the_group_then_the_pod_then_the_queue_says_how_long() -> None:
    world = World(queues="all; part parent=all")
    world.rehearsal.annotate("all", LIMIT, "10h")
    world.job("nothing", queue="part", cpu=1)
    world.job("stated", queue="part", cpu=1, annotations={LIMIT: "2h"})
    world.job("ended", queue="part", cpu=1, spec={"activeDeadlineSeconds": 60})
    world.job("sooner", queue="part", cpu=1, annotations={LIMIT: "2h"}, spec={"activeDeadlineSeconds": 60})
    world.job("bad", queue="part", cpu=1, annotations={LIMIT: "soon"})
    world.job("elsewhere", cpu=1)
    names = ("nothing", "stated", "ended", "sooner", "bad", "elsewhere")
    assert [limit_of(world, name) for name in names] == [36000, 7200, 60, 60, 36000, None]


def test_a_deadline_makes_no_other_shape() -> None:
    world = World()
    world.job("a", cpu=1, spec={"activeDeadlineSeconds": 60})
    world.job("b", cpu=1, spec={"activeDeadlineSeconds": 61})
    assert world.task("a-0").shape is world.task("b-0").shape
