"""How the demo looks: queues as bars, jobs with marks and reasons, nodes as a heat map, the news below."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stromboli.cli.demo.chronicle import Chronicle, Life
from stromboli.cli.demo.frame import JobSight, NodeSight, PodSight, QueueSight, Sight
from stromboli.cli.demo.story import folder

COLOURS = {"research": "cyan", "production": "magenta"}
HEAT = ("grey15", "grey23", "wheat4", "orange4", "dark_red")
"""From idle to full."""
BAR = 32
REASON = 46
PER_ROW = 4


def at(now: float, line: str) -> str:
    """A line of news with its time."""
    return f"{now:4.0f} s  {line}"


def scene(sight: Sight, chronicle: Chronicle, now: float, news: list[str]) -> RenderableType:
    """One moment."""
    title = Text(f"Two teams, one cluster, the preset full: {now:.0f} s", "bold")
    lines = (Text(line, overflow="ellipsis", no_wrap=True) for line in news)
    side_by_side = Table.grid(padding=(0, 5))
    side_by_side.add_row(_queues(sight), _nodes(sight))
    return Group(title, "", side_by_side, "", _jobs(sight, chronicle), "", *lines)


def _queues(sight: Sight) -> Table:
    table = Table("Queue", "CPUs, and what it deserves", "", box=None, pad_edge=False, header_style="dim")
    for queue in sight.queues.values():
        table.add_row(
            Text(queue.name, COLOURS.get(queue.name, "")), _bar(queue, sight.size), f"{queue.used:g}"
        )
    return table


def _bar(queue: QueueSight, size: float) -> Text:
    """As long as the cluster; a mark where its share ends."""
    filled = round(BAR * queue.used / size) if size else 0
    share = round(BAR * queue.deserved / size) if size else 0
    colour = COLOURS.get(queue.name, "green")
    bar = Text()
    for place in range(BAR):
        mark = "┃" if place == share else "█" if place < filled else "░"
        bar.append(mark, "bold white" if place == share else colour if place < filled else "dim")
    return bar


def _nodes(sight: Sight) -> Table:
    """A cell per node: the warmer, the fuller; a square per CPU in the colour of whoever holds it."""
    table = Table.grid(padding=(0, 1))
    table.add_row(Text("Nodes", "dim"))
    for begin in range(0, len(sight.nodes), PER_ROW):
        table.add_row(*(_node(node, sight) for node in sight.nodes[begin : begin + PER_ROW]))
    return table


def _node(node: NodeSight, sight: Sight) -> Text:
    share = min(1.0, node.used / node.size) if node.size else 0.0
    heat = HEAT[min(len(HEAT) - 1, round(share * (len(HEAT) - 1)))]
    text = Text(f" {node.name:3}", f"white on {heat}")
    for pod in node.pods:
        colour = COLOURS.get(_queue(pod, sight), "white")
        text.append("■" * round(pod.cpu) or "•", f"bold {colour} on {heat}")
    return text.append(" " * max(0, round(node.size) + 6 - len(text)), f"on {heat}")


def _queue(pod: PodSight, sight: Sight) -> str:
    job = sight.jobs.get(pod.job)
    return job.queue if job is not None else ""


def _jobs(sight: Sight, chronicle: Chronicle) -> Table:
    table = Table("Job", "Queue", "Gang", "Pods", "", box=None, pad_edge=False, header_style="dim")
    for job in (sight.jobs[name] for name in chronicle.lives if name in sight.jobs):
        name = Text(job.name.rpartition("/")[2])
        queue = Text(job.queue, COLOURS.get(job.queue, ""))
        gang = f"{job.minimum} of {max(len(job.pods), job.minimum)}"
        table.add_row(name, queue, gang, _marks(job), _state(job, chronicle.lives.get(job.name)))
    return table


def _marks(job: JobSight) -> Text:
    """One mark per pod."""
    text = Text()
    for pod in job.pods:
        if pod.leaving:
            text.append("x", "red")
        elif pod.phase == "Succeeded":
            text.append("✓", "dim")
        elif pod.phase == "Running":
            text.append("■", "green")
        else:
            text.append("▫" if pod.node else "□", "yellow")
    return text


def _state(job: JobSight, life: Life | None) -> Text:
    lost = f", {life.evicted} evicted" if life is not None and life.evicted else ""
    if not job.pods:
        return Text("no pods: refused", "red")
    if job.over:
        return Text(f"done{lost}", "dim")
    if life is not None and life.started is not None:
        return Text(f"running{lost}", "green")
    return Text(_short(job.reason) or "waiting", "yellow")


def _short(reason: str) -> str:
    return reason if len(reason) <= REASON else reason[: REASON - 1] + "…"


def summary(chronicle: Chronicle, seconds: float, refused: list[str]) -> RenderableType:
    """What became of each job."""
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
    for life in chronicle.lives.values():
        waited = None if life.started is None else life.started - life.submitted
        ran = None if life.finished is None or life.started is None else life.finished - life.started
        name, evicted = life.name.rpartition("/")[2], str(life.evicted or "")
        table.add_row(name, life.queue, str(life.pods), _s(life.submitted), _s(waited), _s(ran), evicted)
    gangs = [one for one in chronicle.lives.values() if one.minimum > 1 and one.started is not None]
    whole = sum(one.fewest is None or one.fewest >= one.minimum for one in gangs)
    lines = [f"{whole} of {len(gangs)} gangs ran only ever whole; {seconds:.0f} s on a cluster of your own."]
    lines += [f"Refused by quota: {one}" for one in refused]
    return Group("", table, *(Text(line, no_wrap=False) for line in lines))


def next_steps() -> RenderableType:
    """Three things to try."""
    steps = (
        ("stromboli up", f"a cluster for your own kubectl; then: kubectl apply -f {shown(folder())}"),
        (
            "stromboli up --real",
            "pods are processes; then: kubectl run hi --image=none --command -- sleep 60",
        ),
        ("stromboli node fail n1", "cut a node's power while something runs there"),
    )
    table = Table.grid(padding=(0, 2))
    for command, what in steps:
        table.add_row(Text(f"  {command}", "bold"), Text(what))
    return Group("", Text("Try next:"), table)


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"


def shown(path: Path) -> str:
    """As short as it can be from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
