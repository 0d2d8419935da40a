"""The record of the last cycles: binds, evictions and admissions by action, runs of cycles, and bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.engine.cycle import ActionEnd, Outcome
from stromboli.engine.decisions import Bind, Decision, Event, Evict, GateRemoval
from stromboli.engine.plugin import Plugin
from stromboli.engine.plugin_failures import Failure
from stromboli.scheduler.explain import cycle_record
from stromboli.scheduler.explain.cycle_documents import CycleEntry, CycleList
from stromboli.scheduler.explain.cycle_record import (
    MAX_CYCLE_BYTES,
    MAX_CYCLE_ENTRIES,
    MAX_CYCLE_ENTRY,
    MAX_NAMED,
    MAX_NAMED_BY_ACTION,
    MAX_NAMED_DECISIONS,
    CycleRecord,
)
from stromboli.scheduler.explain.explain_paths import CycleQuery
from tests.manifests import group, node, pod, queue
from tests.number_of_examples import scaled
from tests.properties.living import LivingWorld, engine

ALL = CycleQuery()


def world_with(*objects: Any, make: Callable[[], Any] = lambda: engine("gang | priority")) -> LivingWorld:
    return LivingWorld([queue(), node("n1", cpu="2"), *objects], make)


def gang(name: str, pods: int = 1, cpu: str = "1") -> list[Any]:
    return [group(name, pods, phase="Pending"), *(pod(f"{name}-{n}", name, cpu=cpu) for n in range(pods))]


def entries(record: CycleRecord) -> list[CycleEntry]:
    return record.select(ALL).cycles


def made_of(*decisions: Decision, seconds: float = 0.001, lost: Failure | None = None) -> Outcome:
    """The outcome of an empty cluster's cycle, with these decisions of `allocate` in it."""
    outcome = LivingWorld([], lambda: engine("gang")).cycle()
    outcome.decisions, outcome.lost = list(decisions), lost
    outcome.seconds = {"open": seconds, "allocate": seconds}
    outcome.action_ends = [ActionEnd("allocate", len(decisions), 0)]
    return outcome


def bind(number: int = 0, name: str = "pod", namespace: str = "default") -> Bind:
    return Bind(namespace, f"{name}-{number}", f"uid-{number}", "n1", f"{namespace}/job")


# -- decisions


def test_a_cycle_names_what_it_decided_and_the_action_that_did() -> None:
    world, record = world_with(*gang("train", 2)), CycleRecord()
    outcome = world.step()
    record.note(outcome)
    (entry,) = entries(record)
    assert (entry.kind, entry.number, entry.last_number, entry.cycles) == ("decided", 1, 1, 1)
    assert (entry.let_in, entry.bound, entry.evicted, entry.left_out) == (1, 2, 0, 0)
    assert (entry.time, entry.last_time) == (outcome.session.reads.time,) * 2
    assert list(entry.parts) == ["open", "enqueue", "allocate", "backfill", "close"]
    named = [(each.kind, each.name, each.node, each.action, each.queue) for each in entry.decisions]
    assert named == [
        ("let-in", "train", "", "enqueue", "default"),
        ("bound", "train-0", "n1", "allocate", "default"),
        ("bound", "train-1", "n1", "allocate", "default"),
    ]
    assert {each.job for each in entry.decisions} == {"default/train"}


def test_an_eviction_has_its_action_beneficiary_and_plugins() -> None:
    record = CycleRecord()
    why = {"action": "preempt", "beneficiary": "default/urgent", "chosen_by": "tier 1 (priority)"}
    evict = Evict("default", "train-0", "uid", "n1", "default/train", "preempt", **why)
    record.note(made_of(evict, msgspec.structs.replace(evict, name="train-1", destination="n2")))
    (entry,) = entries(record)
    assert (entry.evicted, entry.moved) == (2, 1)
    first, second = entry.decisions
    assert (first.kind, first.action, first.beneficiary, first.chosen_by) == ("evicted", *why.values())
    assert (second.kind, second.node, second.destination) == ("moved", "n1", "n2")


def test_the_removal_of_a_scheduling_gate_is_recorded() -> None:
    record = CycleRecord()
    record.note(made_of(GateRemoval("default", "train-0", "uid")))
    (entry,) = entries(record)
    assert entry.released == 1
    assert [(each.kind, each.name) for each in entry.decisions] == [("gate-removed", "train-0")]


def test_jobs_that_wait_are_counted_and_nothing_is_decided_about_them() -> None:
    world, record = world_with(*gang("huge", 1, cpu="64")), CycleRecord()
    for _ in range(3):
        record.note(world.step())
    assert [(entry.kind, entry.let_in) for entry in entries(record)] == [("decided", 1), ("idle", 0)]
    let_in, idle = entries(record)
    assert (let_in.refused, idle.pending, idle.waiting) == (1, 1, 0)


def test_the_end_of_a_cycle_is_not_hidden_by_its_beginning() -> None:
    """Evictions of preempt are named, however many pods allocate bound before."""
    record = CycleRecord()
    evict = Evict("default", "train-0", "uid", "n1", "default/train", "preempt", action="preempt")
    outcome = made_of(*map(bind, range(1000)), evict)
    outcome.action_ends = [ActionEnd("allocate", 1000, 0), ActionEnd("preempt", 1001, 0)]
    record.note(outcome)
    (entry,) = entries(record)
    assert [each.kind for each in entry.decisions] == ["bound"] * MAX_NAMED_BY_ACTION + ["evicted"]
    assert entry.left_out == 1000 - MAX_NAMED_BY_ACTION


# -- runs


