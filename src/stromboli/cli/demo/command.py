"""The command: starts a cluster, tells the story, shows it live or line by line."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live

from stromboli.cli.output import console

if TYPE_CHECKING:
    from stromboli.cli.demo.chronicle import Chronicle
    from stromboli.cli.demo.frame import Sight
    from stromboli.embedded.embedded_cluster import Cluster

LONGEST = 55.0
LAST_NEWS = 8
GLANCE = 0.4
PERIOD = 0.3

Show = Callable[["Sight", "Chronicle", float, list[str]], None]


def demo(
    speed: float = typer.Option(1.0, "--speed", min=0.5, max=4.0, help="So many times as fast."),
) -> None:
    """Watch two teams share a cluster on this machine: gangs, quotas, reclaim and preemption, in half a minute."""
    from stromboli.cli.demo.view import next_steps, scene

    out = console()
    if out.is_terminal and sys.stdout.isatty():
        with Live(Group("starting a cluster ..."), console=out, auto_refresh=False) as live:

            def draw(sight: Sight, chronicle: Chronicle, now: float, lines: list[str]) -> None:
                live.update(scene(sight, chronicle, now, lines), refresh=True)

            end = play(draw, lambda _: None, speed)
    else:
        end = play(lambda *_: None, lambda line: _print(out, line), speed)
    out.print(end)
    out.print(next_steps())


def _print(out: Console, line: str) -> None:
    out.print(line, markup=False)
    out.file.flush()


def play(show: Show, tell: Callable[[str], None], speed: float) -> RenderableType:
    """Tell the story on a cluster of its own; what became of everybody."""
    from stromboli.cli.demo.story import NODES
    from stromboli.cli.policy_options import chosen_policy
    from stromboli.cli.up import PRESET
    from stromboli.embedded.cluster_services import Place
    from stromboli.embedded.data_folder import Folder
    from stromboli.embedded.embedded_cluster import NOWHERE, Cluster
    from stromboli.embedded.nodes.node_groups import node_manifests
    from stromboli.extensions import load_catalog

    catalog = load_catalog()
    policy = chosen_policy(None, PRESET, catalog, False)
    assert policy is not None
    folder = Folder(None)
    place = Place(NOWHERE, Path(), node_manifests([NODES]), catalog, policy, period=PERIOD / speed)

    async def story() -> RenderableType:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with Cluster(folder, place) as cluster:
            return await _told(cluster, show, tell, speed)

    try:
        return asyncio.run(story())
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    finally:
        folder.release()


async def _told(cluster: Cluster, show: Show, tell: Callable[[str], None], speed: float) -> RenderableType:
    """Submit chapter after chapter, look, tell; until all jobs are done."""
    from stromboli.cli.demo.chronicle import Chronicle
    from stromboli.cli.demo.frame import look
    from stromboli.cli.demo.story import CHAPTERS, manifests, submit
    from stromboli.cli.demo.view import at, summary
    from stromboli.kube.api_client import Client
    from stromboli.kube.cluster_access import find_access

    chapters, chronicle = deque(CHAPTERS), Chronicle()
    lines: deque[str] = deque(maxlen=LAST_NEWS)
    refused: list[str] = []
    begin, now = time.monotonic(), 0.0
    async with Client(find_access(str(cluster.kubeconfig))) as client:
        while now < LONGEST:
            now = time.monotonic() - begin
            fresh = []
            while chapters and chapters[0].at / speed <= now and chronicle.runs(chapters[0].after):
                chapter = chapters.popleft()
                fresh.append(chapter.says)
                if problem := await submit(client, manifests(chapter.file, speed)):
                    refused.append(problem)
                    fresh.append(f"refused: {problem}")
            sight = await look(client)
            fresh += chronicle.news(sight, now)
            for line in fresh:
                lines.append(at(now, line))
                tell(at(now, line))
            show(sight, chronicle, now, list(lines))
            if not chapters and all(job.over for job in sight.jobs.values() if job.pods):
                break
            await asyncio.sleep(GLANCE / speed)
    return summary(chronicle, now, refused)
