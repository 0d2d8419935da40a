"""The actions, by the addresses of their pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from stromboli.cli.dashboard.actions import job_actions, queue_actions
from stromboli.cli.dashboard.pages.page_content import Render, ViewRequest


class ActionRoute(NamedTuple):
    """An action: a page that says what it does, and what its form carries out."""

    pattern: str
    render: Render
    perform: Callable[[ViewRequest, Mapping[str, str]], Awaitable[str]]
    """Carries it out with the fields of the form; the address to go to then."""
    section: str = "jobs"


JOB, QUEUE = "/jobs/{namespace}/{name}", "/queues/{queue}"
ACTIONS: tuple[ActionRoute, ...] = (
    ActionRoute(f"{JOB}/suspend", job_actions.suspension, job_actions.suspend),
    ActionRoute(f"{JOB}/resume", job_actions.resumption, job_actions.resume),
    ActionRoute(f"{JOB}/scale", job_actions.scaling, job_actions.scale),
    ActionRoute(f"{JOB}/delete", job_actions.deletion, job_actions.delete),
    ActionRoute(f"{QUEUE}/open", queue_actions.opening, queue_actions.open_again, "queues"),
    ActionRoute(f"{QUEUE}/close", queue_actions.closing, queue_actions.close, "queues"),
)