def test_cycles_that_decide_nothing_are_one_entry_with_their_time() -> None:
    record = CycleRecord()
    for number in range(5):
        record.note(made_of(*([bind()] if number == 0 else [Event("Pod", "", "", "", "", "")])))
    record.note(made_of(bind()))
    first, run, last = entries(record)
    assert (first.kind, run.kind, last.kind) == ("decided", "idle", "decided")
    assert (run.number, run.last_number, run.cycles, last.number) == (2, 5, 4, 6)
    assert run.seconds == pytest.approx(4 * 0.002)
    assert run.parts == pytest.approx({"open": 0.004, "allocate": 0.004})


class Failing(Plugin):
    """Fails when a cycle closes, each time with other words."""

    name = "failing"
    times = 0

    def closing(self, session: object) -> None:
        self.times += 1
        raise RuntimeError(f"for the {self.times}. time")


def test_lost_cycles_name_the_plugin_and_are_merged() -> None:
    world = world_with(*gang("train"), make=lambda: engine("failing", plugin_classes=[Failing]))
    record = CycleRecord()
    for _ in range(3):
        record.note(world.step())
    record.note(made_of(lost=Failure("", "", "ValueError")))
    record.note(made_of(lost=Failure("", "", "TypeError")))
    run, second, third = entries(record)
    assert run.lost is not None
    assert (run.kind, run.cycles, run.lost.plugin, run.lost.point) == ("lost", 3, "failing", "closing")
    assert run.lost.message.startswith("plugin 'failing' failed in closing: RuntimeError: for the ")
    assert (run.let_in, run.bound, run.decisions) == (0, 0, [])
    assert [entry.lost.message for entry in (second, third) if entry.lost] == [
        "scheduling failed: ValueError",
        "scheduling failed: TypeError",
    ]


# -- what is asked for


def numbers(cycles: CycleList) -> list[int]:
    return [entry.number for entry in cycles.cycles]


def test_a_query_selects_newer_cycles_and_runs_that_grew() -> None:
    record = CycleRecord()
    for number in range(4):
        record.note(made_of(bind(number)))
    assert numbers(record.select(CycleQuery(after=2))) == [3, 4]
    assert numbers(record.select(CycleQuery(limit=1))) == [4]
    assert numbers(record.select(CycleQuery(after=1, limit=2))) == [3, 4]
    assert numbers(record.select(CycleQuery(after=4))) == []
    record.note(made_of())
    assert numbers(record.select(CycleQuery(after=4))) == [5]
    record.note(made_of())
    grown = record.select(CycleQuery(after=5))
    assert numbers(grown) == [5]
    assert (grown.cycles[0].last_number, grown.oldest, grown.newest) == (6, 1, 6)


def test_a_number_of_another_leader_is_followed_by_everything() -> None:
    record = CycleRecord()
    assert record.select(CycleQuery(after=7)) == CycleList()
    record.note(made_of(bind()))
    cycles = record.select(CycleQuery(after=7))
    assert numbers(cycles) == [1]
    assert cycles.since == cycles.cycles[0].time


# -- bounds


def test_the_oldest_entries_go_for_new_ones() -> None:
    record = CycleRecord()
    outcome = made_of(bind())
    for _ in range(MAX_CYCLE_ENTRIES + 10):
        record.note(outcome)
    cycles = record.select(ALL)
    assert len(cycles.cycles) == MAX_CYCLE_ENTRIES
    assert (cycles.oldest, cycles.newest) == (11, MAX_CYCLE_ENTRIES + 10)


def test_a_huge_cycle_is_counted_in_full_and_named_in_part() -> None:
    record = CycleRecord()
    outcome = made_of(*map(bind, range(20_000)))
    outcome.action_ends = [ActionEnd(f"action-{number}", 2_000 * number, 0) for number in range(1, 11)]
    record.note(outcome)
    (entry,) = entries(record)
    assert entry.bound == 20_000
    assert len(entry.decisions) == MAX_NAMED_DECISIONS
    assert entry.left_out == 20_000 - MAX_NAMED_DECISIONS


hostile = st.text(max_size=3000) | st.sampled_from(
    ["\x00" * 5000, '"' * 5000, "\ud800", "<script>", "\x1b[31m"]
)


@settings(max_examples=scaled(40), deadline=None)
@given(
    st.lists(st.tuples(hostile, hostile, hostile, st.integers(1, 100)), min_size=1, max_size=20),
    st.integers(2000, 20_000),
)
def test_the_record_keeps_its_bounds_with_any_names_and_reasons(
    cycles: list[tuple[str, str, str, int]], most_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycle_record, "MAX_CYCLE_BYTES", most_bytes)
        patch.setattr(cycle_record, "MAX_CYCLE_ENTRY", 1500)
        record = CycleRecord()
        for name, reason, plugin, count in cycles:
            evict = Evict(name, name, "uid", name, name, reason, reason, reason, reason, {}, "", reason)
            record.note(made_of(*[evict] * count))
            record.note(made_of(lost=Failure(plugin, plugin, reason)))
            body = msgspec.json.encode(record.select(ALL))
            assert record.bytes <= most_bytes
            assert len(body) <= most_bytes + 2 * MAX_CYCLE_ENTRIES + 200
            for entry in msgspec.json.decode(body, type=CycleList).cycles:
                named = [each for each in entry.decisions for each in msgspec.structs.astuple(each)]
                assert all(len(text) <= 10 * MAX_NAMED and text.isprintable() for text in named)
                assert entry.bound + entry.evicted == len(entry.decisions) + entry.left_out


def test_the_bounds_fit_into_an_answer() -> None:
    assert MAX_CYCLE_BYTES + 1024 < 2 * 1024 * 1024
    assert MAX_CYCLE_ENTRY < MAX_CYCLE_BYTES
