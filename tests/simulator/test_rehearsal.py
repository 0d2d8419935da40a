"""In a rehearsal decisions come true, and a scheduler drives it like any other world."""

from pathlib import Path

from stromboli.engine.decisions import Evict
from stromboli.engine.policy_file import PolicyFile
from stromboli.extensions import load_catalog
from stromboli.model.status import Status
from stromboli.scheduler import Scheduler
from stromboli.testing import World
from stromboli.testing.policies import policy_text

CATALOG = load_catalog()


def policy_file(folder: Path, plugins: str) -> PolicyFile:
    path = folder / "policy.yaml"
    path.write_text(policy_text("enqueue, allocate", plugins))
    return PolicyFile(path, CATALOG)


def test_an_evicted_pod_vanishes_and_leaves_its_room() -> None:
    world = World(nodes="n1 cpu=2").job("a", cpu=2, running_on="n1")
    task = world.task("a-0")
    rehearsal = world.rehearsal
    rehearsal.carry_out([Evict("default", "a-0", task.uid, "n1", "default/a", "test")])
    assert task.status is Status.RUNNING, "what is decided comes true with the next news"
    rehearsal.news()
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


def test_the_loop_runs_once_per_period(tmp_path: Path) -> None:
    world = World(nodes="n1 cpu=1").job("a", cpu=1)
    begin = world.rehearsal.now()
    scheduler = Scheduler(world.rehearsal, policy_file(tmp_path, "gang"), CATALOG, period=2.0)
    left = iter([True, True, True, False])
    scheduler.run(lambda: next(left))
    assert world.rehearsal.now() - begin == 6.0
    assert world.task("a-0").status is Status.RUNNING


def test_a_new_policy_is_taken_over_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    said: list[str] = []
    world = World(nodes="n1 cpu=1").job("a", cpu=1)
    scheduler = Scheduler(world.rehearsal, policy_file(tmp_path, "gang"), CATALOG, say=said.append)
    scheduler.cycle()
    assert said == []
    path.write_text(policy_text("enqueue, allocate", "gnag"))
    scheduler.cycle()
    assert 'unknown plugin "gnag"; did you mean "gang"?' in said[0]
    assert said[-1] == f"{path}: the policy loaded before stays in force"
    assert [entry.name for entry in scheduler.engine.policy.plugins] == ["gang"]
    path.write_text(policy_text("enqueue, allocate", "priority gang"))
    scheduler.cycle()
    assert said[-1] == f"{path}: the new policy is in force"
    assert [entry.name for entry in scheduler.engine.policy.plugins] == ["priority", "gang"]
