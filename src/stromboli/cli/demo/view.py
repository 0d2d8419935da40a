"""Renders the demo for a terminal of 80 columns and 24 lines: machines, teams, jobs, and what happened lately."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stromboli.cli.demo.chronicle import Chronicle, JobRecord
from stromboli.cli.demo.frame import Frame, JobState, NodeState, QueueState
from stromboli.cli.demo.story import folder

WIDTH, HEIGHT = 80, 23
"""Of a frame: a line of the terminal is left for the cursor."""
COLOURS = {"research": "cyan", "production": "magenta"}
_NAME, _TEAM, _PODS = 11, 12, 14
_INDENT = " " * 8


class Marks(NamedTuple):
    """What a pod, and a CPU of a team's bar, looks like."""

    runs: str = "■"
    waits: str = "□"
    starts: str = "▫"
    done: str = "✓"
    gone: str = "✗"
    used: str = "█"
    unused: str = "░"
    share: str = "┃"


UNICODE = Marks()
ASCII = Marks("#", "o", "+", "v", "x", "#", ".", "|")
"""For terminals that do not take Unicode."""


def timestamped(now: float, line: str) -> str:
    return f"{now:4.0f} s  {line}"


def render_frame(
    frame: Frame, chronicle: Chronicle, now: float, messages: list[str], marks: Marks = UNICODE
) -> RenderableType:
    """The cluster at a moment, with as many of the latest messages as there is room for."""
    head = [
        *_machines(frame, now),
        Text(),
        *_teams(frame, marks),
        Text(),
        *_jobs(frame, chronicle, marks),
        Text(),
    ]
    return Group(*head, *_latest(messages, HEIGHT - len(head)))


def _latest(messages: list[str], room: int) -> list[Text]:
    """The latest messages that fit, each in full."""
    lines: list[Text] = []
    for message in reversed(messages):
        wrapped = [Text(line) for line in wrap(message)]
        if len(wrapped) + len(lines) > room:
            break
        lines[:0] = wrapped
    return lines


def wrap(message: str) -> list[str]:
    """A message in lines of the frame's width."""
    return textwrap.wrap(message, WIDTH, subsequent_indent=_INDENT) or [""]


# -- machines and teams


def _machines(frame: Frame, now: float) -> Iterator[Text]:
    """A letter per CPU: that of the team whose pod has it."""
    size = f" of {frame.nodes[0].size:g} CPUs" if frame.nodes else ""
    title = Text(f"Two teams share {len(frame.nodes)} machines{size}", "bold")
    clock = f"{now:.0f} s"
    yield title.append(clock.rjust(WIDTH - len(title)), "not bold")
    yield Text("  ").join(_machine(node, frame) for node in frame.nodes)
    legend = Text()
    for queue in frame.queues.values():
        legend.append(_letter(queue.name), _style(queue.name)).append(f" a CPU of {queue.name}   ", "dim")
    yield legend.append(". a free CPU", "dim")


def _machine(node: NodeState, frame: Frame) -> Text:
    text = Text(f"{node.name} ", "dim")
    for pod in node.pods:
        job = frame.jobs.get(pod.job)
        queue = job.queue if job is not None else ""
        text.append(_letter(queue) * round(pod.cpu), _style(queue))
    free = max(0, round(node.size - node.used))
    return text.append("." * free, "dim")


def _letter(queue: str) -> str:
    return queue[:1].upper() or "?"


def _style(queue: str) -> str:
    return f"bold {COLOURS.get(queue, 'white')}"


def _teams(frame: Frame, marks: Marks) -> Iterator[Text]:
    for queue in frame.queues.values():
        line = Text(queue.name.ljust(_NAME), COLOURS.get(queue.name, ""))
        line.append_text(_bar(queue, frame.size, marks))
        yield line.append(f"  uses {queue.used:g} CPUs, fair share {queue.deserved:g}")
    yield (
        Text(" " * _NAME)
        .append(marks.used, "dim")
        .append(" a CPU in use   ", "dim")
        .append(marks.share, "bold")
        .append(" where the fair share ends", "dim")
    )


