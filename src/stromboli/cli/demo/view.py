"""Renders the demo: queues as bars, jobs with marks and reasons, nodes as a heat map, the latest lines below."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stromboli.cli.demo.chronicle import Chronicle, JobRecord
from stromboli.cli.demo.frame import Frame, JobState, NodeState, PodState, QueueState
from stromboli.cli.demo.story import folder

COLOURS = {"research": "cyan", "production": "magenta"}
HEAT = ("grey15", "grey23", "wheat4", "orange4", "dark_red")
"""From idle to full."""
BAR = 32
REASON = 46
PER_ROW = 4


def timestamped(now: float, line: str) -> str:
    return f"{now:4.0f} s  {line}"


def render_frame(frame: Frame, chronicle: Chronicle, now: float, messages: list[str]) -> RenderableType:
    title = Text(f"Two teams, one cluster, the preset full: {now:.0f} s", "bold")
    lines = (Text(line, overflow="ellipsis", no_wrap=True) for line in messages)
    side_by_side = Table.grid(padding=(0, 5))
    side_by_side.add_row(_queues(frame), _nodes(frame))
    return Group(title, "", side_by_side, "", _jobs(frame, chronicle), "", *lines)


def _queues(frame: Frame) -> Table:
    table = Table("Queue", "CPUs, and what it deserves", "", box=None, pad_edge=False, header_style="dim")
    for queue in frame.queues.values():
        table.add_row(
            Text(queue.name, COLOURS.get(queue.name, "")), _bar(queue, frame.size), f"{queue.used:g}"
        )
    return table


def _bar(queue: QueueState, size: float) -> Text:
    """As wide as the whole cluster, with a mark where the deserved share ends."""
    filled = round(BAR * queue.used / size) if size else 0
    share = round(BAR * queue.deserved / size) if size else 0
    colour = COLOURS.get(queue.name, "green")
    bar = Text()
    for column in range(BAR):
        mark = "┃" if column == share else "█" if column < filled else "░"
        bar.append(mark, "bold white" if column == share else colour if column < filled else "dim")
    return bar


def _nodes(frame: Frame) -> Table:
    """A cell per node: the warmer, the fuller; a square per CPU in the colour of the queue that uses it."""
    table = Table.grid(padding=(0, 1))
    table.add_row(Text("Nodes", "dim"))
    for begin in range(0, len(frame.nodes), PER_ROW):
        table.add_row(*(_node(node, frame) for node in frame.nodes[begin : begin + PER_ROW]))
    return table


def _node(node: NodeState, frame: Frame) -> Text:
    share = min(1.0, node.used / node.size) if node.size else 0.0
    heat = HEAT[min(len(HEAT) - 1, round(share * (len(HEAT) - 1)))]
    text = Text(f" {node.name:3}", f"white on {heat}")
    for pod in node.pods:
        colour = COLOURS.get(_queue(pod, frame), "white")
        text.append("■" * round(pod.cpu) or "•", f"bold {colour} on {heat}")
    return text.append(" " * max(0, round(node.size) + 6 - len(text)), f"on {heat}")


def _queue(pod: PodState, frame: Frame) -> str:
    job = frame.jobs.get(pod.job)
    return job.queue if job is not None else ""


def _jobs(frame: Frame, chronicle: Chronicle) -> Table:
    table = Table("Job", "Queue", "Gang", "Pods", "", box=None, pad_edge=False, header_style="dim")
    for job in (frame.jobs[name] for name in chronicle.jobs if name in frame.jobs):
        name = Text(job.name.rpartition("/")[2])
        queue = Text(job.queue, COLOURS.get(job.queue, ""))
        gang = f"{job.minimum} of {max(len(job.pods), job.minimum)}"
        table.add_row(name, queue, gang, _marks(job), _state(job, chronicle.jobs.get(job.name)))
    return table


def _marks(job: JobState) -> Text:
    """One mark per pod."""
    text = Text()
    for pod in job.pods:
        if pod.terminating:
            text.append("x", "red")
        elif pod.phase == "Succeeded":
            text.append("✓", "dim")
        elif pod.phase == "Running":
            text.append("■", "green")
        else:
            text.append("▫" if pod.node else "□", "yellow")
    return text


def _state(job: JobState, record: JobRecord | None) -> Text:
    lost = f", {record.evicted} evicted" if record is not None and record.evicted else ""
    if not job.pods:
        return Text("no pods: refused", "red")
    if job.finished:
        return Text(f"done{lost}", "dim")
    if record is not None and record.started is not None:
        return Text(f"running{lost}", "green")
    return Text(_short(job.reason) or "waiting", "yellow")


def _short(reason: str) -> str:
    return reason if len(reason) <= REASON else reason[: REASON - 1] + "…"


def summary(chronicle: Chronicle, seconds: float, refused: list[str]) -> RenderableType:
    """The history of each job."""
    table = Table(
        "Job",
        "Queue",
        "Pods",
        "Submitted",
        "Waited",
        "Ran",
        "Evicted",
        title="In the end",
        title_justify="left",
    )
    for record in chronicle.jobs.values():
        waited = None if record.started is None else record.started - record.submitted
        ran = None if record.finished is None or record.started is None else record.finished - record.started
        name, evicted = record.name.rpartition("/")[2], str(record.evicted or "")
        table.add_row(
            name,
            record.queue,
            str(record.pods),
            _seconds(record.submitted),
            _seconds(waited),
            _seconds(ran),
            evicted,
        )
    gangs = [job for job in chronicle.jobs.values() if job.minimum > 1 and job.started is not None]
    whole = sum(gang.min_running is None or gang.min_running >= gang.minimum for gang in gangs)
    lines = [f"{whole} of {len(gangs)} gangs ran only ever whole; {seconds:.0f} s on a cluster of your own."]
    lines += [f"Refused by quota: {message}" for message in refused]
    return Group("", table, *(Text(line, no_wrap=False) for line in lines))


def next_steps() -> RenderableType:
    """Three commands to try."""
    steps = (
        ("stromboli up", f"a cluster for your own kubectl; then: kubectl apply -f {relative_path(folder())}"),
        (
            "stromboli up --real",
            "pods are processes; then: kubectl run hi --image=none --command -- sleep 60",
        ),
        ("stromboli node fail n1", "cut a node's power while something runs there"),
    )
    table = Table.grid(padding=(0, 2))
    for command, purpose in steps:
        table.add_row(Text(f"  {command}", "bold"), Text(purpose))
    return Group("", Text("Try next:"), table)


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"


def relative_path(path: Path) -> str:
    """The path from the current folder if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
