"""The history of jobs: decisions with action and beneficiary, within bounds, dropped after a while."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from stromboli.api import names
from stromboli.engine.decisions import Bind, Event, Evict, PodGroupStatus
from stromboli.engine.explanation.event_history import History
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import Job, JobId
from stromboli.scheduler.explain import decision_history
from stromboli.scheduler.explain.decision_history import (
    FORGOTTEN_AFTER,
    MAX_JOB_BYTES,
    MAX_JOB_ENTRIES,
    MAX_NAMES,
    MAX_TEXT,
    SWEEP_INTERVAL,
    DecisionHistory,
)
from tests.manifests import decoded, group, node, pod, queue
from tests.properties.living import LivingWorld, engine

NOW = 1_790_000_000.0
TRAIN = JobId("PodGroup", "default", "train")
URGENT = JobId("PodGroup", "default", "urgent")


def cluster_with(*jobs: str, pods: int = 2) -> Cluster:
    intake = Intake()
    objects: list[Any] = [queue(), node("n1"), node("n2")]
    for name in jobs:
        objects += [
            group(name, 1, phase="Pending"),
            *(pod(f"{name}-{number}", name) for number in range(pods)),
        ]
    for manifest in objects:
        intake.put(decoded(manifest))
    intake.cluster.settle()
    return intake.cluster


def job_named(cluster: Cluster, name: str) -> Job:
    return cluster.jobs[JobId("PodGroup", "default", name)]


def binds(cluster: Cluster, name: str, node: str = "n1") -> list[Bind]:
    job = job_named(cluster, name)
    return [Bind(task.namespace, task.name, task.uid, node, job.key) for task in job.tasks.values()]


def evictions(cluster: Cluster, name: str, **why: str) -> list[Evict]:
    job = job_named(cluster, name)
    reason = {"reason": "preempt for default/urgent, chosen by tier 1 (gang)", "action": "preempt", **why}
    return [
        Evict(task.namespace, task.name, task.uid, "n1", job.key, **reason) for task in job.tasks.values()
    ]


def phase(name: str, value: str) -> PodGroupStatus:
    return PodGroupStatus("default", name, value, 0, 0, 0)


def texts(history: History) -> list[str]:
    return [f"{entry.kind}: {entry.text}" for entry in history.entries]


def test_the_history_of_a_job_is_in_order() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train")
    for moment, decisions in enumerate(
        (
            [phase("train", names.GROUP_PENDING)],
            [phase("train", names.GROUP_INQUEUE)],
            [*binds(cluster, "train"), phase("train", names.GROUP_INQUEUE)],
            [phase("train", names.GROUP_RUNNING)],
        )
    ):
        history.note_decisions(cluster, decisions, NOW + moment)
    assert texts(history.of(TRAIN)) == [
        "let-in: admitted to its queue",
        "bound: 2 pods (train-0, train-1) bound to n1",
        "phase: its PodGroup changed to Running",
    ]
    assert history.of(TRAIN).entries[0].time == "2026-09-21T14:13:21Z"
    assert all(entry.source == "leader" for entry in history.of(TRAIN).entries)


def test_it_begins_with_the_first_cycle_however_long_a_replica_stood_by() -> None:
    history, cluster = DecisionHistory(), cluster_with("train")
    for moment in (5.0, 9.0):
        history.note_decisions(cluster, binds(cluster, "train"), NOW + moment)
    assert history.since == NOW + 5.0


def test_an_eviction_has_the_action_the_beneficiary_and_the_plugins_that_chose() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train", "urgent")
    why = {"beneficiary": "default/urgent", "chosen_by": "tier 1 (gang)"}
    history.note_decisions(cluster, evictions(cluster, "train", **why), NOW)
    (entry,) = history.of(TRAIN).entries
    assert (entry.kind, entry.action, entry.beneficiary) == ("evicted", "preempt", "default/urgent")
    assert (entry.chosen_by, entry.count) == ("tier 1 (gang)", 2)
    assert entry.text == (
        "2 pods (train-0, train-1) evicted from n1: preempt for default/urgent, chosen by tier 1 (gang)"
    )
    assert texts(history.of(URGENT)) == [
        "room-made: 2 pods of other jobs evicted for it by preempt, chosen by tier 1 (gang)"
    ]


def test_pods_that_are_moved_are_not_just_evicted() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train")
    history.note_decisions(cluster, evictions(cluster, "train", destination="n2"), NOW)
    assert [entry.kind for entry in history.of(TRAIN).entries] == ["moved"]


def test_a_bind_that_fails_is_recorded_with_the_reason() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train", pods=1)
    job = job_named(cluster, "train")
    (bind,) = binds(cluster, "train")
    for moment in range(3):
        history.note_failure(job, bind, "the node is gone", NOW + moment)
    assert texts(history.of(TRAIN)) == [
        "bind-failed: binding pod train-0 to n1 failed: the node is gone (3 times)"
    ]


def test_a_cycle_records_why_a_job_waits_once_until_that_changes() -> None:
    objects = [
        queue(),
        node("n1"),
        group("train", 2),
        *(pod(f"train-{n}", "train", cpu="9000") for n in (0, 1)),
    ]
    world = LivingWorld(objects, lambda: engine("gang", "predicates", actions="enqueue, allocate"))
    history = DecisionHistory(NOW)
    for _ in range(4):
        outcome = world.cycle()
        history.note_decisions(world.intake.cluster, outcome.decisions, outcome.session.now)
        history.note_outcome(outcome)
        world.come_true(outcome.decisions)
    assert texts(history.of(TRAIN)) == ["waits: waits: nodes are unavailable: Insufficient cpu"]


def test_policy_changes_are_recorded_without_their_text() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with()
    secret = Event("Queue", "", "root", "Warning", names.EVENT_POLICY_REFUSED, "/etc/policy: line 3: hunter2")
    history.note_decisions(cluster, [secret], NOW)
    assert texts(history.policies) == [
        "policy: a policy change was rejected; the previous policy stays active"
    ]


# -- bounds


def test_of_many_entries_the_latest_are_kept_and_the_others_counted() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train", pods=1)
    for number in range(3 * MAX_JOB_ENTRIES):
        history.note_decisions(cluster, [phase("train", f"phase-{number}")], NOW + number)
    kept = history.of(TRAIN)
    assert len(kept.entries) == MAX_JOB_ENTRIES
    assert kept.dropped == 2 * MAX_JOB_ENTRIES
    assert kept.entries[-1].text.endswith(f"phase-{3 * MAX_JOB_ENTRIES - 1}")


def test_texts_and_names_are_cut() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train", pods=100)
    job = job_named(cluster, "train")
    history.note_failure(job, binds(cluster, "train")[0], "x" * 1_000_000, NOW)
    history.note_decisions(cluster, binds(cluster, "train"), NOW)
    failed, bound = history.of(TRAIN).entries
    assert len(failed.text) < MAX_TEXT + 100
    assert f"and {100 - MAX_NAMES} more" in bound.text


@pytest.mark.parametrize(("nodes", "others"), [(MAX_NAMES, ""), (MAX_NAMES + 1, " and others")])
def test_there_are_other_nodes_only_if_not_all_are_named(nodes: int, others: str) -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train", pods=MAX_NAMES + 1)
    decisions = [
        replace(bind, node=f"n{number % nodes}") for number, bind in enumerate(binds(cluster, "train"))
    ]
    history.note_decisions(cluster, decisions, NOW)
    (bound,) = history.of(TRAIN).entries
    named = ", ".join(f"n{number}" for number in range(MAX_NAMES))
    assert bound.text.endswith(f"bound to {named}{others}")


def test_one_job_takes_no_more_than_its_bytes() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train", pods=1)
    job, (bind,) = job_named(cluster, "train"), binds(cluster, "train")
    for number in range(200):
        history.note_failure(job, bind, f"{number} " + "x" * MAX_TEXT, NOW)
    assert history.bytes <= MAX_JOB_BYTES
    assert history.of(TRAIN).dropped > 0


@pytest.mark.parametrize("bound", [("MAX_JOBS", 3), ("MAX_BYTES", 1500)])
def test_of_too_many_jobs_the_one_with_the_oldest_last_entry_is_dropped(
    monkeypatch: pytest.MonkeyPatch, bound: tuple[str, int]
) -> None:
    monkeypatch.setattr(decision_history, *bound)
    jobs = [f"job-{number}" for number in range(6)]
    history, cluster = DecisionHistory(NOW), cluster_with(*jobs, pods=1)
    for name in [*jobs, jobs[3]]:
        history.note_decisions(cluster, binds(cluster, name, "n2"), NOW)
    assert len(history) <= 3
    assert history.bytes <= 5000
    assert not texts(history.of(JobId("PodGroup", "default", jobs[0])))
    assert texts(history.of(JobId("PodGroup", "default", jobs[3])))


def test_the_history_of_a_deleted_job_is_dropped_after_a_while() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train", "urgent")
    history.note_decisions(cluster, binds(cluster, "train") + binds(cluster, "urgent"), NOW)
    later = cluster_with("urgent")
    moments = [SWEEP_INTERVAL, FORGOTTEN_AFTER, FORGOTTEN_AFTER + 3 * SWEEP_INTERVAL]
    seen = []
    for moment in moments:
        history.sweep(later, NOW + moment)
        seen.append(bool(history.of(TRAIN).entries))
    assert seen == [True, True, False]
    assert history.of(URGENT).entries
    assert len(history) == 1


def test_a_new_job_of_the_same_name_does_not_inherit_the_history() -> None:
    history, cluster = DecisionHistory(NOW), cluster_with("train")
    history.note_decisions(cluster, binds(cluster, "train"), NOW)
    again = cluster_with("train")
    job = job_named(again, "train")
    assert job.group is not None
    job.group.metadata.uid = "another"
    history.note_decisions(again, [phase("train", names.GROUP_INQUEUE)], NOW + 5)
    assert texts(history.of(TRAIN)) == ["let-in: admitted to its queue"]


def test_what_is_remembered_is_counted_to_the_byte_whatever_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decision_history, "MAX_JOBS", 4)
    jobs = [f"job-{number}" for number in range(8)]
    history, cluster = DecisionHistory(NOW), cluster_with(*jobs, pods=1)
    for number in range(400):
        name = jobs[number * 7 % 8]
        history.note_decisions(cluster, [*binds(cluster, name), phase(name, f"p{number % 5}")], NOW + number)
        if number % 50 == 49:
            history.sweep(cluster_with(*jobs[:4]), NOW + 1000 * number)
    records: Iterable[Any] = history._records.values()
    assert history.bytes == sum(record.bytes for record in records) >= 0
