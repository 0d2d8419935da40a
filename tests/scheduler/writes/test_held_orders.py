"""What is held back: sent once nothing newer comes, never when it is no longer true, and never later than a bound."""

from __future__ import annotations

import pytest

from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    GroupCondition,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from stromboli.model.job import JobId
from stromboli.scheduler.writes.held_orders import HOLD, MAX_HOLD, HeldOrders
from stromboli.scheduler.writes.write_orders import FAILED_BIND, WriteOrder
from tests.kube.fake_api import Clock

GROUP = JobId("PodGroup", "ns", "web")
BIND = Bind("ns", "web-0", "u1", "n1", "ns/web")


def waits(message: str, nominated: str = "") -> PodCondition:
    return PodCondition("ns", "web-0", "u1", "Unschedulable", message, nominated)


def pod_event(message: str) -> Event:
    return Event("Pod", "ns", "web-0", "Warning", "FailedScheduling", message)


def group_event(message: str, topic: str = "outcome") -> Event:
    return Event(*GROUP, "Warning", "Unschedulable", message, topic=topic, job=GROUP)


def owner_event(message: str, group: JobId = GROUP) -> Event:
    identity = ("batch.volcano.sh/v1alpha1", "ju", "owner", group)
    return Event("Job", "ns", "train", "Warning", "Unschedulable", message, *identity)


def status(phase: str, *types: str) -> PodGroupStatus:
    conditions = tuple(GroupCondition(type, "True", "why", phase, "7") for type in types)
    return PodGroupStatus("ns", "web", phase, 0, 0, 0, conditions)


class Held:
    """Held orders, with the time as a test sets it and what was released."""

    def __init__(self) -> None:
        self.clock = Clock(0.0)
        self.released: list[WriteOrder] = []
        self.orders = HeldOrders(self.released.append, self.clock)

    def add(self, *decisions: Decision | WriteOrder) -> list[Decision]:
        """What is released at once."""
        for decision in decisions:
            self.orders.add(decision if isinstance(decision, WriteOrder) else WriteOrder(decision))
        return self._sent()

    def wait(self, seconds: float) -> list[Decision]:
        """What is released by then."""
        self.clock.now += seconds
        self.orders.release_due()
        return self._sent()

    def _sent(self) -> list[Decision]:
        sent = [order.decision for order in self.released]
        self.released.clear()
        return sent


@pytest.mark.parametrize(
    "decision",
    [
        BIND,
        Evict("ns", "old-0", "u2", "n1", "ns/old", "preempt"),
        Event("Pod", "ns", "web-0", "Normal", "Scheduled", "to n1"),
        waits("room is being made", nominated="n1"),
        status("Running", "Moved"),
        NativeGroupCondition("ns", "web", "True", "Scheduled", ""),
    ],
    ids=lambda decision: type(decision).__name__,
)
def test_what_somebody_acts_on_is_sent_at_once(decision: Decision) -> None:
    held = Held()
    assert held.add(decision) == [decision]
    assert held.wait(MAX_HOLD) == []


@pytest.mark.parametrize(
    "decision",
    [
        waits("no room"),
        pod_event("no room"),
        group_event("no room"),
        owner_event("no room"),
        status("Pending", "Unschedulable"),
        status("Running", "Scheduled"),
        QueueStatus("default", {"cpu": "1"}),
        NativeGroupCondition("ns", "web", "False", "Unschedulable", "no room"),
    ],
    ids=lambda decision: f"{type(decision).__name__} {getattr(decision, 'kind', '')}".strip(),
)
def test_what_a_newer_decision_may_replace_waits_a_moment(decision: Decision) -> None:
    held = Held()
    assert held.add(decision) == []
    assert len(held.orders) == 1
    assert held.wait(HOLD - 0.1) == []
    assert held.wait(0.2) == [decision]
    assert len(held.orders) == 0
    assert held.wait(MAX_HOLD) == []


def test_the_status_that_a_controller_waits_for_is_sent_at_once_with_all_that_was_held_of_it() -> None:
    held = Held()
    held.add(status("Pending", "Unschedulable"))
    (sent,) = held.add(WriteOrder(status("Inqueue"), awaited=True))
    assert isinstance(sent, PodGroupStatus)
    assert (sent.phase, [entry.type for entry in sent.conditions]) == ("Inqueue", ["Unschedulable"])
    assert held.wait(MAX_HOLD) == []


