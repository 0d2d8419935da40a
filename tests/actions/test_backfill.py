"""backfill: best-effort tasks go wherever a node lets them in (spec 02 4.1)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind
from stromboli.engine.plugin import Plugin
from stromboli.model.cluster import Change
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import Manifest, group, job_named, node, pod, queue, task_named


def backfill(*objects: Manifest, tiers: str = "gang", own: Iterable[type[Plugin]] = ()) -> Outcome:
    outcome = World().add(*objects).run("allocate, backfill", tiers, plugin_classes=own).outcome
    assert outcome.lost is None
    return outcome


def bound(outcome: Outcome) -> list[str]:
    return [decision.name for decision in outcome.decisions if isinstance(decision, Bind)]


def test_a_task_that_asks_for_nothing_runs_on_a_full_node() -> None:
    outcome = backfill(node("n0", cpu=1), pod("r", on="n0"), group("job", 1), pod("a", "job", cpu=0))
    assert bound(outcome) == ["a"]


def test_a_node_that_shrank_under_its_pods_takes_no_pod() -> None:
    """The last look before a bind compares what is asked with what is idle, below zero here."""
    shrunken = [node("n0", cpu=1), pod("r", on="n0", cpu=2), group("job", 1), pod("a", "job", cpu=0)]
    outcome = backfill(*shrunken)
    assert bound(outcome) == []
    (verdict,) = outcome.session.attempts.verdicts[job_named(outcome.session.cluster, "job")].values()
    assert verdict.message == "Insufficient cpu"
    assert bound(backfill(*shrunken, node("n1", cpu=1))) == ["a"]


def test_a_node_without_a_pod_slot_takes_no_pod_even_without_predicates() -> None:
    outcome = backfill(node("n0", pods=1), pod("r", on="n0"), group("job", 1), pod("a", "job", cpu=0))
    assert bound(outcome) == []


def test_tasks_of_an_unready_gang_are_not_bound() -> None:
    outcome = backfill(
        node("n0", cpu=1), group("job", 3), pod("a", "job", cpu=0), *[pod(f"b{n}", "job") for n in (0, 1)]
    )
    assert bound(outcome) == []
    assert task_named(outcome.session.cluster, "a").status is Status.PENDING


def test_a_best_effort_task_that_makes_its_gang_ready_binds_what_the_gang_holds() -> None:
    """The gang was kept: one task allocated, one promised; with the third it has enough."""
    leaving = pod("old", on="n0", cpu=2, terminating=True)
    objects = [pod("a-x-0", "job", cpu=1), pod("a-x-1", "job", cpu=2), pod("a-x-2", "job", cpu=0)]
    outcome = backfill(node("n0", cpu=3), leaving, group("job", 3), *objects)
    assert bound(outcome) == []
    assert outcome.pipelined == {"default/a-x-1": "n0"}
    outcome = backfill(node("n0", cpu=3), leaving, group("job", 2), *objects)
    assert sorted(bound(outcome)) == ["a-x-0", "a-x-2"]


def test_gated_tasks_and_jobs_that_wait_are_passed_over() -> None:
    outcome = backfill(
        node("n0"),
        queue("other"),
        group("in"),
        pod("gated", "in", cpu=0, gates=["wait"]),
        group("short", 2),
        pod("lonely", "short", cpu=0),
    )
    assert bound(outcome) == []
    assert "Not enough valid tasks" in outcome.session.objections[job_named(outcome.session.cluster, "short")]


def test_limits_of_the_queue_do_not_matter() -> None:
    class Full(Plugin):
        name = "full"

        def overused(self, queue: Queue) -> bool:
            return True

    outcome = backfill(node("n0"), group("job", 1), pod("a", "job", cpu=0), tiers="gang, full", own=[Full])
    assert bound(outcome) == ["a"]


def test_a_refusal_is_reported_and_the_next_task_is_tried() -> None:
    class NotA(Plugin):
        name = "not-a"

        def on_move(self, change: Change) -> str | None:
            return "not this one" if change.task.name == "a" and not change.undo else None

    outcome = backfill(
        node("n0"),
        group("job"),
        pod("a", "job", cpu=0),
        pod("b", "job", cpu=0),
        tiers="gang, not-a",
        own=[NotA],
    )
    assert bound(outcome) == ["b"]
    assert " waits: not this one; " in task_named(outcome.session.cluster, "a").condition.message


def test_without_nodes_there_is_no_place() -> None:
    outcome = backfill(group("job", 1), pod("a", "job", cpu=0))
    assert bound(outcome) == []
    message = task_named(outcome.session.cluster, "a").condition.message
    assert message.startswith("PodGroup job waits: the cluster has no nodes; add nodes (")
