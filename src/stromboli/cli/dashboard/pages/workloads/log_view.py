"""The end of a container's log, and the form by which another log is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.cli.dashboard.pages.object_elements import lines_of
from stromboli.cli.dashboard.pages.page_content import ViewRequest
from stromboli.cli.dashboard.pages.page_elements import card, notes
from stromboli.cli.dashboard.reading.log_reading import LogChoice, LogTail, read_log
from stromboli.simulator.reports.page.markup import Markup, element

LOG_SECONDS = 2.0
"""For which the end of a log is shown before it is read again."""
TAILS = ("100", "500")
"""Lines of a log to choose from."""


def log_choice(request: ViewRequest, pod: str, containers: Sequence[str]) -> LogChoice:
    """Which log of a pod the address asks for."""
    container = request.choice("container", tuple(containers) or ("",))
    tail = int(request.choice("tail", TAILS))
    return LogChoice(pod, container, request.query.get("previous", "") == "1", tail)


def log_form(
    request: ViewRequest, choice: LogChoice, containers: Sequence[str], pods: Sequence[str]
) -> Markup:
    """By which another log is chosen."""
    previous = element(
        "input", type="checkbox", name="previous", value="1", checked="" if choice.previous else None
    )
    return element(
        "form",
        element("input", type="hidden", name="tab", value="logs"),
        *([_choice("Pod", "pod", pods, choice.pod)] if pods else []),
        _choice("Container", "container", containers, choice.container),
        _choice("Lines", "tail", TAILS, str(choice.tail)),
        element("label", element("span", "Before the restart"), previous),
        element("button", "Show", type="submit"),
        method="get",
        action=request.path,
        class_="filters",
    )


def _choice(title: str, name: str, choices: Sequence[str], chosen: str) -> Markup:
    options = (
        element("option", each, value=each, selected="" if each == chosen else None) for each in choices
    )
    return element("label", element("span", title), element("select", *options, name=name))


async def log_regions(
    request: ViewRequest, namespace: str, pod: str, containers: Sequence[str], pods: Sequence[str] = ()
) -> dict[str, Markup]:
    """The end of a log, and the form by which another is chosen."""
    choice = log_choice(request, pod, containers)
    session = request.session_in(namespace)
    key = (request.viewer.key, namespace, "log", *map(str, choice))
    tail = await request.cluster.reads.read(
        key, LOG_SECONDS, None, lambda: read_log(session, namespace, choice)
    )
    return {
        "log-choice": log_form(request, choice, containers, pods),
        "log": _log_card(tail, f"Log of {choice.pod}, container {choice.container}"),
    }


def _log_card(tail: LogTail, title: str) -> Markup:
    said = notes([tail.note], "warn") if tail.note else Markup("")
    if not tail.lines:
        return card(title, said or notes(["The log is empty so far."]), wide=True)
    return card(title, said, element("div", lines_of(tail.lines, "log"), class_="log-end"), wide=True)
