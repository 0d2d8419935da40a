"""enqueue: one job per turn of its queue; a refused one does not hold up the next (spec 02 2)."""

from __future__ import annotations

from stromboli.api.types.meta import Object
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.model.job import Job
from tests.building import cluster_of, engine, group, queue


class OnlyTwo(Plugin):
    """Lets two jobs in, and notes the order of all that happens."""

    name = "only-two"

    def __init__(self, *more: object):
        super().__init__(*more)
        self._seen: list[str] = []

    def job_enqueueable(self, job: Job) -> Vote:
        self._seen.append(f"{job.name}?")
        return Vote.REJECT if job.name == "huge" else Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        self._seen.append(f"{job.name} in from {job.phase or 'nothing'}")


def enqueue(*objects: Object) -> tuple[list[str], dict[str, str]]:
    running = engine("only-two", actions="enqueue", own=[OnlyTwo])
    outcome = running.cycle(cluster_of(*objects), 0.0)
    phases = {job.name: job.phase for job in outcome.session.cluster.jobs.values()}
    return running.rules.plugins[0]._seen, phases


NEEDS = {"cpu": "1"}


def test_a_refused_job_does_not_hold_up_the_next() -> None:
    seen, phases = enqueue(
        queue(),
        group("huge", 1, phase="Pending", resources=NEEDS, created=0),
        group("small", 1, phase="", resources=NEEDS, created=1),
    )
    assert seen == ["huge?", "small?", "small in from nothing"]
    assert phases == {"huge": "Pending", "small": "Inqueue"}


def test_a_job_without_minimum_resources_is_let_in_unasked() -> None:
    seen, phases = enqueue(queue(), group("huge", 1, phase="Pending"))
    assert seen == ["huge in from Pending"]
    assert phases == {"huge": "Inqueue"}


def test_a_queue_comes_back_after_each_job_and_the_older_one_first() -> None:
    jobs = [group(f"{name}{n}", 1, queue=name, phase="Pending", created=n) for name in "ab" for n in range(2)]
    seen, _ = enqueue(queue("a"), queue("b", created=1), *jobs)
    assert [text.split()[0] for text in seen] == ["a0", "a1", "b0", "b1"]


def test_a_job_that_is_in_already_or_takes_no_part_is_not_asked() -> None:
    seen, phases = enqueue(
        queue(), group("in", 1, phase="Inqueue"), group("lost", 1, phase="Pending", queue="missing")
    )
    assert seen == []
    assert phases == {"in": "Inqueue", "lost": "Pending"}
