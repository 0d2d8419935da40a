"""The policy as the leader reports it: when it became active, its arguments, errors of the last edit."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stromboli.cli.leader.leader_query import LARGEST_ANSWER
from stromboli.engine.failing_plugins import MAX_FAILURES, Culprit, DisabledSince
from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.policy.policy import Policy, default_policy, load_policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler.explain.policy_document import PolicyDocument
from stromboli.scheduler.explain.policy_record import (
    HIDDEN,
    MAX_POLICY_ENTRIES,
    MAX_POLICY_MESSAGE,
    MAX_POLICY_MESSAGES,
    MAX_POLICY_TEXT,
    PolicyRecord,
    policy_document,
)
from stromboli.scheduler.thread_seam import Unavailable
from stromboli.scheduling_loop import RefusedPolicy, Scheduler
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.policy_text import catalog_with
from tests.manifests import decoded, group, node, pod, queue

CATALOG = load_catalog()
GOOD = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 5
      binpack.resources: nvidia.com/gpu
      binpack.resources.nvidia.com/gpu: 7
"""


def scheduler_of(file: Path, fallback: Policy | None = None) -> Scheduler:
    return Scheduler(Rehearsal(), PolicyFile(file, CATALOG, fallback=fallback), CATALOG, warn=lambda _: None)


def document_of(record: PolicyRecord, scheduler: Scheduler) -> PolicyDocument:
    scheduler.cycle()
    record.note(scheduler)
    return record.document()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text(GOOD)
    return path


def test_the_policy_is_reported_with_defaults_and_active_switches(file: Path) -> None:
    scheduler = scheduler_of(file)
    document = document_of(PolicyRecord(), scheduler)
    assert (document.source, document.text, document.loaded) == (str(file), GOOD, scheduler.world.now())
    assert document.digest == f"sha256:{hashlib.sha256(GOOD.encode()).hexdigest()}"
    assert [action.name for action in document.actions] == ["enqueue", "allocate"]
    assert document.actions[0].arguments == {"letUrgentThrough": False, "reserveMinimum": None}
    (gang,), (binpack,) = document.tiers
    assert set(gang.switched_off) - set(binpack.switched_off) == {"enablePreemptable"}
    assert binpack.arguments["binpack.weight"] == 5
    assert binpack.arguments["binpack.cpu"] == 1, "not given: the default"
    assert binpack.arguments["binpack.resources.nvidia.com/gpu"] == 7
    assert (document.refused, document.set_aside, document.warnings) == (None, [], [])
    assert msgspec.json.decode(msgspec.json.encode(document), type=PolicyDocument) == document


def test_before_the_first_cycle_there_is_no_document() -> None:
    with pytest.raises(Unavailable, match="no cycle has completed yet"):
        PolicyRecord().document()


def test_a_document_is_made_once_as_long_as_nothing_changes(file: Path) -> None:
    record, scheduler = PolicyRecord(), scheduler_of(file)
    assert document_of(record, scheduler) is document_of(record, scheduler)


def test_a_rejected_edit_is_reported_with_its_lines_until_it_is_fixed(file: Path) -> None:
    record, scheduler = PolicyRecord(), scheduler_of(file)
    since = document_of(record, scheduler).loaded
    file.write_text(GOOD.replace("name: gang", "name: gank"))
    scheduler.world.sleep(5)  # type: ignore[attr-defined]
    document = document_of(record, scheduler)
    assert document.loaded == since, "the policy before stays in force"
    assert document.text == GOOD
    refused = document.refused
    assert refused is not None
    assert (refused.source, refused.is_latest, refused.more_errors) == (str(file), True, 0)
    assert refused.time == scheduler.world.now() > since
    assert [(error.line, error.text) for error in refused.errors] == [
        (4, 'unknown plugin "gank"; did you mean "gang"?')
    ]
    file.write_text(GOOD.replace("enqueue, ", ""))
    scheduler.world.sleep(5)  # type: ignore[attr-defined]
    document = document_of(record, scheduler)
    assert document.loaded == scheduler.world.now()
    assert [action.name for action in document.actions] == ["allocate"]
    assert document.refused is not None
    assert (document.refused.is_latest, document.refused.time) == (False, refused.time)


