"""Whatever an explanation says would let a job start does let it start; and who is said to start does."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.decoding import decode
from stromboli.api.types.meta import Object
from stromboli.engine.cycle import Engine, Outcome
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import JobId
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import PERIOD, Scheduler
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.explain.cluster_explanation import (
    WITHOUT_REMEDIES,
    ClusterExplainer,
    forecast_starts,
)
from stromboli.simulator.explain.explanation_document import (
    JobExplanation,
    ObjectChange,
    Remedy,
    StartForecast,
)
from stromboli.simulator.explain.remedy_search import search_remedies
from stromboli.simulator.explain.subject_lookup import Found
from stromboli.simulator.explain.wait_clues import WaitClues, wait_clues
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.policy_text import known_extensions, policy_of
from tests.manifests import EPOCH
from tests.properties.strategies import contest, contests, examples, nativised, worlds
from tests.properties.test_jobs_that_wait import POLICIES, limited
from tests.properties.topology_worlds import topology_worlds

NOW = EPOCH + 1000.0
CHOSEN = (
    "stock",
    "capacity",
    "evicting",
    "evicting by capacity",
    "gangs evicting",
    "fair share",
    "high priority",
    "within switches",
    "backfill",
    "conservative backfill",
)


def loaded_from(objects: Sequence[Object]) -> Loaded:
    intake = Intake()
    for error in intake.put_all(objects):
        assert error is None
    intake.cluster.settle()
    return Loaded(intake, 0.0, len(objects), [], {}, {})


def policy_named(name: str) -> Policy:
    return policy_of(known_extensions(), "", "", POLICIES[name])


def explain_all(loaded: Loaded, policy: Policy) -> list[JobExplanation]:
    """The explanations of all jobs, without forecasts, which would use up the cluster."""
    jobs = [Found("PodGroup", job.name, job) for job in loaded.intake.cluster.jobs.values()]
    explainer = ClusterExplainer(loaded, policy, known_extensions(), NOW, with_forecast=False)
    explained = explainer.explain(jobs).subjects
    assert all(isinstance(each, JobExplanation) for each in explained)
    return [each for each in explained if isinstance(each, JobExplanation)]


def starts_within(objects: Sequence[Object], policy: Policy, job: JobId, cycles: int) -> bool:
    """Whether a job starts if these objects are loaded afresh and so many cycles are run."""
    world = Rehearsal(loaded_from(objects).intake, NOW)
    scheduler = Scheduler(world, policy, known_extensions(), PERIOD)
    bound: set[str] = set()
    for number in range(cycles):
        if number:
            world.sleep(PERIOD)
            world.sync()
        bound |= {
            decision.uid for decision in scheduler.cycle().decisions if type(decision).__name__ == "Bind"
        }
    known = world.cluster.jobs.get(job)
    if known is None:
        return False
    return any(uid in known.tasks for uid in bound) and known.ready_count >= max(known.minimum, 1)


def changed(objects: Sequence[Object], changes: Sequence[ObjectChange]) -> list[Object]:
    """The objects with changes applied to them one by one, as an API server would."""
    result = list(objects)
    for change in changes:
        if change.operation == "create":
            result.append(decoded_as(change.kind, change.patch))
            continue
        meant = [each for each in result if is_meant(each, change)]
        assert len(meant) == len(change.names)
        result = [each for each in result if not is_meant(each, change)]
        if change.operation == "patch":
            result += [patched(each, change.patch) for each in meant]
    return result


def is_meant(obj: Object, change: ObjectChange) -> bool:
    namespaced = change.namespace in ("", obj.metadata.namespace)
    return type(obj).__name__ == change.kind and obj.name in change.names and namespaced


def patched(obj: Object, patch: Mapping[str, Any]) -> Object:
    return decoded_as(type(obj).__name__, merge(msgspec.to_builtins(obj), patch))


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def decoded_as(kind: str, manifest: Mapping[str, Any]) -> Object:
    obj = decode({**manifest, "kind": kind})
    assert obj is not None
    return obj


def state_of(cluster: Cluster) -> dict[str, Any]:
    """All that a cycle changes."""
    return {
        "tasks": {
            uid: (task.status, task.node.name if task.node else "", task.nominated, task.started, task.shape)
            for uid, task in cluster.tasks.items()
        },
        "jobs": {
            id: (
                job.phase,
                list(job.counts),
                dict(job.pending),
                dict(job.allocated),
                job.minimum,
                job.priority,
            )
            for id, job in cluster.jobs.items()
        },
        "queues": {
            name: (dict(queue.allocated), dict(queue.pending), queue.open, queue.weight)
            for name, queue in cluster.queues.items()
        },
        "nodes": sorted(node.name for node in cluster.columns.nodes),
        "idle": cluster.columns.idle.tolist(),
        "used": cluster.columns.used.tolist(),
        "releasing": cluster.columns.releasing.tolist(),
        "memory": dict(cluster.memory),
    }


def without_zeros(state: Any) -> Any:
    """Sums in which an entry of nothing is no entry."""
    if isinstance(state, dict):
        return {key: without_zeros(value) for key, value in state.items() if value != 0}
    if isinstance(state, tuple | list):
        return [without_zeros(each) for each in state]
    return state


def check(objects: Sequence[Object], policy: Policy) -> int:
    """Everything that must hold of the explanations of a world; gives the number of remedies."""
    loaded = loaded_from(objects)
    before = without_zeros(state_of(loaded.intake.cluster))
    explained = explain_all(loaded, policy)
    loaded.intake.cluster.settle()
    assert without_zeros(state_of(loaded.intake.cluster)) == before
    for job, each in zip(list(loaded.intake.cluster.jobs.values()), explained, strict=True):
        if each.state == "starts":
            assert starts_within(objects, policy, job.id, 1)
        elif each.state == "waits":
            assert not starts_within(objects, policy, job.id, 1)
        for remedy in each.remedies:
            check_remedy(objects, policy, job.id, remedy)
    return sum(len(each.remedies) for each in explained)


def check_remedy(objects: Sequence[Object], policy: Policy, job: JobId, remedy: Remedy) -> None:
    under = replace(policy, actions=tuple(remedy.actions)) if remedy.actions else policy
    assert starts_within(changed(objects, remedy.changes), under, job, remedy.cycles), remedy.text


@pytest.mark.parametrize("name", CHOSEN)
def test_remedies_hold_where_jobs_contend(name):
    @examples(12)
    @given(contests())
    def holds(objects):
        check(objects, policy_named(name))

    holds()


def test_a_job_that_loses_a_pod_in_the_cycle_in_which_it_starts_has_not_started():
    objects = nativised(contest(random.Random(23839), 1, 3), random.Random(23840))
    check(objects, policy_named("within switches"))


def test_a_job_for_which_pods_are_evicted_does_not_start_before_the_job_that_was_promised_their_capacity():
    objects = nativised(contest(random.Random(2584), 1, 2), random.Random(2585))
    check(objects, policy_named("backfill"))


def clues_of(loaded: Loaded, policy: Policy) -> list[WaitClues]:
    """What a cycle left behind about all who wait."""

    def look(outcome: Outcome) -> list[WaitClues]:
        waiting = [(job, outcome.explain(job)) for job in loaded.intake.cluster.jobs.values()]
        return [
            wait_clues(outcome, job, wait)
            for job, wait in waiting
            if wait is not None and wait.gate not in WITHOUT_REMEDIES
        ]

    return Engine(policy, known_extensions(), reports=False).rehearse(loaded.intake.cluster, NOW, look)


@pytest.mark.parametrize("name", ["stock", "capacity", "evicting", "gangs evicting", "fair share"])
def test_trials_that_leave_out_who_waits_for_room_come_to_the_same(name):
    policy = policy_named(name)

    @examples(12)
    @given(contests())
    def same(objects):
        loaded = loaded_from(objects)
        for clues in clues_of(loaded, policy):
            search = partial(search_remedies, loaded.intake, policy, known_extensions(), NOW)
            assert search(clues) == search(replace(clues, waits=None))

    same()


@pytest.mark.parametrize("name", ["stock", "evicting", "fair share"])
def test_forecasts_that_leave_out_who_waits_for_room_come_to_the_same(name):
    policy = policy_named(name)

    def forecast(objects: Sequence[Object], recalls: bool) -> dict[str, StartForecast]:
        loaded = loaded_from(objects)
        clues = clues_of(loaded, policy)
        waits = clues[0].waits if clues and recalls else None
        waiting = [clue.tasks[0].job.key for clue in clues if clue.tasks]
        return forecast_starts(loaded, policy, known_extensions(), NOW, waiting, waits)

    @examples(12)
    @given(contests(), st.randoms(use_true_random=False))
    def same(objects, chance):
        with_limits = list(limited(objects, chance))
        assert forecast(deepcopy(with_limits), True) == forecast(deepcopy(with_limits), False)

    same()


@pytest.mark.parametrize("name", ["stock", "capacity", "high priority"])
def test_remedies_hold_in_odd_worlds(name):
    @examples(12)
    @given(worlds(mostly_pending=True))
    def holds(objects):
        check(objects, policy_named(name))

    holds()


@pytest.mark.parametrize("name", ["within switches", "gangs within switches", "backfill within switches"])
def test_remedies_hold_for_gangs_in_a_network(name):
    @examples(12)
    @given(topology_worlds())
    def holds(objects):
        check(objects, policy_named(name))

    holds()
