"""The loop: cycles with a rest between them, and a policy file that may change while it runs."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from stromboli.engine.decisions import Bind, Decision, Event
from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.policy.policy import default_policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.policy_text import catalog_with
from tests.manifests import decoded, group, node, pod, queue

GOOD = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
WRONG = 'actions: "alocate"\n'


class Unbuildable(Plugin):
    name = "unbuildable"
    raised: ClassVar[BaseException] = RuntimeError("out of order")

    def __init__(self, arguments: object, switches: dict[str, bool]):
        raise self.raised


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text(GOOD)
    return path


def test_a_changed_file_is_taken_over_before_the_next_cycle_which_is_news_and_no_warning(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "stromboli")
    catalog, warnings = load_catalog(), list[str]()
    scheduler = Scheduler(Rehearsal(), PolicyFile(file, catalog), catalog, warn=warnings.append)
    scheduler.cycle()
    file.write_text(GOOD.replace("allocate", "allocate, backfill"))
    scheduler.cycle()
    assert scheduler.engine.policy.actions == ("allocate", "backfill")
    assert warnings == []
    assert ("INFO", f"{file}: the new policy is in force") in [
        (record.levelname, record.getMessage()) for record in caplog.records
    ]


def test_a_wrong_new_file_leaves_the_last_good_one_in_force_and_says_so_once(file: Path) -> None:
    catalog, warnings = load_catalog(), list[str]()
    scheduler = Scheduler(Rehearsal(), PolicyFile(file, catalog), catalog, warn=warnings.append)
    file.write_text(WRONG)
    scheduler.cycle()
    scheduler.cycle()
    assert scheduler.engine.policy.actions == ("allocate",)
    assert warnings == [
        f'{file}:1: failed to find Action alocate; did you mean "allocate"?',
        f"{file}: the policy loaded before stays in force",
    ]


@pytest.mark.parametrize("raised", [RuntimeError("out of order"), SystemExit("out of order")])
def test_a_plugin_that_cannot_be_built_leaves_the_policy_before_in_force(
    file: Path, raised: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Unbuildable, "raised", raised)
    catalog, warnings = catalog_with([Unbuildable], []), list[str]()
    scheduler = Scheduler(Rehearsal(), PolicyFile(file, catalog), catalog, warn=warnings.append)
    file.write_text(GOOD.replace("gang", "unbuildable"))
    scheduler.cycle()
    scheduler.cycle()
    assert [entry.name for entry in scheduler.engine.policy.plugins] == ["gang"]
    (why, outcome) = warnings
    assert why.endswith(f"{type(raised).__name__}: out of order")
    assert outcome == f"{file}: the policy before stays in force"


class Told(Rehearsal):
    """Notes the events that it is to write."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []

    def execute(self, decisions: Sequence[Decision]) -> None:
        self.events += [decision for decision in decisions if isinstance(decision, Event)]
        super().execute(decisions)


def test_what_there_is_to_say_about_a_policy_is_an_event_on_the_root_queue(file: Path) -> None:
    catalog, world = catalog_with([Unbuildable], []), Told()
    file.write_text(GOOD + "  - name: gnag\n")
    policy = PolicyFile(file, catalog, lenient=True)
    scheduler = Scheduler(world, policy, catalog, warn=lambda message: None)
    scheduler.announce_policy()
    for text in ("", GOOD, WRONG, GOOD.replace("gang", "unbuildable"), GOOD):
        if text:
            file.write_text(text)
        scheduler.cycle()
        scheduler.cycle()
    assert [(event.kind, event.name) for event in world.events] == [("Queue", "root")] * 5
    assert [(event.type, event.reason, event.message) for event in world.events] == [
        (
            "Warning",
            "PolicyWarning",
            f'{file}:5: unknown plugin "gnag"; did you mean "gang"?',
        ),
        ("Normal", "PolicyLoaded", f"{file}: the new policy is in force"),
        (
            "Warning",
            "PolicyRefused",
            f"{file}: the policy loaded before stays in force:"
            f' {file}:1: failed to find Action alocate; did you mean "allocate"?',
        ),
        (
            "Warning",
            "PolicyRefused",
            f"{file}: the policy before stays in force: {file}: RuntimeError: out of order",
        ),
        ("Normal", "PolicyLoaded", f"{file}: the new policy is in force"),
    ]


def test_a_policy_that_nothing_is_odd_about_is_no_event_at_the_start(file: Path) -> None:
    catalog, world = load_catalog(), Told()
    scheduler = Scheduler(world, PolicyFile(file, catalog), catalog)
    scheduler.announce_policy()
    scheduler.cycle()
    assert world.events == []


def test_a_wrong_file_at_the_start_is_told_with_the_policy_that_is_in_force_instead(file: Path) -> None:
    catalog, world, warnings = load_catalog(), Told(), list[str]()
    file.write_text(WRONG)
    policy = PolicyFile(file, catalog, fallback=default_policy(catalog))
    scheduler = Scheduler(world, policy, catalog, warn=warnings.append)
    scheduler.announce_policy()
    scheduler.cycle()
    assert warnings[-1] == f"{file}: the built-in policy is in force until the file is right"
    assert [event.reason for event in world.events] == ["PolicyRefused"]


def test_a_model_that_was_rebuilt_gets_an_engine_of_its_own() -> None:
    world = Rehearsal()
    for manifest in (queue(), node("n1"), group("web", 1, phase="Inqueue"), pod("web-0", "web")):
        world.intake.put(decoded(manifest))
    scheduler = Scheduler(world, default_policy(load_catalog()), load_catalog())
    scheduler.cycle()
    engine = scheduler.engine
    scheduler.cycle()
    assert scheduler.engine is engine
    world.intake.rebuild()
    world.intake.put(decoded(pod("web-1", "web")))
    outcome = scheduler.cycle()
    assert scheduler.engine is not engine
    assert scheduler.engine.policy is engine.policy
    assert [each.key for each in outcome.decisions if isinstance(each, Bind)] == ["default/web-1"]
