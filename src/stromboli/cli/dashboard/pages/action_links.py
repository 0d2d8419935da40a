"""Links to the actions that a job or a queue can take now, and what is said after one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stromboli.api import names
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of, namespace_of
from stromboli.cli.dashboard.pages.page_content import ViewRequest, job_address, queue_address
from stromboli.cli.dashboard.pages.page_elements import link
from stromboli.cli.job.job_columns import shown_phase
from stromboli.cli.job.job_orders import FINISHED, SUSPENDED
from stromboli.simulator.reports.page.markup import Markup, element, joined

DONE = {
    "suspended": "The job is being suspended: its pods are deleted, and it stays until it is resumed.",
    "resumed": "The job is resumed: it starts again, from the beginning.",
    "scaled": "The numbers of pods are changed.",
    "deleted": "The job is being deleted, with its pods.",
    "opened": "The queue is being opened.",
    "closed": "The queue is being closed: it takes no more jobs.",
}
"""What is said after an action, by the value of `done` in the address."""


def job_actions(job: Manifest) -> Markup:
    """Those of a Job."""
    return _links(job_address(namespace_of(job), name_of(job)), _job_verbs(shown_phase(job)))


def _job_verbs(phase: str) -> list[str]:
    if phase == "Deleting":
        return []
    if phase in FINISHED:
        return ["delete"]
    return ["resume" if phase in SUSPENDED else "suspend", "scale", "delete"]


def queue_actions(queue: Mapping[str, Any]) -> Markup:
    """Those of a queue, by its row in the list of queues."""
    if queue["name"] == names.ROOT_QUEUE:
        return Markup("")
    closed = queue["state"] in (names.QUEUE_CLOSED, names.QUEUE_CLOSING)
    return _links(queue_address(queue["name"]), ["open" if closed else "close"])


def _links(page: str, verbs: list[str]) -> Markup:
    if not verbs:
        return Markup("")
    links = (link(f"{page}/{verb}", verb.capitalize(), class_="action") for verb in verbs)
    return element("nav", joined(links, " "), class_="action-links", aria_label="actions")


def done_note(request: ViewRequest) -> Markup:
    """That an action which led here was carried out."""
    text = DONE.get(request.query.get("done", ""))
    return element("p", text, class_="said", role="status") if text else Markup("")
