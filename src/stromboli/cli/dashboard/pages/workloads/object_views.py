"""What pages of single objects have in common: events, manifests, logs, commands to copy, what may not be read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.cluster.object_events import Happening
from stromboli.cli.dashboard.pages.page_content import ViewRequest, job_address, pod_address
from stromboli.cli.dashboard.pages.page_elements import age, card, link, notes, phase, short_text
from stromboli.cli.dashboard.reading.log_reading import LogChoice, LogTail, read_log
from stromboli.cli.output import yaml_text
from stromboli.kube.api_resources import Resource
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

LARGEST_MANIFEST = 64 * 1024
"""Characters of a manifest that are shown."""
LOG_SECONDS = 2.0
"""For which the end of a log is shown before it is read again."""
READ_SECONDS = 5.0
"""For which an object is shown before it is read again, if no record of it has changed."""
DONE = {
    "suspended": "The job is being suspended: its pods are deleted, and it stays until it is resumed.",
    "resumed": "The job is resumed: it starts again, from the beginning.",
    "scaled": "The numbers of pods are changed.",
    "deleted": "The job is being deleted, with its pods.",
    "opened": "The queue is being opened.",
    "closed": "The queue is being closed: it takes no more jobs.",
}
"""What is said after an action, by the value of `done` in the address."""


def session_in(request: ViewRequest, namespace: str) -> ClusterSession:
    """The session of the viewer, for a namespace."""
    session = request.viewer.session
    return ClusterSession(session.client, session.running, namespace, namespace_given=True)


def done_note(request: ViewRequest) -> Markup:
    """That an action which led here was carried out."""
    text = DONE.get(request.query.get("done", ""))
    return element("p", text, class_="said", role="status") if text else Markup("")


def gap_notes(gaps: Iterable[str]) -> Markup:
    """What the viewer may not read."""
    return notes((short_text(gap, 600) for gap in gaps), "warn")


def plain_table(
    name: str,
    titles: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[str] = (),
    text: Collection[str] = (),
) -> Markup:
    """A short table in a fixed order; columns that are empty throughout are left out.

    Columns of `numbers` stand to the right, those of `text` may be broken into lines.
    """
    kept = [place for place in range(len(titles)) if any(str(row[place]) for row in rows)]
    classes = dict.fromkeys(numbers, "number") | dict.fromkeys(text, "text")

    def cells(tag: str, row: Sequence[object], **attributes: str) -> Markup:
        marked = (element(tag, row[place], class_=classes.get(titles[place]), **attributes) for place in kept)
        return element("tr", *marked)

    body = (cells("td", row) for row in rows)
    table = element(
        "table", element("thead", cells("th", titles, scope="col")), element("tbody", joined(body, "\n"))
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=name)


# -- events


def event_table(events: Sequence[Happening], namespace: str, now: float) -> Markup:
    """Events, the latest first."""
    if not events:
        return element("p", "There are no events.", class_="note")
    rows = [
        [
            _when(event, now),
            phase(event.type),
            short_text(event.reason, 60),
            _subject(event, namespace),
            shortened(event.message, 600),
        ]
        for event in reversed(events)
    ]
    return plain_table("events", ("Age", "Type", "Reason", "Of", "Message"), rows, text=("Message",))


def _when(event: Happening, now: float) -> Markup:
    if event.times < 2:
        return age(event.last, now)
    return element("span", age(event.last, now), f" ({event.times:,} times over ", age(event.first, now), ")")


def _subject(event: Happening, namespace: str) -> Markup | str:
    kind, _, name = event.object.partition("/")
    targets = {
        "pod": lambda: pod_address(namespace, name),
        "job": lambda: job_address(namespace, name),
        "podgroup": lambda: job_address(namespace, name, "podgroup"),
    }
    text = short_text(event.object, 40)
    return link(targets[kind](), text) if name and kind in targets else text


# -- manifests


def manifest_card(resource: Resource, manifest: Manifest, namespace: str) -> Markup:
    """An object as YAML, without what only API servers need; the beginning of it if it is large."""
    name = str(manifest["metadata"].get("name") or "")
    command = f"kubectl get {kubectl_kind(resource)} {shlex.quote(name)} -n {shlex.quote(namespace)} -o yaml"
    text, whole = manifest_text(manifest)
    note = "" if whole else f"Only the first {LARGEST_MANIFEST:,} characters are shown."
    return card(
        "Manifest", command_line(command), lines_of(text.splitlines(), "manifest"), note=note, wide=True
    )


def manifest_text(manifest: Manifest) -> tuple[str, bool]:
    """As YAML, or where it is large the beginning of it as JSON; and whether that is all of it."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    kept: dict[str, Any] = {**manifest, "metadata": metadata}
    if len(msgspec.json.encode(kept)) <= LARGEST_MANIFEST:
        text = yaml_text(kept)
    else:
        text = json.dumps(kept, indent=2, ensure_ascii=False)
    return text[:LARGEST_MANIFEST], len(text) <= LARGEST_MANIFEST


def kubectl_kind(resource: Resource) -> str:
    """As kubectl finds it also where kinds of several groups have the same name."""
    return f"{resource.plural}.{resource.group}".removesuffix(".")


# -- texts of many lines


def lines_of(lines: Iterable[str], class_: str) -> Markup:
    """Lines as they are, that can be scrolled with the keyboard."""
    return element("pre", joined(lines, "\n"), class_=class_, tabindex="0")


def command_line(*commands: str) -> Markup:
    """Commands to copy."""
    return lines_of((line for command in commands for line in command.splitlines()), "command")


# -- logs

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
    session = session_in(request, namespace)
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
