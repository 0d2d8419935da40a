"""Plugins hold jobs back, and place them where capacity was reserved for them, if it still is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from stromboli.engine.plugin import Attempt, HeldBack, Plugin
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


class Holder(Plugin):
    """Holds one job back, and does not need to know of jobs without capacity."""

    name = "holder"

    def held_back(self, job: Job) -> HeldBack | None:
        return HeldBack("another job starts first", "another job starts first") if job.name == "b" else None


def test_a_plugin_may_hold_jobs_back_without_no_room() -> None:
    world = World("n1 cpu=4").job("a", cpu=1).job("b", cpu=1)
    result = world.run("enqueue, allocate", "gang holder", plugin_classes=(Holder,))
    assert result.binds == {"default/a-0": "n1"}
    assert "another job starts first" in result.pending["default/b"].message


class Finder(Plugin):
    """Finds a place for one job of which the filters know nothing, and does not need to know of other jobs."""

    name = "finder"
    asked: ClassVar[list[str]] = []

    def reserved_places(self, job: Job) -> Mapping[Task, Node] | None:
        self.asked.append(job.name)
        return None


def test_a_plugin_may_reserve_places_without_no_room() -> None:
    Finder.asked.clear()
    World("n1 cpu=4").job("a", cpu=1).job("large", cpu=5).run(
        "enqueue, allocate", "gang finder", plugin_classes=(Finder,)
    )
    assert Finder.asked == ["large"]
