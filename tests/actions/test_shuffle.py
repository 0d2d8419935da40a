"""shuffle: running tasks that plugins name leave, as far as others let them (spec 02 8)."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.types.meta import LabelSelector, Object, ObjectMeta
from stromboli.api.types.scheduling import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Evict
from stromboli.engine.plugin import Plugin
from stromboli.model.cluster import Change
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import Manifest, group, native_group, node, pod


class Restless(Plugin):
    """Wants every running task gone."""

    name = "restless"

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        return tasks


class Picky(Plugin):
    """Wants pods gone whose name begins with an a."""

    name = "picky"

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        return [task for task in tasks if task.name.startswith("a")]


class Careless(Plugin):
    """Names whatever belongs to a job, running or not."""

    name = "careless"

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        return [task for job in self.session.jobs() for task in job.tasks.values()]


class OneOnly(Plugin):
    """Lets the first of all go."""

    name = "one-only"

    def victim_limits(self, victims: list[Task]) -> list[Task]:
        return victims[:1]


class Guard(Plugin):
    """Will not have it that `b` leaves."""

    name = "guard"

    def on_move(self, change: Change) -> str | None:
        return "not this one" if change.task.name == "b" and not change.undo else None


class Broken(Plugin):
    """Fails."""

    name = "broken"

    def victim_limits(self, victims: list[Task]) -> list[Task]:
        raise ValueError("no idea")


OWN = [Restless, Picky, Careless, OneOnly, Guard, Broken]


def shuffle(*tiers: str, objects: Iterable[Object | Manifest] = (), actions: str = "shuffle") -> Outcome:
    world = World().add(node("n0", cpu=8), *objects)
    outcome = world.run(actions, " | ".join(tiers), plugin_classes=OWN).outcome
    assert outcome.lost is None
    return outcome


def evictions(outcome: Outcome) -> dict[str, str]:
    """Who left, and who chose it."""
    return {
        decision.name: decision.chosen_by for decision in outcome.decisions if isinstance(decision, Evict)
    }


def three() -> list[Manifest]:
    return [group("job", 3), *(pod(name, "job", on="n0") for name in "abc")]


def test_running_tasks_that_a_plugin_names_are_evicted_whatever_their_gang_needs() -> None:
    waiting = [group("new"), pod("d", "new"), pod("free", on="n0")]
    outcome = shuffle("gang, restless", objects=[*three(), *waiting])
    assert evictions(outcome) == dict.fromkeys("abc", "tier 1 (restless)")
    first = next(decision for decision in outcome.decisions if isinstance(decision, Evict))
    assert (first.reason, first.action, first.beneficiary, first.node) == ("shuffle", "shuffle", "", "n0")


def test_a_native_group_that_goes_as_a_whole_leaves_if_all_of_it_is_named() -> None:
    members = [pod(name, on="n0", native="job") for name in "abc"]
    whole, single = native_group("job", 3, disruptionMode="PodGroup"), native_group("job", 3)
    assert set(evictions(shuffle("restless", objects=[whole, *members]))) == set("abc")
    assert set(evictions(shuffle("picky", objects=[whole, *members]))) == set()
    assert set(evictions(shuffle("restless", "one-only", objects=[whole, *members]))) == set()
    assert set(evictions(shuffle("picky", objects=[single, *members]))) == {"a"}


def test_no_pod_is_evicted_where_no_plugin_names_any() -> None:
    assert evictions(shuffle("gang, one-only", objects=three())) == {}


def test_the_first_tier_that_names_any_decides() -> None:
    assert evictions(shuffle("gang", "picky", "restless", objects=three())) == {"a": "tier 2 (picky)"}
    assert evictions(shuffle("picky, restless", objects=three())) == {
        "a": "tier 1 (picky, restless)",
        "b": "tier 1 (restless)",
        "c": "tier 1 (restless)",
    }


def test_others_limit_what_was_named_from_any_tier_the_last_of_the_last_job_first() -> None:
    younger = [group("young", created=9), pod("y-x-0", "young", on="n0"), pod("y-x-1", "young", on="n0")]
    for objects in ([*younger, *three()], [*three(), *younger]):
        assert evictions(shuffle("restless", "one-only", objects=objects)) == {"y-x-1": "tier 1 (restless)"}


def test_a_pod_that_is_not_running_is_not_evicted() -> None:
    leaving = pod("old", "new", on="n0", terminating=True)
    objects = [*three(), group("new"), pod("d", "new"), leaving]
    assert evictions(shuffle("careless", objects=objects)).keys() == {"a", "b", "c"}


def test_a_task_that_may_not_leave_does_not_keep_the_others() -> None:
    outcome = shuffle("restless, guard", objects=three())
    assert evictions(outcome).keys() == {"a", "c"}
    assert {task.name: task.status for task in outcome.session.cluster.tasks.values()} == {
        "a": Status.RELEASING,
        "b": Status.RUNNING,
        "c": Status.RELEASING,
    }


def test_a_plugin_that_fails_costs_the_shuffle_alone() -> None:
    outcome = shuffle(
        "restless, broken", objects=[*three(), group("new"), pod("d", "new")], actions="shuffle, allocate"
    )
    assert evictions(outcome) == {}
    assert [failure.plugin for failure in outcome.session.failures] == ["broken"]
    assert any(task.status is Status.BINDING for task in outcome.session.cluster.tasks.values())


def test_pdb_restricts_what_others_name_and_names_no_pod_itself() -> None:
    """Volcano's pdb nominates every labelled pod that its budgets allow (spec 02 D5)."""
    labelled = [pod(name, "job", on="n0", labels={"app": "web"}) for name in "abc"]
    budget = PodDisruptionBudget(
        ObjectMeta("web", "default"),
        PodDisruptionBudgetSpec(LabelSelector({"app": "web"})),
        PodDisruptionBudgetStatus(disruptions_allowed=1),
    )
    objects = [group("job"), *labelled, budget]
    assert evictions(shuffle("pdb", objects=objects)) == {}
    assert evictions(shuffle("restless", "pdb", objects=objects)) == {"c": "tier 1 (restless)"}
    assert evictions(shuffle("restless", objects=objects)).keys() == {"a", "b", "c"}
