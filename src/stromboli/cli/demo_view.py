"""How the demo looks: jobs and nodes side by side, the news below, a summary at the end."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stromboli.model.cluster import Cluster
from stromboli.model.dims import CPU
from stromboli.model.job import Job
from stromboli.model.nodes import Node
from stromboli.model.status import ALLOCATED_CLASS, Status
from stromboli.simulator.story import Life, Story

COLOURS = {"research": "cyan", "production": "magenta"}


def at(now: float, line: str) -> str:
    """A line of news with its time."""
    return f"{now:4.0f} s  {line}"


def scene(story: Story, now: float, news: list[str]) -> RenderableType:
    """One moment of the story."""
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(_jobs(story), _nodes(story.world.cluster))
    title = Text(f"Two teams, one cluster: {now:.0f} s of virtual time, cycle {story.cycles}", style="bold")
    return Group(
        title, "", side_by_side, "", *(Text(line, overflow="ellipsis", no_wrap=True) for line in news)
    )


def _jobs(story: Story) -> Table:
    table = Table("Job", "Queue", "Pods", "", box=None, pad_edge=False, header_style="dim")
    for life in story.lives.values():
        queue = life.job.queue.name if life.job.queue else ""
        table.add_row(life.arrival.name, Text(queue, COLOURS.get(queue, "")), _pods(life.job), _state(life))
    return table


def _pods(job: Job) -> Text:
    """One mark per pod."""
    text = Text()
    for task in sorted(job.tasks.values(), key=lambda task: task.order):
        if task.status is Status.SUCCEEDED:
            text.append("✓", "dim")
        elif ALLOCATED_CLASS[task.status]:
            text.append("■", "green")
        else:
            text.append("□", "yellow")
    return text


def _state(life: Life) -> Text:
    if life.finished is not None:
        return Text("done", "dim")
    if life.waits_for:
        return Text(life.waits_for, "yellow")
    return Text("running" if life.started is not None else "", "green")


def _nodes(cluster: Cluster) -> Table:
    table = Table("Node", "CPU", "", box=None, pad_edge=False, header_style="dim")
    for node in cluster.columns.nodes:
        used, size = (
            int(column[CPU, node.row]) for column in (cluster.columns.used, cluster.columns.allocatable)
        )
        table.add_row(node.name, _bar(node, size // 1000), f"{used / 1000:g} of {size / 1000:g}")
    return table


def _bar(node: Node, size: int) -> Text:
    """Two marks per CPU, in the colour of whoever holds it; a best-effort pod is a dot at the end."""
    bar, dots, width = Text(), Text(), 2 * size
    for task in node.tasks:
        queue = task.job.queue.name if task.job and task.job.queue else ""
        marks = int(2 * task.request.get(CPU, 0) / 1000)
        bar.append("█" * marks, COLOURS.get(queue, "")) if marks else dots.append("•", COLOURS.get(queue, ""))
    return bar.append("░" * (width - len(bar)), "dim").append(" ").append(dots)


def summary(story: Story) -> RenderableType:
    """What became of each job, and what it took."""
    table = Table(
        "Job", "Queue", "Pods", "Submitted", "Waited", "Ran", title="In the end", title_justify="left"
    )
    for life in story.lives.values():
        queue = life.job.queue.name if life.job.queue else ""
        ran = None if life.finished is None or life.started is None else life.finished - life.started
        pods = str(len(life.job.tasks))
        table.add_row(life.arrival.name, queue, pods, _s(life.arrival.at), _s(life.waited), _s(ran))
    gangs = [life for life in story.lives.values() if life.job.minimum > 1]
    whole = sum(life.fewest >= life.job.minimum for life in gangs)
    decided = sum(story.decisions.values())
    lines = (
        f"{whole} of {len(gangs)} gangs ran only ever whole: nobody held a part of the cluster while waiting.",
        f"{story.cycles} cycles and {decided} decisions ({story.decisions['Bind']} binds) of the preset basic "
        f"in {story.now:.0f} s of virtual time, {1000 * story.scheduling_s:.0f} ms of which were scheduling.",
    )
    return Group("", table, *lines)


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f} s"
