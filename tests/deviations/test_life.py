"""Where queues, policies, plugins and events live differently than in Volcano: docs/deviations.md."""

from pathlib import Path

import pytest

from stromboli.engine.catalog import action
from stromboli.engine.decisions import Decision, Event, PodCondition, PodGroupStatus
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.extensions import load_catalog
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.policy.policy import PolicyError, load_policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing import World
from stromboli.testing.policy_text import catalog_with

PLACE = "enqueue, allocate"


@pytest.mark.parametrize(("state", "bound"), [("", 1), ("Open", 1), ("Closed", 0), ("Closing", 0)])
def test_a_queue_without_a_state_is_open(state: str, bound: int) -> None:
    """In Volcano it takes nobody before a controller has written its state (spec 02 D17)."""
    world = World(nodes="n1 cpu=1", queues=f"fresh state={state}")
    world.job("j", queue="fresh", cpu=1, min_resources={"cpu": 1})
    assert len(world.run(PLACE, "gang | proportion").binds) == bound


def test_what_stands_there_already_is_not_told_again() -> None:
    """Volcano writes an Unschedulable event per waiting job and cycle."""
    world = World(nodes="n1 cpu=1").job("big", cpu=2)
    first = world.run(PLACE, "gang")
    assert {event.reason for event in _events(first.decisions)} == {"Unschedulable", "FailedScheduling"}
    assert world.step(3).decisions == []
    world.add({"kind": "Node", "metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": 1}}})
    assert world.step().decisions == []  # another node, and still none has the cpu
    world.add({"kind": "Node", "metadata": {"name": "n3"}, "status": {"allocatable": {"cpu": 2}}})
    world.job("old", cpu=1, running_on="n3")
    again = world.step().decisions  # it would fit now, were the cpu free
    assert any(isinstance(decision, PodCondition) and "wait until" in decision.message for decision in again)


def test_why_a_job_waits_is_one_sentence_with_volcanos_words_behind_it() -> None:
    """Volcano says `pod group is not ready, 6 Pending, 6 minAvailable; Pending: 6 Unschedulable` and nothing else."""
    world = World(nodes="n1 cpu=16; n2 cpu=16", queues="q; r")
    world.job("old", queue="q", pods=3, cpu=8, running_on="n1 n2 n2").job("other", queue="r", pods=2, cpu=9)
    world.job("train", queue="q", pods=6, cpu=5)
    sentence = (
        'PodGroup train waits: the deserved share of queue "q" has too little cpu left; wait for '
        "jobs to end or raise its weight"
    )
    decisions = world.run(PLACE, "gang | proportion").decisions
    (status,) = [d for d in decisions if isinstance(d, PodGroupStatus) and d.name == "train"]
    volcano = "6/6 tasks in gang unschedulable: pod group is not ready, 6 Pending, 6 minAvailable"
    assert [condition.message for condition in status.conditions] == [f"{sentence} ({volcano})"]
    pods = [d.message for d in decisions if isinstance(d, PodCondition) and d.name.startswith("train")]
    assert pods == [f"{sentence} (pod group is not ready)"] * 6


def test_every_pod_of_a_gang_that_waits_is_unschedulable_to_autoscalers() -> None:
    """Volcano writes `Schedulable` on the pods that fit: autoscalers add nodes for the others only (volcano#3976)."""
    world = World(nodes="n1 cpu=4").job("old", cpu=1, running_on="n1").job("gang", pods=4, cpu=1)
    conditions = [d for d in world.run(PLACE, "gang").decisions if isinstance(d, PodCondition)]
    assert len({condition.message for condition in conditions}) == 2  # three would fit, the fourth does not
    assert [condition.reason for condition in conditions] == ["Unschedulable"] * 4


def test_a_job_that_is_not_let_in_says_so_before_it_has_pods() -> None:
    """In Volcano only a PodGroup with pods gets the condition, and its pods are made once it is let in."""
    world = World(nodes="n1 cpu=4", queues="q capability=cpu:2")
    world.job("train", queue="q", pods=0, minimum=3, min_resources={"cpu": 3})
    decisions = world.run(PLACE, "gang | proportion").decisions
    (status,) = [decision for decision in decisions if isinstance(decision, PodGroupStatus)]
    (condition,) = status.conditions
    assert (status.phase, condition.type) == ("Pending", "Unschedulable")
    assert condition.message.startswith(
        'PodGroup train waits: not admitted to queue "q": queue resource quota insufficient: '
        'insufficient cpu; raise the capability of queue "q" (cpu 2) ('
    )


def _events(decisions: list[Decision]) -> list[Event]:
    return [decision for decision in decisions if isinstance(decision, Event)]


