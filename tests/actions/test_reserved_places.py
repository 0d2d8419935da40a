"""Where room was reserved for a job, it is placed if that is still there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from stromboli.engine.plugin import Attempt, Plugin
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import pod


class Reserver(Plugin):
    """Remembers the first task of a job that found no room, as it was then."""

    name = "reserver"
    places: ClassVar[dict[Task, Node]] = {}

    def no_room(self, job: Job, attempt: Attempt) -> None:
        if not self.places:
            self.places[next(iter(job.tasks.values()))] = self.session.cluster.nodes["n1"]

    def reserved_places(self, job: Job) -> Mapping[Task, Node]:
        return self.places


def test_a_pod_that_was_made_anew_since_is_not_placed_as_it_was() -> None:
    Reserver.places.clear()
    world = World("n1 cpu=4").job("train", pods=2, cpu=3)
    world.run("enqueue, allocate", "gang reserver", plugin_classes=(Reserver,))
    assert Reserver.places
    world.add(pod("train-0", "train", cpu=3, labels={"changed": "yes"}))
    result = world.step()
    assert result.outcome.session.failures == []
    assert world.cluster.columns.row("n1")["idle"]["cpu"] == 4000
