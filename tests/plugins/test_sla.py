"""Deadlines: their order, and the vote for a job that waited long enough."""

from typing import Any

import pytest

from stromboli.engine.points import Vote
from stromboli.plugins.sla import SlaArguments
from stromboli.policy.arguments import parse_arguments
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import EPOCH, group, job_named, policy

BEFORE = NOON - EPOCH - 3600


def _world(*jobs: dict[str, Any], **arguments: str) -> World:
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    world = World(policy=policy("enqueue", ("sla", given))).add(*jobs)
    world.step()
    return world


def _waits(name: str, time: str | None, created: float = BEFORE) -> dict[str, Any]:
    return group(
        name, 1, created=created, annotations={"volcano.sh/sla-waiting-time": time} if time else {}, phase=""
    )


@pytest.mark.parametrize(
    ("time", "vote"),
    [
        ("1h", Vote.PERMIT),
        ("3600s", Vote.PERMIT),
        ("1h0.5s", Vote.ABSTAIN),
        ("bad", Vote.ABSTAIN),
        (None, Vote.ABSTAIN),
    ],
)
def test_a_job_that_waited_long_enough_is_spoken_for(time: str | None, vote: Vote) -> None:
    world = _world(_waits("j", time))
    plugin, job = world.plugin("sla"), job_named(world.cluster, "j")
    assert plugin.session.now == NOON
    assert plugin.job_enqueueable(job) is vote
    assert plugin.job_pipelined(job) is vote


def test_the_argument_serves_jobs_that_say_nothing() -> None:
    world = _world(
        _waits("silent", None), _waits("bad", "-1s"), _waits("patient", "2h"), sla_waiting_time="30m"
    )
    votes = {job.name: world.plugin("sla").job_enqueueable(job) for job in world.cluster.jobs.values()}
    assert votes == {"silent": Vote.PERMIT, "bad": Vote.PERMIT, "patient": Vote.ABSTAIN}


def test_the_earlier_deadline_comes_first_and_none_comes_last() -> None:
    world = _world(
        _waits("never", None, created=0),
        _waits("soon", "10m"),
        _waits("sooner", "1h", created=BEFORE - 55 * 60),
    )
    ordered = sorted(world.cluster.jobs.values(), key=world.plugin("sla").job_order)
    assert [job.name for job in ordered] == ["sooner", "soon", "never"]


@pytest.mark.parametrize("text", ["soon", "0s", "-1h", ""])
def test_a_waiting_time_that_is_none_is_ignored_with_a_warning(text: str) -> None:
    arguments, problems = parse_arguments(SlaArguments, {"sla-waiting-time": text})
    assert arguments == SlaArguments()
    assert "must be a duration above zero" in problems[0].message
