"""A world in three lines is a real cluster of API objects: it runs, remembers, and answers questions."""

import pytest

from stromboli.api.errors import BadObject
from stromboli.engine.plugin import Plugin
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy import PolicyError
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.testing import World


def test_a_gang_starts_together() -> None:
    world = World(nodes="n1 cpu=4,memory=8Gi,pods=110; n2 cpu=2", queues="research weight=2; prod")
    world.job("train", queue="research", minimum=3, pods=3, cpu=1.5, priority=10)
    result = world.run(actions="enqueue, allocate", plugins="gang priority")
    assert result.bound_per_job == {"default/train": 3}
    assert set(result.binds.values()) == {"n1", "n2"}
    assert result.phases == {"default/train": "Inqueue"}
    assert result.lost == ""


def test_a_gang_without_room_for_all_binds_nothing_and_says_why() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=2").job("train", pods=3, cpu=2.5)
    result = world.run("enqueue, allocate", "gang")
    assert result.binds == {}
    assert result.why("train-1") == "0/2 nodes are unavailable: 2 Insufficient cpu."
    waiting = result.pending["default/train"]
    assert waiting.reason == "Larger than the cluster"
    assert waiting.counts == {"Insufficient cpu": 2}
    assert waiting.hint == ("it requests cpu 7500m, all nodes together have cpu 6: add nodes or request less")


def test_decisions_have_come_true_by_the_next_cycle() -> None:
    world = World(nodes="n1 cpu=2").job("a", pods=2, cpu=1).job("b", cpu=1)
    first = world.run("enqueue, allocate", "gang")
    assert first.bound_per_job == {"default/a": 2}
    second = world.step()
    assert second.binds == {}
    assert second.phases == {"default/a": "Running", "default/b": "Inqueue"}
    assert world.task("a-0").status is Status.RUNNING
    assert world.finish("a-0").step().bound_per_job == {"default/b": 1}


def test_cycles_are_told_together_and_one_by_one() -> None:
    world = World(nodes="n1 cpu=2").job("a", cpu=1)
    result = world.run("enqueue, allocate", "gang", cycles=2)
    assert result.bound_per_job == {"default/a": 1}
    assert [cycle.binds for cycle in result.cycles] == [{"default/a-0": "n1"}, {}]


def test_time_passes_between_cycles() -> None:
    seen: list[float] = []

    class Clock(Plugin):
        """Looks at the time."""

        name = "clock"

        def closing(self, session: object) -> None:
            seen.append(self.session.now)

    World().run("enqueue", "clock", plugin_classes=[Clock], cycles=3, period=5)
    assert [time - seen[0] for time in seen] == [0, 5, 10]


def test_an_own_plugin_takes_part() -> None:
    class LastFirst(Plugin):
        """The youngest job first."""

        name = "last-first"

        def job_order(self, job: Job) -> float:
            return -job.created

    world = World(nodes="n1 cpu=1").job("old", cpu=1).job("young", cpu=1)
    result = world.run(plugins="last-first | gang", plugin_classes=[LastFirst])
    assert result.bound_per_job == {"default/young": 1}


def test_a_plugin_that_raises_is_named() -> None:
    class Broken(Plugin):
        """Always fails."""

        name = "broken"

        def task_order(self, task: Task) -> int:
            raise ZeroDivisionError("oops")

        def opening(self, session: object, dirty: object) -> None:
            if world.cluster.jobs and "lost" in world.cluster.queues:
                raise ValueError("at open")

    world = World(nodes="n1 cpu=1").job("a", cpu=1)
    result = world.run("enqueue, allocate", "broken", plugin_classes=[Broken])
    assert result.failures == ["plugin 'broken' failed in task_order: ZeroDivisionError: oops"]
    world.add({"kind": "Queue", "metadata": {"name": "lost"}})
    assert world.step().lost == "plugin 'broken' failed in opening: ValueError: at open"


def test_running_pods_hold_their_nodes() -> None:
    world = World(nodes="n1 cpu=2; n2 cpu=2")
    world.job("old", pods=3, minimum=1, cpu=2, running_on="n1 n2")
    assert world.task("old-1").node is world.cluster.nodes["n2"]
    assert world.run("allocate", "gang").binds == {}


def test_roles_priorities_and_further_fields_arrive() -> None:
    world = World(nodes="n1 cpu=8 zone=a +gpu=yes:NoSchedule", queues="q capability=cpu:4 state=Closed")
    world.job(
        "mpi",
        roles={"master": 1, "worker": 2},
        role_minimums={"worker": 1},
        minimum=2,
        cpu=1,
        gpu=1,
        priority=-5,
        queue="q",
        min_resources={"cpu": 2},
        labels={"app": "mpi"},
        annotations={"note": "x"},
        spec={"nodeSelector": {"zone": "a"}},
    )
    task = world.task("mpi-2")
    assert (task.role, task.priority, task.label_set.labels) == ("worker", -5, {"app": "mpi"})
    assert task.shape.spec.node_selector == {"zone": "a"}
    assert task.job is not None
    assert (task.job.priority, task.job.minimum) == (-5, 2)
    assert (task.job.role_minimums, task.job.min_resources) == ({"worker": 1}, {0: 2000})
    assert not world.cluster.queues["q"].open
    node = world.cluster.nodes["n1"].object
    assert node is not None
    assert [taint.key for taint in node.spec.taints] == ["gpu"]