def _bar(queue: QueueState, size: float, marks: Marks) -> Text:
    """A cell per CPU of the cluster, and a line where the fair share ends."""
    colour = COLOURS.get(queue.name, "green")
    bar = Text()
    for cpu in range(round(size)):
        if cpu == round(queue.deserved):
            bar.append(marks.share, "bold")
        bar.append(*((marks.used, colour) if cpu < queue.used else (marks.unused, "dim")))
    return bar


# -- jobs


def _jobs(frame: Frame, chronicle: Chronicle, marks: Marks) -> Iterator[Text]:
    yield Text(f"{'Job':{_NAME}}{'Team':{_TEAM}}{'Its pods':{_PODS}}", "dim")
    for record in chronicle.jobs.values():
        job = frame.jobs.get(record.name)
        if job is not None:
            line = Text(record.short_name.ljust(_NAME))
            line.append(job.queue.ljust(_TEAM), COLOURS.get(job.queue, ""))
            line.append_text(_pods(job, record, marks))
            yield line.append_text(_state(job, record))
    legend = Text(" " * (_NAME + _TEAM))
    for mark, meaning in (
        (marks.runs, "runs"),
        (marks.waits, "waits"),
        (marks.starts, "starts"),
        (marks.done, "done"),
        (marks.gone, "gave way"),
    ):
        legend.append(f"{mark} {meaning}   ", "dim")
    yield legend


def _pods(job: JobState, record: JobRecord, marks: Marks) -> Text:
    """A mark for every pod that the job ever had; those that gave way are gone for good."""
    text = Text()
    for pod in job.pods:
        if pod.terminating:
            text.append(marks.gone, "red")
        elif pod.phase == "Succeeded":
            text.append(marks.done, "dim")
        elif pod.phase == "Running":
            text.append(marks.runs, "green")
        else:
            text.append(marks.starts if pod.node else marks.waits, "yellow")
    text.append(marks.gone * max(0, record.pods - len(job.pods)), "red")
    return text.append(" " * max(1, _PODS - len(text)))


def _state(job: JobState, record: JobRecord) -> Text:
    """What becomes of its pods: counts are always of all the pods that it was submitted with."""
    if not record.pods:
        return Text("refused: more than its team may ask for", "red")
    all_pods = f"{record.pods} pod{'s' * (record.pods > 1)}"
    if job.finished:
        return Text(f"done, {job.count('Succeeded')} of {all_pods}", "dim")
    if record.started is not None:
        return Text(f"{job.running} of {all_pods} run", "green")
    together = f", {record.minimum} must start together" if record.minimum > 1 else ""
    return Text(f"0 of {all_pods} run{together}", "yellow")


# -- the end


def summary(chronicle: Chronicle, refused: list[str]) -> RenderableType:
    """The history of each job."""
    table = Table(
        "Job",
        "Team",
        "Pods",
        "Submitted",
        "Waited",
        "Ran",
        "Gave way",
        title="What became of the jobs",
        title_justify="left",
    )
    for record in chronicle.jobs.values():
        waited = None if record.started is None else record.started - record.submitted
        ran = None if record.finished is None or record.started is None else record.finished - record.started
        table.add_row(
            record.short_name,
            record.queue,
            str(record.pods),
            _seconds(record.submitted),
            _seconds(waited),
            _seconds(ran),
            f"{record.evicted} pod{'s' * (record.evicted > 1)}" if record.evicted else "",
        )
    gangs = [job for job in chronicle.jobs.values() if job.minimum > 1 and job.started is not None]
    whole = sum(gang.min_running is None or gang.min_running >= gang.minimum for gang in gangs)
    lines = [f"{whole} of {len(gangs)} gangs (pods that start together or not at all) ran only ever whole."]
    lines += [line for message in refused for line in wrap(f"Refused: {message}")]
    return Group(table, *map(Text, lines))


def next_steps() -> RenderableType:
    """Commands to try."""
    manifests = relative_path(folder())
    steps = (
        ("stromboli up", f"a cluster for kubectl; apply -f {manifests} there"),
        ("stromboli up --real", "the same, and pods run as processes"),
        ("stromboli node fail n1", "cut the power of one of its machines"),
    )
    lines = [Text(f"  {command:24}", "bold").append(purpose, "not bold") for command, purpose in steps]
    return Group(Text("Try next, after `. .venv/bin/activate` if need be:"), *lines)


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"


def relative_path(path: Path) -> str:
    """The path from the current folder if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
