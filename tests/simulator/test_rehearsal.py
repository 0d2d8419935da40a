"""In a rehearsal decisions come true."""

from stromboli.engine.decisions import Evict
from stromboli.model.status import Status
from stromboli.testing import World


def test_an_evicted_pod_vanishes_and_leaves_its_room() -> None:
    world = World(nodes="n1 cpu=2").job("a", cpu=2, running_on="n1")
    task = world.task("a-0")
    rehearsal = world.rehearsal
    rehearsal.execute([Evict("default", "a-0", task.uid, "n1", "default/a", "test")])
    assert task.status is Status.RUNNING, "what is decided comes true with the next news"
    rehearsal.sync()
    assert not rehearsal.cluster.tasks
    assert not rehearsal.cluster.nodes["n1"].tasks


def test_a_finished_pod_gives_its_room_back() -> None:
    world = World(nodes="n1 cpu=2").job("a", cpu=2, running_on="n1").job("b", cpu=2)
    world.finish("a-0")
    result = world.run(plugins="gang")
    assert result.bound_per_job == {"default/b": 1}
    assert result.phases["default/a"] == "Completed"


def test_a_failed_pod_gives_its_room_back_too() -> None:
    world = World(nodes="n1 cpu=2").job("a", cpu=2, running_on="n1").finish("a-0", failed=True)
    assert world.task("a-0").status is Status.FAILED


def test_decisions_about_a_pod_that_is_gone_are_forgotten() -> None:
    world = World(nodes="n1 cpu=2").job("a", cpu=1)
    world.run(plugins="gang")
    world.rehearsal.vanish(next(iter(world.cluster.tasks.values())))
    assert world.step().binds == {}
