"""Renders the demo for a terminal of 80 columns and 24 lines: machines, teams, jobs and the latest decisions."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from stromboli.api import names
from stromboli.cli.demo.chronicle import Chronicle, JobRecord, pods_text
from stromboli.cli.demo.frame import Frame, JobState, NodeState, QueueState
from stromboli.cli.demo.story import DURATION, START_UP

WIDTH, HEIGHT = 80, 23
"""Of a frame: a line of the terminal is left for the cursor."""
COLOURS = {"research": "cyan", "production": "magenta"}
_NAME, _TEAM, _PODS = 12, 12, 14
_INDENT = " " * 8


class Marks(NamedTuple):
    """The character for a pod, and for a GPU in the bar of a team."""

    runs: str = "■"
    waits: str = "□"
    starts: str = "▫"
    done: str = "✓"
    lost: str = "✗"
    used: str = "█"
    unused: str = "░"
    half: str = "┃"


UNICODE = Marks()
ASCII = Marks("#", "o", "+", "v", "x", "#", ".", "|")
"""For terminals that do not take Unicode."""


def timestamped(now: float, message: str) -> str:
    return f"{now:4.0f} s  {message}"


def wrap(message: str) -> list[str]:
    """Break a message into lines of the frame's width; it may have line breaks of its own."""
    indent = _INDENT if message.startswith(" ") else ""
    return [
        line
        for part in message.splitlines()
        for line in textwrap.wrap(part, WIDTH, subsequent_indent=indent) or [""]
    ]


def render_frame(
    frame: Frame,
    chronicle: Chronicle,
    now: float,
    messages: list[str],
    marks: Marks = UNICODE,
    total: float = DURATION + START_UP,
) -> RenderableType:
    """Render the cluster at a moment, with the text of the chapter and as many of the latest decisions as fit.

    The first message is the text of the chapter.
    """
    lines = [
        *_machines(frame, now, total),
        Text(),
        *_teams(frame, marks),
        Text(),
        *(_jobs(frame, chronicle, marks) if frame.jobs else ()),
        *(Text(line, "bold") for message in messages[:1] for line in wrap(message)),
    ]
    return Group(*lines, *_latest(messages[1:], HEIGHT - len(lines)))


def _latest(messages: list[str], space: int) -> list[Text]:
    """Return the latest messages that fit, each in full."""
    lines: list[Text] = []
    for message in reversed(messages):
        wrapped = [Text(line) for line in wrap(message)]
        if len(wrapped) + len(lines) > space:
            break
        lines[:0] = wrapped
    return lines


# -- machines and teams


def _machines(frame: Frame, now: float, total: float) -> Iterator[Text]:
    """A letter per GPU: that of the team whose pod uses it."""
    size = f" with {frame.nodes[0].gpus} GPUs each" if frame.nodes else ""
    title = Text(f"Two teams share {len(frame.nodes)} machines{size}", "bold")
    clock = f"{now:.0f} s of about {total:.0f} s"
    yield title.append(clock.rjust(WIDTH - len(title)), "not bold")
    yield Text("  ").join(_machine(node, frame) for node in frame.nodes)
    legend = Text().append("One character per GPU:   ", "dim")
    for queue in frame.queues.values():
        legend.append(_letter(queue.name), _style(queue.name)).append(f" used by {queue.name}   ", "dim")
    yield legend.append(". idle", "dim")


def _machine(node: NodeState, frame: Frame) -> Text:
    text = Text().append(f"{node.name} ", "dim")
    for pod in node.pods:
        job = frame.jobs.get(pod.job)
        queue = job.queue if job is not None else ""
        text.append(_letter(queue) * pod.gpus, _style(queue))
    return text.append("." * (node.gpus - sum(pod.gpus for pod in node.pods)), "dim")


def _letter(queue: str) -> str:
    return queue[:1].upper() or "?"


def _style(queue: str) -> str:
    return f"bold {COLOURS.get(queue, 'white')}"


def _teams(frame: Frame, marks: Marks) -> Iterator[Text]:
    yield Text(f"{'Team':{_NAME}}GPUs in use: its own half up to {marks.half}, then borrowed ones", "dim")
    for queue in frame.queues.values():
        line = Text().append(queue.name.ljust(_NAME), COLOURS.get(queue.name, ""))
        line.append_text(_bar(queue, frame.gpus, marks))
        own = min(queue.used, queue.own)
        borrowed = f" + {queue.used - own} borrowed" if queue.used > own else ""
        yield line.append(f"  {own} of its own {queue.own}{borrowed}")