def test_an_invalid_file_at_the_start_is_reported_with_the_policy_that_replaces_it(file: Path) -> None:
    file.write_text('actions: "alocate"\n')
    document = document_of(PolicyRecord(), scheduler_of(file, default_policy(CATALOG)))
    assert document.source == "built-in policy"
    assert document.refused is not None
    assert document.refused.is_latest
    assert [(error.line, error.text[:29]) for error in document.refused.errors] == [
        (1, "failed to find Action alocate")
    ]
    file.unlink()
    removed = document_of(PolicyRecord(), scheduler_of(file, default_policy(CATALOG)))
    assert removed.refused is not None
    assert [(error.line, error.text) for error in removed.refused.errors] == [
        (0, "cannot be read: No such file or directory")
    ]


class Confused(Plugin):
    """Has no order for any job."""

    name = "confused"

    def job_order(self, job: Any) -> int:
        raise RuntimeError("no opinion")


def test_an_order_that_is_set_aside_is_reported_with_time_and_reason() -> None:
    catalog = catalog_with([Confused], [])
    text = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: confused\n'
    world = Rehearsal()
    for manifest in (
        queue(),
        node("n1"),
        *(each for name in "ab" for each in (group(name, 1), pod(f"{name}-0", name))),
    ):
        world.intake.put(decoded(manifest))
    scheduler = Scheduler(world, load_policy(text, catalog), catalog, warn=lambda _: None)
    record = PolicyRecord()
    for _ in range(MAX_FAILURES - 1):
        assert document_of(record, scheduler).set_aside == []
        world.sleep(1)
    (set_aside,) = document_of(record, scheduler).set_aside
    assert (set_aside.plugin, set_aside.point) == ("confused", "job_order")
    assert set_aside.why == "plugin 'confused' failed in job_order: RuntimeError: no opinion"
    assert scheduler.policy_since < set_aside.since <= world.now()


# -- secrets and bounds


@pytest.mark.parametrize(
    "lines",
    [
        '  elasticsearch.password: "hunter2"',
        "  'elasticsearch.password' : hunter2 # do not tell",
        "  elasticsearch.password: >-\n    hunter2",
        "  elasticsearch.username: &same hunter2\n  elasticsearch.password: *same",
    ],
)
def test_a_password_is_not_reported(lines: str) -> None:
    policy = load_policy(f"{GOOD}metrics:\n  type: elasticsearch\n{lines}\n", CATALOG)
    assert policy.metrics["elasticsearch.password"] == "hunter2"
    document = policy_document(policy, 1.0, None, {})
    assert document.metrics["elasticsearch.password"] == HIDDEN
    assert "hunter2" not in document.text
    assert document.metrics["type"] == "elasticsearch"


def test_a_hostile_policy_is_reported_within_bounds() -> None:
    entry = "  - name: nodeorder\n    arguments:\n      " + '"\\0é": x\n      ' * 10 + "y: 2\n"
    resources = "".join(f"      binpack.resources.r{n}: {2**62}\n" for n in range(500))
    text = (
        f'actions: "{", ".join(["allocate"] * 300)}"\ntiers:\n- plugins:\n'
        + entry * 150
        + f"- plugins:\n  - name: binpack\n    arguments:\n{resources}"
        + '# "\\' * 60_000
        + "\nmetrics:\n"
        + "".join(f"  key{n}: v\n" for n in range(500))
    )
    policy = load_policy(text, CATALOG, "p" * 5000, lenient=True)
    refused = RefusedPolicy(1.0, "f", tuple(f"f:{n}: " + "\x00" * 5000 for n in range(500)))
    disabled = {Culprit(f"p{n}", "job_order"): DisabledSince(1.0, '"' * 5000) for n in range(500)}
    document = policy_document(policy, 1.0, refused, disabled)
    assert len(msgspec.json.encode(document)) < LARGEST_ANSWER
    assert (len(document.text), document.text_left_out) == (
        MAX_POLICY_TEXT,
        len(text) - MAX_POLICY_TEXT,
    )
    assert (len(document.actions), document.more_actions) == (MAX_POLICY_ENTRIES, 200)
    assert (sum(map(len, document.tiers)), document.more_plugins) == (MAX_POLICY_ENTRIES, 51)
    assert len(document.warnings) == MAX_POLICY_MESSAGES
    assert document.more_warnings > 0
    assert document.refused is not None
    assert (len(document.refused.errors), document.refused.more_errors) == (MAX_POLICY_MESSAGES, 450)
    assert len(document.source) == MAX_POLICY_MESSAGE
    assert len(document.set_aside) == MAX_POLICY_ENTRIES
    only = load_policy(
        f"actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n{resources}", CATALOG
    )
    ((binpack,),) = policy_document(only, 1.0, None, {}).tiers
    assert (binpack.arguments, binpack.arguments_left_out) == ({}, True)
