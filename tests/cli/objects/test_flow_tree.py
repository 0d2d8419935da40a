"""The tree of a flow's steps, and the times of cron jobs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stromboli.cli.cluster.tree_branches import tree_lines
from stromboli.cli.objects.cron_run_times import RunTimes
from stromboli.cli.objects.flow_steps import step_tree

Manifest = dict[str, Any]


def flow(**steps: list[str]) -> Manifest:
    flows = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in steps.items()]
    return {"metadata": {"name": "f"}, "spec": {"flows": flows}}


def test_a_step_stands_below_the_deepest_of_those_it_follows() -> None:
    lines = step_tree(flow(a=[], b=["a"], c=["a", "b"], d=[]))
    assert [line.partition("  W")[0] for line in lines] == ["a", "└─ b", "   └─ c", "d"]
    assert lines[2].endswith("Waiting, for a (Waiting), b (Waiting)")


def test_steps_in_a_circle_and_steps_that_do_not_exist_are_drawn_all_the_same() -> None:
    lines = step_tree(flow(a=["b"], b=["a"], c=["nothing"], d=["d"]))
    assert len(lines) == 4
    assert "nothing (no such step)" in lines[2]


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=2),
        st.lists(st.text("abcdef", min_size=1, max_size=2)),
        max_size=12,
    )
)
def test_every_step_is_drawn_once_whatever_depends_on_what(steps: dict[str, list[str]]) -> None:
    lines = step_tree(flow(**steps))
    assert sorted(line.lstrip("└├─│ ").split("  ")[0] for line in lines) == sorted(steps)


def test_a_flow_that_is_no_flow_has_no_steps() -> None:
    for spec in (None, {}, {"flows": None}, {"flows": "x"}, {"flows": [1, None, {}]}):
        assert len(step_tree({"metadata": {"name": "f"}, "spec": spec})) <= 1


def test_trees_are_drawn_as_tree_draws_them() -> None:
    children = {"a": ["b", "c"], "b": ["d"], "c": [], "d": []}
    assert tree_lines(["a"], lambda node: children[node], str) == ["a", "├─ b", "│  └─ d", "└─ c"]


def cron(schedule: str, **spec: Any) -> Manifest:
    created = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"metadata": {"creationTimestamp": created}, "spec": {"schedule": schedule, **spec}}


def test_the_next_runs_of_a_cron_job_are_in_its_time_zone() -> None:
    times = RunTimes(controllers_are_here=False)
    assert times.next_run(cron("* * * * *")).startswith("in ")
    assert times.next_run(cron("* * * * *", suspend=True)) == "-"
    assert times.next_run(cron("\x1b[2J")) == "bad schedule"
    upcoming = times.upcoming(cron("30 2 * * *", timeZone="Asia/Tokyo"))
    assert len(upcoming) == 5
    assert all("02:30:00 JST" in line for line in upcoming)
    assert times.upcoming(cron("30 2 * * *"))[0].count("02:30:00 UTC") == 1
    assert times.upcoming(cron("30 2 * * *", timeZone="Mars/Crater")) == ["unknown time zone Mars/Crater"]
