"""Which actions a job or a queue is offered, and what is said after one."""

from __future__ import annotations

import re

import pytest

from stromboli.cli.dashboard.pages.action_links import DONE, done_note, job_actions, queue_actions
from stromboli.cli.job.job_orders import RESUMPTION, SUSPENSION
from stromboli.cli.queue.queue_orders import CLOSING, OPENING
from tests.cli.dashboard.served_cluster import job_manifest
from tests.cli.dashboard.view_requests import HOSTILE, view_request


def verbs(shown: str) -> list[str]:
    return re.findall(r'href="[^"]*/(\w+)"', shown)


@pytest.mark.parametrize(
    ("phase", "offered"),
    [
        ("Running", ["suspend", "scale", "delete"]),
        ("Aborted", ["resume", "scale", "delete"]),
        ("Completed", ["delete"]),
    ],
)
def test_a_job_is_offered_what_its_phase_allows(phase: str, offered: list[str]) -> None:
    assert verbs(job_actions(job_manifest(phase=phase))) == offered


@pytest.mark.parametrize(
    ("name", "state", "offered"), [("a", "Open", ["close"]), ("a", "Closing", ["open"]), ("root", "Open", [])]
)
def test_a_queue_is_opened_or_closed_and_the_root_is_neither(
    name: str, state: str, offered: list[str]
) -> None:
    assert verbs(queue_actions({"name": name, "state": state})) == offered


def test_something_is_said_after_every_action_and_after_nothing_else() -> None:
    orders = {order.verb for order in (SUSPENSION, RESUMPTION, OPENING, CLOSING)}
    assert orders | {"scaled", "deleted"} == {*DONE}
    assert done_note(view_request("/jobs", query={"done": HOSTILE})) == ""


@pytest.mark.parametrize("verb", ["opened", "closed"])
def test_the_page_of_a_queue_says_what_was_done(verb: str) -> None:
    assert f"The queue is being {verb}" in done_note(view_request("/queues/a", query={"done": verb}))
