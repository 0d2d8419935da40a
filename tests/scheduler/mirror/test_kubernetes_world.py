"""A real cluster as the scheduling loop sees it: failed writes are undone, partial gangs completed or evicted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import structs

from stromboli.api.types.meta import Condition, Object
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import Bind, Decision, Event, Evict, PodCondition, PodGroupStatus, QueueStatus
from stromboli.extensions import load_catalog
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.policy.policy import default_policy
from stromboli.scheduler.mirror.kubernetes_world import PATIENCE, KubernetesWorld
from stromboli.scheduler.mirror.news import News
from stromboli.scheduler.writes.write_orders import DecisionOrders, WriteFailure, WriteOrder
from stromboli.scheduling_loop import Scheduler
from tests.manifests import EPOCH, decoded, group, hyper_node, node, pod, queue

NOW = datetime(2026, 1, 2, tzinfo=UTC).timestamp()


class Mirror:
    def __init__(self) -> None:
        self.intake = Intake()
        self.news = News()
        self.incoming: list[Any] = []
        self.applied = 0

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster

    def sync(self, noting: bool = True) -> None:
        for obj in self.incoming:
            self.intake.put(obj if isinstance(obj, Object) else decoded(obj))
        self.incoming.clear()
        self.cluster.settle()

    def rebuild(self) -> None:
        self.intake.rebuild()

    def report_again(self) -> None:
        raise AssertionError("nobody takes over here")


class Story:
    def __init__(self, minimum: int = 2, members: int = 2) -> None:
        self.mirror = Mirror()
        self.orders: list[WriteOrder] = []
        orders = DecisionOrders(self.mirror)
        self.now = NOW
        self.wrong_by = 0.0
        self.world = KubernetesWorld(
            self.mirror,
            lambda decisions: self.orders.extend(orders.of(decisions)),
            wall=lambda: self.now + self.wrong_by,
            clock=lambda: self.now,
        )
        self.mirror.incoming += [
            queue(),
            node("n1"),
            group("web", minimum),
            *(pod(f"web-{n}", "web") for n in range(members)),
        ]
        self.sync()

    def sync(self, *objects: Any) -> list[Decision]:
        self.orders.clear()
        self.mirror.incoming += objects
        self.world.sync()
        return [order.decision for order in self.orders]

    def task(self, name: str) -> Any:
        return next(task for task in self.world.cluster.tasks.values() if task.name == name)

    def bind(self, name: str) -> Bind:
        """A cycle decided to bind it."""
        task, cluster = self.task(name), self.world.cluster
        cluster.move(task, Status.BINDING, cluster.nodes["n1"])
        return Bind(task.namespace, task.name, task.uid, "n1", task.job.key)

    def bound(self, name: str, running: bool = False) -> Pod:
        """Its pod as the watch shows it once it is bound."""
        since = datetime.fromtimestamp(self.now, UTC)
        scheduled = Condition("PodScheduled", "True", last_transition_time=since)
        phase = "Running" if running else "Pending"
        return decoded(pod(name, "web", on="n1", phase=phase, status={"conditions": [scheduled]}))


def test_a_failed_bind_is_pending_again_and_its_pod_is_told_why() -> None:
    story = Story()
    bind = story.bind("web-0")
    story.world.failed(WriteFailure(bind, "not allowed"))
    condition, event = story.sync()
    assert story.task("web-0").status is Status.PENDING
    assert story.task("web-0").node is None
    assert isinstance(condition, PodCondition)
    assert (condition.reason, condition.message) == (
        "SchedulerError",
        "failed to bind to node n1: not allowed",
    )
    assert isinstance(event, Event)
    assert event.reason == "FailedScheduling"
    assert story.orders[1].uid == bind.uid


def test_a_bind_that_failed_because_its_pod_is_gone_tells_nobody() -> None:
    story = Story()
    story.world.failed(WriteFailure(story.bind("web-0"), "gone", gone=True))
    assert story.sync() == []
    assert story.task("web-0").status is Status.PENDING


def test_a_pod_that_is_deleted_while_we_bind_it_leaves_its_node_when_the_bind_fails() -> None:
    story = Story()
    bind = story.bind("web-0")
    story.sync(pod("web-0", "web", terminating=True))
    assert story.task("web-0").node is story.world.cluster.nodes["n1"]
    story.world.failed(WriteFailure(bind, "the pod is being deleted"))
    assert story.sync() == []
    assert (story.task("web-0").status, story.task("web-0").node) == (Status.RELEASING, None)
    assert not story.world.cluster.nodes["n1"].tasks


def test_binds_of_a_job_of_which_one_needs_a_write_first_go_together() -> None:
    story = Story(members=3)
    plain = [story.bind("web-0"), story.bind("web-1")]
    story.world.execute(plain)
    assert all(order.member is None for order in story.orders)
    story.orders.clear()
    claim = VolumeGrant("default", "data", "u")
    story.world.execute([structs.replace(plain[0], grants=(claim,)), plain[1]])
    first, second = (order.member for order in story.orders)
    assert first is not None
    assert second is not None
    assert first.gang is second.gang
    assert first.gang.job == story.task("web-0").job.id
    assert first.gang.unready == {bind.uid for bind in plain}
    assert first.node is story.world.cluster.nodes["n1"].object


def test_failures_that_are_told_together_are_undone_together() -> None:
    """However often each of them has failed before."""
    story = Story()
    for _ in range(2):
        story.world.failed(WriteFailure(story.bind("web-0"), "no"))
        story.now += 10.0
        story.sync()
    story.world.failed(*(WriteFailure(story.bind(name), "no") for name in ("web-0", "web-1")))
    story.sync()
    assert {task.status for task in story.world.cluster.tasks.values()} == {Status.BINDING}
    story.now += 10.0
    story.sync()
    assert {task.status for task in story.world.cluster.tasks.values()} == {Status.PENDING}


def test_pods_beyond_the_minimum_of_a_job_can_be_spared() -> None:
    story = Story(minimum=2, members=3)
    claim = VolumeGrant("default", "data", "u")
    binds = [structs.replace(story.bind(f"web-{number}"), grants=(claim,)) for number in range(3)]
    story.world.execute(binds)
    member = story.orders[0].member
    assert member is not None
    assert member.gang.spare == 1


@pytest.mark.parametrize(("bound", "spare"), [(1, 0), (2, 1), (3, 2)])
def test_pods_that_were_bound_earlier_count_towards_the_minimum(bound: int, spare: int) -> None:
    story = Story(minimum=3, members=bound + 2)
    story.sync(*(story.bound(f"web-{number}", running=True) for number in range(bound)))
    claim = VolumeGrant("default", "data", "u")
    rest = [structs.replace(story.bind(f"web-{number}"), grants=(claim,)) for number in (bound, bound + 1)]
    story.world.execute(rest)
    member = story.orders[0].member
    assert member is not None
    assert (member.gang.spare, len(member.gang.unready)) == (spare, 2)


def test_a_node_that_goes_while_pods_are_bound_to_it_is_forgotten_once_the_binds_have_failed() -> None:
    story = Story()
    binds = [story.bind("web-0"), story.bind("web-1")]
    story.mirror.intake.drop(decoded(node("n1")))
    assert "n1" in story.world.cluster.nodes
    story.world.failed(*(WriteFailure(bind, "node n1 is gone") for bind in binds))
    story.sync()
    assert {task.status for task in story.world.cluster.tasks.values()} == {Status.PENDING}
    assert "n1" not in story.world.cluster.nodes


def test_a_bind_whose_task_is_gone_is_prepared_all_the_same() -> None:
    story = Story()
    bind = structs.replace(story.bind("web-0"), grants=(VolumeGrant("default", "data", "u"),))
    story.mirror.intake.drop(decoded(pod("web-0", "web")))
    story.world.execute([bind])
    assert story.orders[0].member is not None


def test_pods_of_a_gang_that_was_given_up_are_told_of_the_pod_that_failed_and_why() -> None:
    story = Story()
    for name in ("web-0", "web-1"):
        failure = WriteFailure(story.bind(name), "binding volumes: no", unprepared="default/web-1")
        story.world.failed(failure)
    texts = {decision.message for decision in story.sync() if isinstance(decision, PodCondition)}
    assert texts == {"execute preBind for pod default/web-1 failed: binding volumes: no, resync the task"}
    assert {task.status for task in story.world.cluster.tasks.values()} == {Status.PENDING}


def test_a_failure_that_the_watch_has_overtaken_changes_nothing() -> None:
    story = Story()
    bind = story.bind("web-0")
    story.world.failed(WriteFailure(bind, "too late"))
    assert story.sync(story.bound("web-0")) == []
    assert story.task("web-0").status is Status.BOUND


def evicting(story: Story) -> Evict:
    story.sync(story.bound("web-0", running=True))
    task = story.task("web-0")
    story.world.cluster.move(task, Status.RELEASING, task.node)
    evict = Evict(task.namespace, task.name, task.uid, "n1", task.job.key, "preempt")
    story.world.execute([evict])
    return evict


def test_an_evicted_pod_is_leaving_whatever_an_echo_says() -> None:
    story = Story()
    evicting(story)
    story.sync(story.bound("web-0", running=True))
    assert story.task("web-0").status is Status.RELEASING


def test_an_eviction_that_failed_leaves_the_task_where_it_was() -> None:
    story = Story()
    story.world.failed(WriteFailure(evicting(story), "no"))
    story.sync()
    assert story.task("web-0").status in (Status.RUNNING, Status.BOUND)
    story.sync(story.bound("web-0", running=True))
    assert story.task("web-0").status is Status.RUNNING


def test_an_eviction_that_failed_while_the_node_was_lost_is_forgotten() -> None:
    story = Story()
    evict = evicting(story)
    story.sync(pod("web-0", "web", on="n1", phase="Unknown"))
    story.world.failed(WriteFailure(evict, "no"))
    story.sync()
    story.sync(story.bound("web-0", running=True))
    assert story.task("web-0").status is Status.RUNNING


def test_an_eviction_that_is_always_refused_is_tried_less_and_less_often() -> None:
    story = Story()
    times = []
    for _ in range(4):
        story.world.failed(WriteFailure(evicting(story), "no"))
        began = story.now
        story.sync()
        while story.task("web-0").status is Status.RELEASING:
            story.now += 1.0
            story.sync()
        times.append(story.now - began)
    assert times == [0.0, 1.0, 2.0, 4.0]


def test_orders_know_the_uid_of_their_group_and_what_stands_there() -> None:
    story = Story()
    story.world.execute(
        [
            PodGroupStatus("default", "web", "Running", 0, 0, 0),
            Event("PodGroup", "default", "web", "Normal", "Scheduled", "m"),
            QueueStatus("default", {}),
            Event("Queue", "", "default", "Warning", "PolicyWarning", "m"),
            Event("Queue", "", "nowhere", "Warning", "PolicyWarning", "m"),
        ]
    )
    uid, queue = story.task("web-0").job.group.metadata.uid, story.world.cluster.queues["default"].object
    assert queue is not None
    assert [order.uid for order in story.orders] == [uid, uid, "", queue.metadata.uid, ""]


def test_an_event_about_a_hyper_node_goes_to_that_very_object() -> None:
    story = Story()
    rack = hyper_node("rack", 1, nodes=["n1"])
    rack["metadata"]["uid"] = "of-rack"
    story.sync(rack)
    story.world.execute(
        [Event("HyperNode", "", name, "Warning", "HyperNodeLeftOut", "m") for name in ("rack", "nowhere")]
    )
    assert [order.uid for order in story.orders] == ["of-rack", ""]


def test_a_gang_that_stays_torn_is_released_as_a_whole() -> None:
    story = Story(minimum=3, members=3)
    story.sync(story.bound("web-0"), story.bound("web-1", running=True))
    story.now += PATIENCE - 1
    assert story.sync() == []
    story.now += 2
    event, *evictions = story.sync()
    assert isinstance(event, Event)
    assert [decision.name for decision in evictions if isinstance(decision, Evict)] == ["web-0", "web-1"]
    assert story.task("web-0").status is Status.RELEASING


def test_a_gang_that_becomes_whole_in_time_stays() -> None:
    story = Story(minimum=2, members=2)
    story.sync(story.bound("web-0"))
    story.now += PATIENCE / 2
    story.sync(story.bound("web-1"))
    story.now += PATIENCE
    assert story.sync() == []


def test_a_gang_that_loses_a_member_later_is_not_torn() -> None:
    story = Story(minimum=2, members=3)
    story.sync(story.bound("web-0"), story.bound("web-1"))
    story.mirror.intake.drop(story.bound("web-1"))
    story.now += 1
    story.sync(story.bound("web-0", running=True))
    story.now += PATIENCE * 2
    assert story.sync() == []


def test_a_gang_whose_missing_member_came_after_the_others_were_bound_is_not_torn() -> None:
    story = Story(minimum=2, members=1)
    story.sync(story.bound("web-0"))
    story.sync(pod("web-1", "web", created=story.now + 5 - EPOCH))
    story.now += PATIENCE * 2
    assert story.sync() == []


def test_a_bind_that_keeps_failing_is_tried_again_ever_more_slowly() -> None:
    story = Story()
    pauses = []
    for _ in range(5):
        story.world.failed(WriteFailure(story.bind("web-0"), "no"))
        began = story.now
        story.sync()
        while story.task("web-0").status is Status.BINDING:
            story.now += 0.5
            story.sync()
        pauses.append(story.now - began)
    assert pauses == [0.0, 1.0, 2.0, 4.0, 8.0]
    story.sync(story.bound("web-0"))
    story.mirror.intake.drop(story.bound("web-0"))
    story.sync(pod("web-0", "web"))
    story.world.failed(WriteFailure(story.bind("web-0"), "no"))
    story.sync()
    assert story.task("web-0").status is Status.PENDING


def test_a_clock_that_is_set_back_or_forth_neither_holds_a_pod_up_nor_tears_a_gang_apart() -> None:
    story = Story(minimum=3, members=3)
    for _ in range(2):
        story.world.failed(WriteFailure(story.bind("web-0"), "no"))
        story.sync()
    story.wrong_by = -86_400.0
    story.now += 1
    story.sync()
    assert story.task("web-0").status is Status.PENDING
    story.wrong_by = 0.0
    story.sync(story.bound("web-1"))
    story.wrong_by = PATIENCE * 2
    assert story.sync() == []
    assert story.task("web-1").status is Status.BOUND


def test_an_event_about_the_owner_of_a_group_goes_to_that_very_object() -> None:
    story = Story()
    event = Event(
        "Job", "default", "web", "Warning", "Unschedulable", "why", "batch.volcano.sh/v1alpha1", "u-1"
    )
    story.world.execute([event])
    (order,) = story.orders
    assert (order.uid, order.api_version) == ("u-1", "batch.volcano.sh/v1alpha1")


def test_whoever_stands_by_keeps_in_step_and_decides_nothing() -> None:
    """Not even over a gang that was partial long ago."""
    story = Story()
    story.mirror.incoming += [story.bound("web-0")]
    for _ in range(3):
        story.world.follow()
        story.now += 10 * PATIENCE
    assert story.task("web-0").status is Status.BOUND
    assert not story.orders
    assert not story.world.cluster.dirty.jobs
    assert story.world.cluster.dirty.everything


def test_an_event_that_cannot_be_made_takes_no_decision_with_it() -> None:
    story = Story()
    hostile = Event(["PodGroup"], "default", "web", "Warning", "Unschedulable", "m")  # type: ignore[arg-type]
    bind = story.bind("web-0")
    story.world.execute([hostile, bind])
    assert [order.decision for order in story.orders] == [bind]


def test_a_model_that_cannot_be_settled_is_rebuilt_before_the_next_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    story.bind("web-0")
    broken = story.world.cluster
    monkeypatch.setattr(broken.columns, "arrange", None)
    broken.layout_stale = True
    scheduler = Scheduler(story.world, default_policy(load_catalog()), load_catalog())
    monkeypatch.setattr(story.mirror, "sync", lambda noting=True: None)
    outcome = scheduler.cycle()
    assert outcome.lost is not None
    story.world.note_outcome(outcome)
    assert story.world.cluster is not broken
    assert scheduler.cycle().lost is None
    assert story.task("web-0").status is Status.BINDING
