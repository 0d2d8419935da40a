"""What pages of single objects have in common: events, what may not be read, commands to copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stromboli.cli.cluster.object_events import Happening
from stromboli.cli.dashboard.pages.page_content import job_address, pod_address
from stromboli.cli.dashboard.pages.page_elements import age, link, notes, phase, plain_table, short_text
from stromboli.kube.api_resources import Resource
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

WARNING = "Warning"
READ_SECONDS = 5.0
"""For which an object is shown before it is read again, if no record of it has changed."""


def gap_notes(gaps: Iterable[str]) -> Markup:
    """What the viewer may not read."""
    return notes((short_text(gap, 600) for gap in gaps), "warn")


# -- events


def event_table(events: Sequence[Happening], namespace: str, now: float) -> Markup:
    """Events, the latest first."""
    if not events:
        return element("p", "There are no events.", class_="note")
    rows = [
        [
            _when(event, now),
            phase(event.type),
            element("strong" if event.type == WARNING else "span", short_text(event.reason, 60)),
            _subject(event, namespace),
            shortened(event.message, 600),
        ]
        for event in reversed(events)
    ]
    classes = ["warning" if event.type == WARNING else None for event in reversed(events)]
    titles = ("Age", "Type", "Reason", "Of", "Message")
    return plain_table("events", titles, rows, text=("Message",), row_classes=classes)


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


# -- texts of many lines


def lines_of(lines: Iterable[str], class_: str) -> Markup:
    """Lines as they are, that can be scrolled with the keyboard."""
    return element("pre", joined(lines, "\n"), class_=class_, tabindex="0")


def command_line(command: str) -> Markup:
    """A command, with a button that copies it."""
    button = element("button", "Copy", type="button", data_copy="", aria_live="polite")
    return element("div", lines_of(command.splitlines(), "command"), button, class_="command-line")


def kubectl_kind(resource: Resource) -> str:
    """As kubectl finds it also where kinds of several groups have the same name."""
    return f"{resource.plural}.{resource.group}".removesuffix(".")