def test_news_that_keeps_coming_is_sent_after_a_bound_and_not_each_time() -> None:
    held = Held()
    sent: list[Decision] = []
    for number in range(100):
        sent += held.add(waits(f"{number} Pending"))
        sent += held.wait(0.125)
    assert [condition.message for condition in sent] == ["39 Pending", "79 Pending"]  # type: ignore[attr-defined]


def test_a_pod_that_was_bound_meanwhile_is_not_told_that_it_waits() -> None:
    held = Held()
    assert held.add(waits("no room"), pod_event("no room"), BIND) == [BIND]
    assert held.wait(MAX_HOLD) == []


def test_a_bind_that_failed_is_told_though_the_pod_is_bound_again_at_once() -> None:
    held = Held()
    failed = PodCondition("ns", "web-0", "u1", "SchedulerError", "trouble")
    event = Event("Pod", "ns", "web-0", "Warning", "FailedScheduling", "trouble", topic=FAILED_BIND)
    orders = [WriteOrder(failed), WriteOrder(event)]
    assert held.add(*orders, BIND) == [failed, event, BIND]
    assert not any(order.overtaken for order in orders)


def test_a_gang_that_arrived_within_a_moment_hears_nothing_of_it() -> None:
    held = Held()
    held.add(status("Pending", "Unschedulable"), group_event("3 of 20"), owner_event("3 of 20"))
    held.wait(0.5)
    held.add(status("Inqueue", "Scheduled"))
    held.wait(0.5)
    held.add(status("Running", "Scheduled"))
    (sent,) = held.wait(HOLD)
    assert isinstance(sent, PodGroupStatus)
    assert (sent.phase, [entry.type for entry in sent.conditions]) == ("Running", ["Scheduled"])


def test_the_status_of_a_gang_that_is_being_bound_waits_until_its_binds_have_come_back() -> None:
    held = Held()
    held.add(status("Inqueue", "Scheduled"))
    assert held.wait(3 * HOLD) == []
    running = status("Running", "Scheduled")
    held.add(running)
    assert held.wait(HOLD) == [running]
    held.add(status("Inqueue", "Scheduled"))
    assert held.wait(MAX_HOLD) == [status("Inqueue", "Scheduled")]


def test_a_gang_that_really_waits_is_told_once() -> None:
    held = Held()
    waiting = [status("Pending", "Unschedulable"), group_event("no room"), owner_event("no room")]
    assert held.add(*waiting) == []
    assert held.wait(HOLD) == waiting


def test_a_job_that_was_let_in_is_no_longer_told_that_it_was_not() -> None:
    held = Held()
    gate, outcome = group_event("overused cpu", "gate:overcommit"), group_event("no room")
    held.add(gate, outcome, status("Inqueue", "Unschedulable"))
    assert gate not in (sent := held.wait(HOLD))
    assert outcome in sent


def test_a_later_event_on_a_topic_takes_the_place_of_an_earlier_one() -> None:
    held = Held()
    held.add(group_event("3 of 20"), group_event("overused", "gate:overcommit"), group_event("no room"))
    assert held.wait(HOLD) == [group_event("no room"), group_event("overused", "gate:overcommit")]


def test_events_of_one_owner_about_two_groups_do_not_replace_each_other() -> None:
    held, other = Held(), JobId("PodGroup", "ns", "other")
    held.add(owner_event("web waits"), owner_event("other waits", other))
    assert held.wait(HOLD) == [owner_event("web waits"), owner_event("other waits", other)]
    held.add(owner_event("web still waits"), owner_event("other still waits", other))
    held.add(status("Running", "Scheduled"))
    assert owner_event("other still waits", other) in held.wait(HOLD)


def test_an_event_that_waits_for_its_turn_can_still_be_overtaken() -> None:
    held = Held()
    order = WriteOrder(pod_event("no room"))
    held.add(order)
    assert held.wait(HOLD) == [order.decision]
    assert not order.overtaken
    held.add(BIND)
    assert order.overtaken


def test_an_event_that_was_written_is_forgotten() -> None:
    held = Held()
    order = WriteOrder(group_event("no room"))
    held.add(order)
    held.wait(HOLD)
    held.orders.written(order)
    held.add(status("Running", "Scheduled"))
    assert not order.overtaken
    assert held.orders._held.keys() == {("PodGroup", "", "ns", "web")}
    assert not held.orders._about_job


def test_all_is_released_when_the_process_ends() -> None:
    held = Held()
    held.add(waits("no room"), status("Inqueue"))
    held.orders.release_all()
    assert len(held.released) == 2
    held.released.clear()
    assert held.wait(MAX_HOLD) == []
