"""Which changes are a reason for a cycle, and how urgent they are."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import msgspec
import pytest

from stromboli.api.types.kinds import CLUSTER_SCOPED
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.scheduler.mirror.cluster_watches import watched_kinds
from stromboli.scheduler.mirror.news import (
    _REPORTED_ELSEWHERE,
    _UNREAD,
    EMPTY_GROUP_PATIENCE,
    NOW,
    SEARCHED,
    STATUS_PATIENCE,
    News,
    known,
)
from stromboli.scheduler.options import parse
from tests.manifests import decoded, group, node, pod, priority_class, queue

NONE = math.inf


class Story:
    """A queue, a node, and what is heard after that."""

    def __init__(self, *objects: Any) -> None:
        self.intake = Intake()
        self.news = News()
        self.hear(queue(), node("n1"), *objects)

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster

    def hear(self, *objects: Any, gangs: bool = True, evicts: bool = False) -> float:
        """How urgent these are, after a cycle that saw all before."""
        return self._change(objects, False, gangs, evicts)

    def lose(self, *objects: Any) -> float:
        return self._change(objects, True, True, False)

    def _change(self, objects: tuple[Any, ...], gone: bool, gangs: bool, evicts: bool) -> float:
        self.news.forget()
        for each in objects:
            obj = each if isinstance(each, Object) else decoded(each)
            before = known(self.cluster, obj)
            (self.intake.drop if gone else self.intake.put)(obj)
            self.news.note(self.cluster, obj, before, gone)
        return self.news.take_patience(self.cluster, gangs, evicts)

    def bind(self, name: str) -> None:
        """A cycle decided to bind it."""
        task = next(task for task in self.cluster.tasks.values() if task.name == name)
        self.cluster.move(task, Status.BINDING, self.cluster.nodes["n1"])


def status(**fields: Any) -> dict[str, Any]:
    return {"status": fields}


def heartbeat(time: str) -> dict[str, Any]:
    beating = node("n1")
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": time}
    beating["status"]["conditions"] = [ready]
    return beating


def test_a_pod_that_can_start_is_news() -> None:
    assert Story(group("solo", 1)).hear(pod("solo-0", "solo")) == NOW


def test_a_group_that_makes_its_pods_schedulable_is_news() -> None:
    assert Story(pod("solo-0", "solo")).hear(group("solo", 1, phase="Pending")) == NOW


def test_a_gang_whose_pods_still_arrive_is_news_with_the_last_of_them() -> None:
    story = Story(group("gang", 3))
    assert story.hear(pod("gang-0", "gang")) == STATUS_PATIENCE
    assert story.hear(pod("gang-1", "gang")) == STATUS_PATIENCE
    assert story.hear(pod("gang-2", "gang")) == NOW


def test_without_a_plugin_for_gangs_each_of_its_pods_is_news() -> None:
    assert Story(group("gang", 3)).hear(pod("gang-0", "gang"), gangs=False) == NOW


def test_a_gang_waits_for_each_of_its_roles() -> None:
    story = Story(group("gang", 2, minTaskMember={"worker": 1, "master": 1}))
    assert story.hear(*(pod(f"w{n}", "gang", role="worker") for n in range(2))) == STATUS_PATIENCE
    assert story.hear(pod("m0", "gang", role="master")) == NOW


def test_a_group_whose_job_waits_for_it_is_let_in_at_once_and_others_after_their_pods_had_time() -> None:
    story = Story()
    made = group("made", 1, phase="Pending")
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "made",
        "uid": "u",
        "controller": True,
    }
    made["metadata"]["ownerReferences"] = [owner]
    assert story.hear(group("alone", 1, phase="Pending")) == EMPTY_GROUP_PATIENCE
    assert story.hear(made) == NOW


def test_a_heartbeat_is_no_news_whoever_waits() -> None:
    story = Story(group("big", 1), pod("big-0", "big", cpu=99), heartbeat("2026-01-01T00:00:00Z"))
    assert story.hear(heartbeat("2026-01-01T00:00:10Z")) == NONE
    assert story.hear(node("n1", cpu=8)) == NOW


def test_our_own_bind_that_comes_back_is_only_told_in_the_status_of_its_group() -> None:
    story = Story(group("solo", 1), pod("solo-0", "solo"), group("big", 1), pod("big-0", "big", cpu=99))
    story.bind("solo-0")
    assert story.hear(pod("solo-0", "solo")) == NONE  # as it was before the bind
    assert story.hear(pod("solo-0", "solo", on="n1", phase="Pending")) == STATUS_PATIENCE


def test_our_own_condition_that_comes_back_is_no_news() -> None:
    story = Story(group("big", 1), pod("big-0", "big", cpu=99))
    assert [task.order for task in story.cluster.tasks.values()]  # as a cycle asks for it, and it is kept
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    assert story.hear(pod("big-0", "big", cpu=99, **status(conditions=[told]))) == NONE


def test_our_own_status_of_a_group_that_comes_back_is_no_news() -> None:
    story = Story(group("big", 1), pod("big-0", "big", cpu=99))
    told = group("big", 1)
    told["status"]["conditions"] = [
        {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources"}
    ]
    assert story.hear(told) == NONE
    assert story.hear(group("big", 1, phase="Pending")) == NOW  # somebody else's


def test_what_a_queue_has_allocated_is_no_news_and_its_spec_is() -> None:
    story = Story(group("big", 1), pod("big-0", "big", cpu=99))
    counted = queue()
    counted["status"]["allocated"] = {"cpu": "1"}
    assert story.hear(counted) == NONE
    assert story.hear(queue(weight=7)) == NOW
    assert story.hear(queue(weight=7, state="Closed")) != NONE


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ends_is_news_if_somebody_waits(phase: str) -> None:
    running = pod("solo-0", "solo", on="n1", phase="Running")
    ended = pod("solo-0", "solo", on="n1", phase=phase)
    story = Story(group("solo", 1), running)
    assert story.hear(ended) == STATUS_PATIENCE
    story = Story(group("solo", 1), running, group("big", 1), pod("big-0", "big", cpu=4))
    assert story.hear(ended) == NOW
    assert story.lose(ended) == STATUS_PATIENCE  # it has held nothing for a while


def test_a_pod_that_waits_again_after_it_had_ended_is_news() -> None:
    """No API server shows that, and a decision follows all the same."""
    story = Story(group("solo", 1), pod("solo-0", "solo", on="n1", phase="Succeeded"))
    assert story.hear(pod("solo-0", "solo")) == NOW


def test_a_pod_that_goes_is_news_to_a_complete_gang_and_not_to_one_that_still_arrives() -> None:
    running = pod("solo-0", "solo", on="n1", phase="Running")
    story = Story(group("solo", 1), running, group("gang", 2), pod("gang-0", "gang"))
    assert story.lose(running) == STATUS_PATIENCE
    story = Story(group("solo", 1), running, group("gang", 1), pod("gang-0", "gang"))
    assert story.lose(running) == NOW


def test_a_pod_that_starts_to_run_is_news_only_where_it_could_be_evicted_for_somebody() -> None:
    objects = (group("solo", 1), pod("solo-0", "solo", on="n1", phase="Pending"))
    running = pod("solo-0", "solo", on="n1", phase="Running")
    assert Story(*objects).hear(running, evicts=True) == STATUS_PATIENCE
    waiting = (group("big", 1), pod("big-0", "big", cpu=99))
    assert Story(*objects, *waiting).hear(running) == STATUS_PATIENCE
    assert Story(*objects, *waiting).hear(running, evicts=True) == NOW


def test_a_gate_that_is_lifted_is_news() -> None:
    story = Story(group("solo", 1), pod("solo-0", "solo", gates=["example.com/licence"]))
    assert story.hear(pod("solo-0", "solo")) == NOW


def test_objects_that_decisions_look_up_are_news_when_they_change() -> None:
    story = Story(group("big", 1), pod("big-0", "big", cpu=99), priority_class("high", 10))
    assert story.hear(priority_class("high", 10)) == NONE
    assert story.hear(priority_class("high", 11)) == NOW
    assert story.lose(priority_class("high", 11)) == NOW
    assert story.lose(priority_class("high", 11)) == NONE


def test_every_kind_that_is_watched_can_be_compared_with_what_was_known_of_it() -> None:
    """An object is news when it comes and when it goes, and not when it comes once more."""
    story = Story(group("big", 1), pod("big-0", "big", cpu=99))
    for kind in watched_kinds(parse([])):
        place = {} if kind in CLUSTER_SCOPED else {"namespace": "ns"}
        made = msgspec.convert({"metadata": {"name": "x", "uid": "u", **place}}, kind)
        if kind not in (Pod, PodGroup, NativePodGroup):
            assert story.hear(made, evicts=True) == NOW, kind
        story.hear(made)
        assert story.hear(made) == NONE, kind
        story.lose(made)
        assert story.lose(made) == NONE, kind


def test_fields_that_are_left_out_of_a_comparison_exist() -> None:
    assert {field.name for field in fields(Task)} >= _REPORTED_ELSEWHERE | _UNREAD


def test_a_pod_of_another_scheduler_without_a_node_is_no_news() -> None:
    story = Story(group("big", 1), pod("big-0", "big", cpu=99))
    assert story.hear(pod("theirs", scheduler="other")) == NONE


def test_among_very_many_who_wait_nobody_is_sought() -> None:
    """What takes long to find out is taken for news."""
    running = pod("solo-0", "solo", on="n1", phase="Running")
    groups = [group(f"g{n}", 2) for n in range(SEARCHED + 1)]
    pods = [pod(f"g{n}-0", f"g{n}") for n in range(SEARCHED + 1)]
    assert Story(group("solo", 1), running, *groups, *pods).lose(running) == NOW
