"""The command: starts a cluster, plays the story on it and shows it, live or line by line."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer
from rich.console import Console, RenderableType
from rich.live import Live

from stromboli.cli.output import console

if TYPE_CHECKING:
    from stromboli.cli.demo.chronicle import Chronicle
    from stromboli.cli.demo.frame import Frame
    from stromboli.embedded.embedded_cluster import EmbeddedCluster

TIME_LIMIT = 55.0
"""Seconds after which the demo ends even if jobs are unfinished; more if it is played slowly."""
SCREEN = (80, 24)
"""Columns and lines that a terminal must have for the frames."""
REFRESH_INTERVAL = 0.4
MAX_SPEED = 2.0
"""Faster, jobs end before the decisions about them are visible: their run times shrink, the cluster's delays do not."""
SCHEDULE_PERIOD = 0.3

Show = Callable[["Frame", "Chronicle", float, list[str]], None]


def demo(
    speed: float = typer.Option(
        1.0, "--speed", min=0.5, max=MAX_SPEED, help="Play it this many times as fast."
    ),
) -> None:
    """Watch two teams share a small GPU cluster, in under a minute.

    Starts a cluster with simulated machines on this computer and submits jobs to it. Needs no network, no Docker and
    no GPUs.
    """
    out = console()
    from stromboli.cli.demo.story import DURATION, START_UP

    total = DURATION / speed + START_UP
    _print(out, f"Starting a cluster with 8 simulated machines; the demo takes about {total:.0f} seconds.")
    from stromboli.cli.demo.view import ASCII, UNICODE, next_steps, render_frame

    if is_screen(out):
        marks = UNICODE if out.encoding.lower().startswith("utf") else ASCII
        with Live(console=out, auto_refresh=False, transient=True, vertical_overflow="visible") as live:

            def draw(frame: Frame, chronicle: Chronicle, now: float, messages: list[str]) -> None:
                live.update(render_frame(frame, chronicle, now, messages, marks, total), refresh=True)

            end = play(draw, lambda _: None, speed)
    else:
        end = play(lambda *_: None, lambda line: _print(out, line), speed)
    out.print(end)
    out.print(next_steps(), soft_wrap=True)


def is_screen(out: Console) -> bool:
    """Whether a frame fits and can be drawn over the one before; else the demo prints a line per event."""
    drawable = out.is_terminal and sys.stdout.isatty() and not out.is_dumb_terminal
    return drawable and out.width >= SCREEN[0] and out.height >= SCREEN[1]


def _print(out: Console, line: str) -> None:
    out.print(line, markup=False, soft_wrap=True)
    out.file.flush()


def play(show: Show, print_line: Callable[[str], None], speed: float) -> RenderableType:
    """Play the story on a cluster of its own and return the summary."""
    from stromboli.cli.demo.story import NODES
    from stromboli.cli.up.up_options import PRESET
    from stromboli.embedded.cluster_services import ServiceConfig
    from stromboli.embedded.data_folder import DataFolder
    from stromboli.embedded.embedded_cluster import EmbeddedCluster
    from stromboli.embedded.nodes.node_groups import node_manifests
    from stromboli.extensions import load_catalog
    from stromboli.policy.policy import load_policy
    from stromboli.policy.presets import PRESETS

    catalog = load_catalog()
    # The preset protects new pods for longer than the story takes.
    text = (
        PRESETS[PRESET]
        .replace("protectFor: 5m", "protectFor: 0s")
        .replace("minWaitTime: 5s", "minWaitTime: 0s")
    )
    policy = load_policy(text, catalog, PRESET)
    folder = DataFolder(None)
    config = ServiceConfig(node_manifests([NODES]), catalog, policy, period=SCHEDULE_PERIOD / speed)

    async def story() -> RenderableType:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with EmbeddedCluster(folder, config) as cluster:
            return await _play_chapters(cluster, show, print_line, speed)

    try:
        return asyncio.run(story())
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    finally:
        folder.release()


async def _play_chapters(
    cluster: EmbeddedCluster, show: Show, print_line: Callable[[str], None], speed: float
) -> RenderableType:
    """Submit one chapter after the other and show what happens, until all jobs are done."""
    from stromboli.cli.demo.chronicle import REPORT_WAIT_AFTER, Chronicle
    from stromboli.cli.demo.frame import read_frame
    from stromboli.cli.demo.story import CHAPTERS, manifests, submit
    from stromboli.cli.demo.view import summary, timestamped, wrap
    from stromboli.kube.api_client import Client
    from stromboli.kube.cluster_access import find_access

    chapters, chronicle = deque(CHAPTERS), Chronicle(report_wait_after=REPORT_WAIT_AFTER / speed)
    messages: list[str] = []
    begin, now = time.monotonic(), 0.0
    async with Client(find_access(str(cluster.kubeconfig))) as client:
        while now < TIME_LIMIT / min(speed, 1.0):
            now = time.monotonic() - begin
            if chapters and chapters[0].at / speed <= now and chronicle.is_due(chapters[0]):
                chapter = chapters.popleft()
                await submit(client, manifests(chapter.file, speed))
                messages = [chapter.text]
                print_line("\n".join(["", *wrap(chapter.text)]))
            frame = await read_frame(client)
            for change in chronicle.update(frame, now):
                messages.append(timestamped(now, change))
                print_line("\n".join(wrap(messages[-1])))
            show(frame, chronicle, now, messages)
            if not chapters and all(job.finished for job in frame.jobs.values()):
                break
            await asyncio.sleep(REFRESH_INTERVAL / speed)
    return summary(chronicle)