def _bar(queue: QueueState, gpus: int, marks: Marks) -> Text:
    """A cell per GPU of the cluster, and a line where the team's own half ends."""
    colour = COLOURS.get(queue.name, "green")
    bar = Text()
    for gpu in range(gpus):
        if gpu == queue.own:
            bar.append(marks.half, "bold")
        bar.append(*((marks.used, colour) if gpu < queue.used else (marks.unused, "dim")))
    return bar


# -- jobs


def _jobs(frame: Frame, chronicle: Chronicle, marks: Marks) -> Iterator[Text]:
    yield Text(f"{'Job':{_NAME}}{'Team':{_TEAM}}Pods", "dim")
    for job in frame.jobs.values():
        record = chronicle.jobs[job.name]
        line = Text(record.short_name.ljust(_NAME))
        line.append(job.queue.ljust(_TEAM), COLOURS.get(job.queue, ""))
        line.append_text(_pods(job, record, marks))
        yield line.append_text(_state(job, record))
    legend = (
        (marks.runs, "runs"),
        (marks.waits, "waits"),
        (marks.starts, "starts"),
        (marks.lost, "lost, waits to restart"),
        (marks.done, "done"),
    )
    yield Text("   ".join(f"{mark} {meaning}" for mark, meaning in legend), "dim")
    yield Text()


def _pods(job: JobState, record: JobRecord, marks: Marks) -> Text:
    """A mark for every pod."""
    text = Text()
    for pod in job.pods:
        if pod.phase == names.POD_SUCCEEDED:
            text.append(marks.done, "dim")
        elif pod.terminating or (pod.name in record.restarting and not pod.node):
            text.append(marks.lost, "red")
        elif pod.phase == names.POD_RUNNING:
            text.append(marks.runs, "green")
        else:
            text.append(marks.starts if pod.node else marks.waits, "yellow")
    return text.append(" " * max(1, _PODS - len(text)))


def _state(job: JobState, record: JobRecord) -> Text:
    """The counts of its pods."""
    if job.finished:
        return Text("done", "dim")
    if record.started is None:
        together = ", a gang: all or none" if job.is_gang else ""
        return Text(f"0 of {pods_text(job.replicas)} run{together}", "yellow")
    done = job.count(names.POD_SUCCEEDED)
    return Text(
        f"{job.running} of {pods_text(job.replicas)} run" + (f", {done} done" if done else ""), "green"
    )


# -- the end


def summary(chronicle: Chronicle) -> RenderableType:
    """Render the history of each job, and what became of the rules."""
    rows = [("Job", "Team", "Waited", "Finished", "Lost and restarted")]
    for record in chronicle.jobs.values():
        lost = ", ".join(f"{count} for {job}" for job, count in record.evicted.items()) or "none"
        if record.restarting:
            lost += f" ({len(record.restarting)} not restarted yet)"
        waited = "-" if record.started is None else f"{record.started - record.submitted:.0f} s"
        finished = "not yet" if record.finished is None else f"at {record.finished:.0f} s"
        rows.append((record.short_name, record.queue, waited, finished, lost))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    head, *lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    results = [
        f"{peak.name.capitalize()} used up to {peak.used} GPUs: its own {peak.own} and {peak.used - peak.own} borrowed."
        for peak in chronicle.peaks.values()
        if peak.used > peak.own
    ]
    gangs = [job for job in chronicle.jobs.values() if job.gang and job.started is not None]
    whole = sum(job.min_running is None or job.min_running >= job.gang for job in gangs)
    results.append(f"{whole} of {len(gangs)} gangs always ran with all their pods, never with only a part.")
    return Group(
        Text(),
        Text("The end: what became of the jobs", "bold"),
        Text(head, "dim"),
        *map(Text, [*lines, "", *results, ""]),
    )


def next_steps() -> RenderableType:
    """Render three commands to try."""
    here = Path(sys.executable).with_name("stromboli")
    program = "stromboli" if shutil.which("stromboli") else relative_path(here)
    steps = (
        ("up", "start your own cluster"),
        ("run -d -r 9 -c 4 --name big work", "submit too large a gang"),
        ("explain big", "ask why it waits"),
    )
    width = len(program) + max(len(command) for command, _ in steps) + 3
    lines = [
        Text(f"  {f'{program} {command}':{width}}", "bold").append(purpose, "not bold")
        for command, purpose in steps
    ]
    other = "KUBECONFIG is set: the last two use that cluster instead of yours unless you unset it."
    notes = [Text(other)] if os.environ.get("KUBECONFIG") else []
    return Group(Text("Try next, the last two in a second terminal:"), *lines, *notes)


def relative_path(path: Path) -> str:
    """Return the path from the current directory if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
