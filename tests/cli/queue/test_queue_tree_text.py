"""Queues drawn as a tree, also where their parents do not form one."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cli.queue.queue_names import below
from stromboli.cli.queue.queue_shares import stated_share, with_sums
from stromboli.cli.queue.queue_tree_command import branches_of, coloured, tree_content, tree_text


def queues(**parents: str) -> dict[str, Any]:
    return {
        name: {"metadata": {"name": name}, "spec": {"parent": parent}, "status": {"state": "Open"}}
        for name, parent in parents.items()
    }


TREE = queues(root="", research="root", vision="research", speech="research", default="root")


def test_children_stand_below_their_parents_in_order() -> None:
    drawn = [f"{branch.first}{branch.node}" for branch in branches_of(TREE, "root")]
    assert drawn == ["root", "├─ default", "└─ research", "   ├─ speech", "   └─ vision"]


def test_a_circle_of_parents_is_drawn_once() -> None:
    circle = queues(a="b", b="a")
    assert [branch.node for branch in branches_of(circle, "a")] == ["a", "b"]
    assert below(list(circle.values()), "a") == ["b"]
    assert tree_content(circle, {}, "a")["queues"][0]["queues"] == []


def test_a_queue_uses_what_those_below_it_use() -> None:
    shares = {"vision": {"used": {"cpu": "1500m"}}, "speech": {"used": {"cpu": "2", "memory": "1Gi"}}}
    parents = {name: queue["spec"]["parent"] for name, queue in TREE.items()}
    summed = with_sums({name: shares.get(name, {}) for name in TREE}, parents)
    assert summed["research"]["used"] == summed["root"]["used"] == {"cpu": "3500m", "memory": "1Gi"}
    assert summed["vision"]["used"] == {"cpu": "1500m"}
    circle = {"a": {}, "b": {"used": {"cpu": "1"}}}
    assert with_sums(circle, {"a": "b", "b": "a"})["b"]["used"] == {"cpu": "1"}


def test_no_chain_of_queues_is_too_long() -> None:
    chain = queues(**{f"q{number}": f"q{number - 1}" for number in range(1, 3000)})
    assert len(list(branches_of(chain, "q0"))) == 101
    parents = {name: queue["spec"]["parent"] for name, queue in chain.items()}
    assert with_sums({name: {"used": {"cpu": "1"}} for name in chain}, parents)


def test_bars_show_what_is_used_of_what_is_deserved_and_what_is_borrowed() -> None:
    shares = {
        "vision": {"used": {"cpu": "2"}, "deserved": {"cpu": "4"}, "capability": {"cpu": "8"}},
        "speech": {"used": {"cpu": "8"}, "deserved": {"cpu": "4"}},
    }
    lines = tree_text(list(branches_of(TREE, "research")), TREE, shares)
    vision = next(line for line in lines if "vision" in line)
    assert "██████████░░░░░░░░░░" in vision
    assert vision.split()[-4:] == ["2", "4", "-", "8"]
    assert "██████████▓▓▓▓▓▓▓▓▓▓" in next(line for line in lines if "speech" in line)


def test_lines_have_colours_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert coloured("██▓▓") == "██▓▓"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured("██▓▓") == "\x1b[32m██\x1b[0m\x1b[33m▓▓\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("██▓▓") == "██▓▓"


def test_hostile_names_and_amounts_are_harmless() -> None:
    hostile = queues(root="")
    hostile["\x1b[2J"] = {"metadata": {"name": "\x1b[2J"}, "spec": {"weight": "\x1b]0;x\x07"}, "status": {}}
    shares = {"\x1b[2J": {"used": {"cpu": "\x1b[31m", "memory": "9" * 60}, "deserved": {"x/y": "much"}}}
    text = "\n".join(tree_text(list(branches_of(hostile, "root")), hostile, shares))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text


def test_a_queue_states_its_shares_and_what_its_jobs_hold() -> None:
    queue = {
        "spec": {"deserved": {"cpu": 4}, "guarantee": {"resource": {"cpu": "1"}}, "capability": {}},
        "status": {"allocated": {"cpu": "2", "pods": "3"}},
    }
    assert stated_share(queue) == {"used": {"cpu": "2"}, "deserved": {"cpu": "4"}, "guarantee": {"cpu": "1"}}
