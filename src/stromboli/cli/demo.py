"""`stromboli demo`: two teams share a cluster, in virtual time, under the preset `basic`."""

import sys
import time
from collections import deque

import typer
from rich.console import Console, Group
from rich.live import Live

from stromboli.cli.demo_view import at, scene, summary
from stromboli.cli.output import console
from stromboli.engine.policy import load_policy
from stromboli.engine.presets import preset
from stromboli.extensions import load_catalog
from stromboli.simulator.story import Arrival, Story

NODES = "\n".join(f"node-{number} cpu=8,memory=32Gi" for number in range(1, 5))
QUEUES = "research weight=1; production weight=1"
ARRIVALS = (
    Arrival(0, "train", 14, {"queue": "research", "pods": 4, "cpu": 4, "min_resources": {"cpu": 16}}),
    Arrival(2, "report", 9, {"queue": "production", "pods": 3, "cpu": 4, "min_resources": {"cpu": 12}}),
    Arrival(4, "sweep", 8, {"queue": "research", "pods": 4, "cpu": 4, "min_resources": {"cpu": 16}}),
    Arrival(5, "nightly", 8, {"queue": "production", "pods": 6, "cpu": 2}),
    Arrival(7, "heartbeat", 12, {"queue": "production"}),
    Arrival(9, "notebook", 5, {"queue": "research", "cpu": 1}),
    Arrival(16, "render", 6, {"queue": "production", "pods": 4, "cpu": 4, "min_resources": {"cpu": 16}}),
)
LONGEST = 120
SECONDS_PER_CYCLE = 0.55
LAST_NEWS = 7


def demo(
    fast: bool = typer.Option(False, "--fast", help="Do not wait between cycles, as when nobody watches."),
) -> None:
    """Watch two teams share a cluster: gangs wait and start together, a best-effort pod slips in between."""
    catalog = load_catalog()
    story = Story(NODES, QUEUES, ARRIVALS, load_policy(preset("basic"), catalog, "preset basic"), catalog)
    out = console()
    if out.is_terminal and sys.stdout.isatty() and not fast:
        _show_live(story, out)
    else:
        _print(story, out)
    out.print(summary(story))


def _show_live(story: Story, out: Console) -> None:
    news: deque[str] = deque(maxlen=LAST_NEWS)
    with Live(Group(), console=out, auto_refresh=False) as live:
        while not story.over and story.now < LONGEST:
            now = story.now
            news.extend(at(now, line) for line in story.tick())
            live.update(scene(story, now, list(news)), refresh=True)
            time.sleep(SECONDS_PER_CYCLE)


def _print(story: Story, out: Console) -> None:
    while not story.over and story.now < LONGEST:
        now = story.now
        for line in story.tick():
            out.print(at(now, line), markup=False)
