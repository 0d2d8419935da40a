"""The loop: cycles with a rest between them, and a policy file that may change while it runs."""

from pathlib import Path

import pytest

from stromboli.engine.plugin import Plugin
from stromboli.extensions import load_catalog
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.policy_text import catalog_with

GOOD = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
WRONG = 'actions: "alocate"\n'


class Unbuildable(Plugin):
    name = "unbuildable"

    def __init__(self, arguments: object, switches: dict[str, bool]):
        raise RuntimeError("out of order")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text(GOOD)
    return path


def test_a_changed_file_is_taken_over_before_the_next_cycle(file: Path) -> None:
    catalog, warnings = load_catalog(), list[str]()
    scheduler = Scheduler(Rehearsal(), PolicyFile(file, catalog), catalog, warn=warnings.append)
    scheduler.cycle()
    file.write_text(GOOD.replace("allocate", "allocate, backfill"))
    scheduler.cycle()
    assert scheduler.engine.policy.actions == ("allocate", "backfill")
    assert warnings == [f"{file}: the new policy is in force"]


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


def test_a_plugin_that_cannot_be_built_leaves_the_policy_before_in_force(file: Path) -> None:
    catalog, warnings = catalog_with([Unbuildable], []), list[str]()
    scheduler = Scheduler(Rehearsal(), PolicyFile(file, catalog), catalog, warn=warnings.append)
    file.write_text(GOOD.replace("gang", "unbuildable"))
    scheduler.cycle()
    scheduler.cycle()
    assert [entry.name for entry in scheduler.engine.policy.plugins] == ["gang"]
    assert warnings[-1] == f"{file}: RuntimeError: out of order; the policy before stays in force"