def test_any_object_may_be_added_and_a_bad_one_is_refused() -> None:
    world = World().add({"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": 1}}})
    assert "n" in world.cluster.nodes
    with pytest.raises(BadObject, match="must not be negative"):
        world.add({"kind": "Node", "metadata": {"name": "m"}, "status": {"capacity": {"cpu": -1}}})
    with pytest.raises(ValueError, match="does not read"):
        world.add({"kind": "Sandwich", "metadata": {"name": "m"}})


def test_a_whole_policy_or_a_preset_may_be_given() -> None:
    world = World(nodes="n1 cpu=1").job("a", cpu=1)
    assert world.run(policy="basic").bound_per_job == {"default/a": 1}
    assert World(nodes="n1 cpu=1").job("a", cpu=1).run(policy='actions: "enqueue"').binds == {}
    with pytest.raises(PolicyError, match="did you mean"):
        World().run(plugins="gnag")
    with pytest.raises(ValueError, match="either"):
        World().run(plugins="gang", policy="basic")
    with pytest.raises(LookupError, match='there is no preset "bsic"; did you mean "basic"'):
        World().run(policy="bsic")


def test_mistakes_in_the_short_notation_are_told() -> None:
    with pytest.raises(ValueError, match="expected amounts such as cpu=4"):
        nodes("n1 cpu")
    with pytest.raises(ValueError, match="unknown field 'wieght=2'"):
        queues("q wieght=2")
    with pytest.raises(TypeError, match="job a: unknown term 'cpus'; did you mean \"cpu\""):
        World().job("a", cpus=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="node n1 is defined twice"):
        World(nodes="n1 cpu=1; n2 cpu=1; n1 cpu=2")
    with pytest.raises(ValueError, match="queue q is defined 3 times"):
        queues("q; q; q")
    with pytest.raises(ValueError, match="job a: running_on names 2 nodes for 1 pods"):
        World(nodes="n1 cpu=1").job("a", running_on="n1 n1")
    with pytest.raises(LookupError, match="no pod 'x'"):
        World().task("x")


def test_a_second_job_of_a_name_is_refused() -> None:
    world = World(nodes="n1 cpu=1").job("a", cpu=1).job("a", namespace="other")
    with pytest.raises(ValueError, match="there is a job default/a already; use `add`"):
        world.job("a", cpu=2)


def test_running_on_a_node_that_is_not_there_must_be_meant() -> None:
    world = World(nodes="node-1 cpu=1")
    with pytest.raises(
        ValueError, match='job a: running_on: there is no node "nod-1"; did you mean "node-1"'
    ):
        world.job("a", running_on="nod-1")
    assert "default/a-0" not in {task.key for task in world.cluster.tasks.values()}, "nothing of it is there"
    task = world.job("a", running_on="gone", unknown_nodes=True).task("a-0")
    assert task.node is not None
    assert task.node.name == "gone"


def test_the_same_world_gives_the_same_decisions() -> None:
    def decided() -> list[object]:
        world = World(nodes="\n".join(f"n{i} cpu=4" for i in range(5)))
        for i in range(6):
            world.job(f"j{i}", pods=3, cpu=1)
        return list(world.run(plugins="gang").decisions)

    assert decided() == decided()


def test_scores_and_refusals_of_one_plugin_can_be_asked_for() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=2 +dedicated=ml:NoSchedule").job("a", pods=3, cpu=2)
    world.run(plugins="gang predicates binpack")
    assert world.scores("binpack", "a-0") == {"n1": 50.0, "n2": 100.0}
    assert world.refusals("predicates", "a-0") == {"n1": "", "n2": "node(s) had untolerated taint(s)"}
    assert world.plugin("gang").job_ready(world.task("a-0").job) is False


def test_a_cycle_may_be_at_any_time_and_an_object_may_be_removed() -> None:
    world = World(nodes="n1 cpu=4").job("a", cpu=1)
    world.remove({"kind": "Node", "metadata": {"name": "n1"}})
    assert world.step(now=1_800_000_000.0).binds == {}
    assert world.engine.rules.plugins[0].session.now == 1_800_000_000.0


def test_features_and_services_reach_the_session() -> None:
    world = World(features=["Some"], services={"answer": 42})
    session = world.step().outcome.session
    assert ("Some" in session.features, session.services) == (True, {"answer": 42})


def test_a_session_outside_of_any_cycle_sees_the_cluster_and_asks_the_plugins_given() -> None:
    class Shy(Plugin):
        name = "shy"

        def job_ready(self, job: Job) -> bool:
            return False

    world = World(nodes="n1 cpu=4").job("a", cpu=1)
    session, job = world.session(Shy), world.task("a-0").job
    assert (list(session.jobs()), session.rules.job_ready(job)) == ([job], False)
    assert world.session().rules.job_ready(job)