def test_a_key_that_volcano_would_silently_ignore_is_told() -> None:
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n      binpack.wieght: 5\n'
    with pytest.raises(PolicyError, match=r'policy:6: .*did you mean "binpack.weight"'):
        load_policy(text, load_catalog())
    lenient = load_policy(text, load_catalog(), lenient=True)
    assert "binpack.wieght" in lenient.warnings[0]


def test_a_key_that_is_removed_from_the_file_has_its_default_again(tmp_path: Path) -> None:
    """In Volcano an action keeps the value until it is restarted (spec 02 D14)."""
    file = tmp_path / "policy.yaml"
    configured = "configurations:\n- name: allocate\n  arguments:\n    predicateErrorCacheEnable: false\n"
    file.write_text(f'actions: "allocate"\n{configured}')
    policy = PolicyFile(file, load_catalog())
    assert policy.current.configurations["allocate"].predicate_error_cache is False
    file.write_text('actions: "allocate"\n')
    policy.refresh()
    assert policy.current.configurations["allocate"].predicate_error_cache is True


def test_an_action_is_told_when_it_enters_and_when_it_leaves_the_policy(tmp_path: Path) -> None:
    """Volcano has these hooks and never calls them (spec 02 D14)."""
    calls: list[str] = []

    @action("wave", initialise=lambda: calls.append("hello"), uninitialise=lambda: calls.append("goodbye"))
    def wave(session: Session) -> None:
        """Do nothing."""

    file = tmp_path / "policy.yaml"
    file.write_text('actions: "wave"\n')
    catalog = catalog_with([], [wave])
    scheduler = Scheduler(Rehearsal(), PolicyFile(file, catalog), catalog, warn=lambda text: None)
    scheduler.cycle()
    assert calls == ["hello"]
    file.write_text('actions: "allocate"\n')
    scheduler.cycle()
    assert calls == ["hello", "goodbye"]


class Picky(Plugin):
    """Fails over one job, or always."""

    name = "picky"
    victim = "bad"

    def job_order(self, job: Job) -> int:
        if self.victim in (job.name, "everybody"):
            raise RuntimeError("no opinion")
        return 0

    def allocatable(self, queue: object, task: Task) -> bool:
        if self.victim == "limits":
            raise RuntimeError("no idea")
        return True


def test_a_plugin_that_fails_over_one_job_costs_that_job_alone() -> None:
    """In Volcano a panic ends the process."""
    world = World(nodes="n1 cpu=4").job("bad", cpu=1).job("good", cpu=1)
    result = world.run(PLACE, "picky", plugin_classes=[Picky])
    assert result.bound_per_job == {"default/good": 1}
    assert result.why("bad-0") == "plugin 'picky' failed in job_order: RuntimeError: no opinion"


def test_an_order_that_fails_for_all_jobs_three_times_in_a_row_is_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Picky, "victim", "everybody")
    world = World(nodes="n1 cpu=4").job("j", cpu=1).job("k", cpu=1)
    result = world.run(PLACE, "picky", plugin_classes=[Picky], cycles=4)
    assert [len(cycle.binds) for cycle in result.cycles] == [0, 0, 0, 2]


def test_a_limit_that_fails_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Picky, "victim", "limits")
    world = World(nodes="n1 cpu=4").job("j", cpu=1)
    assert world.run(PLACE, "picky", plugin_classes=[Picky], cycles=5).binds == {}


def test_a_cycle_that_breaks_half_way_is_taken_back() -> None:
    """Volcano has sent some of its decisions by then."""

    class LastStraw(Plugin):
        """Fails when all is done."""

        name = "last-straw"

        def closing(self, session: Session) -> None:
            raise RuntimeError("at close")

    world = World(nodes="n1 cpu=4").job("j", cpu=1)
    result = world.run(PLACE, "last-straw", plugin_classes=[LastStraw])
    assert result.lost == "plugin 'last-straw' failed in closing: RuntimeError: at close"
    assert result.decisions == []
    assert world.cluster.columns.used.sum() == 0


def test_who_cannot_be_helped_is_not_tried_again() -> None:
    """Volcano tries everybody in every cycle; here a job is tried when there could be room for it, or it changed."""
    tried: list[str] = []

    class Noting(Plugin):
        name = "noting"

        def job_valid(self, job: Job) -> None:
            tried.append(job.name)

    world = World("n1 cpu=4").job("waits", cpu=3).job("runs", cpu=2, running_on="n1")
    world.run(PLACE, "gang noting | predicates", plugin_classes=(Noting,), cycles=2)
    tried.clear()
    world.job("late", cpu=1).step()
    assert tried == ["late"]
    assert world.finish("runs-0").step().binds == {"default/waits-0": "n1"}
