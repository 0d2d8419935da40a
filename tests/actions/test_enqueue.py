"""enqueue: one job per turn of its queue; a refused one does not hold up the next (spec 02 2)."""

from __future__ import annotations

from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.model.job import Job
from stromboli.testing import World
from tests.manifests import Manifest, group, phases, queue


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


def enqueue(*objects: Manifest) -> tuple[list[str], dict[str, str]]:
    world = World().add(*objects)
    world.run("enqueue", "only-two", plugin_classes=[OnlyTwo])
    return world.plugin("only-two")._seen, phases(world)


NEEDS = {"cpu": "1"}


def test_a_refused_job_does_not_hold_up_the_next() -> None:
    seen, phase_of = enqueue(
        queue(),
        group("huge", 1, phase="Pending", minResources=NEEDS, created=0),
        group("small", 1, phase="", minResources=NEEDS, created=1),
    )
    assert seen == ["huge?", "small?", "small in from nothing"]
    assert phase_of == {"huge": "Pending", "small": "Inqueue"}


def test_a_job_without_minimum_resources_is_let_in_unasked() -> None:
    seen, phase_of = enqueue(queue(), group("huge", 1, phase="Pending"))
    assert seen == ["huge in from Pending"]
    assert phase_of == {"huge": "Inqueue"}


def test_a_queue_comes_back_after_each_job_and_the_older_one_first() -> None:
    jobs = [group(f"{name}{n}", 1, queue=name, phase="Pending", created=n) for name in "ab" for n in range(2)]
    seen, _ = enqueue(queue("a"), queue("b", created=1), *jobs)
    assert [text.split()[0] for text in seen] == ["a0", "a1", "b0", "b1"]


def test_a_job_that_is_in_already_or_takes_no_part_is_not_asked() -> None:
    seen, phase_of = enqueue(
        queue(), group("in", 1, phase="Inqueue"), group("lost", 1, phase="Pending", queue="missing")
    )
    assert seen == []
    assert phase_of == {"in": "Inqueue", "lost": "Pending"}
