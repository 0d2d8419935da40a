"""`stromboli top`: queues, jobs, nodes and what waits, live."""

from __future__ import annotations

import asyncio
import enum
import shutil
import sys
import time
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage, print_note
from stromboli.cli.cluster.cluster_errors import ClusterError, shown
from stromboli.cli.cluster.on_cluster import on_cluster

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.live.cluster_content import ClusterContent
    from stromboli.cli.live.record_watches import RecordWatches
    from stromboli.cli.top.frame_text import ScreenState

WITHOUT_TERMINAL = (100, 40)
"""Columns and lines of a frame where there is no terminal."""
LONGEST_LIST_SECONDS = 120.0
"""For `--once`: until everything must have been read."""


class TopFormat(enum.StrEnum):
    """`table` is a frame as the screen shows it."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class TopView(enum.StrEnum):
    """The views, in the order of the screen."""

    ALL = "all"
    QUEUES = "queues"
    WAITING = "waiting"
    JOBS = "jobs"
    NODES = "nodes"
    LATELY = "lately"


@on_cluster()
async def top(
    session: ClusterSession,
    once: bool = typer.Option(
        False, "--once", show_default=False, help="Print one frame; the same where there is no terminal."
    ),
    view: TopView = typer.Option(TopView.ALL, "--view", help="The view to begin with."),
    filter: str = typer.Option(
        "", "--filter", metavar="TEXT", show_default=False, help="Only rows in which this text is."
    ),
    sort: str = typer.Option(
        "", "--sort", metavar="ORDER", show_default=False, help="Of the view: name, use, age, queue, ..."
    ),
    output: TopFormat = typer.Option(
        TopFormat.TABLE, "--output", "-o", help="json and yaml: one snapshot in full."
    ),
) -> None:
    """Show a cluster live: queues with what they use and deserve, jobs, what waits and why, nodes, what happened.

    Keys: q quits, Tab and the arrows change the view and scroll, / filters, s sorts, p pauses. With -n only the
    jobs and pods of that namespace are read; else those of all.

    Exit status 0, 1 if the cluster refuses or does not answer, 2 for a wrong command line.
    """
    from stromboli.cli.live.cluster_records import ClusterRecords
    from stromboli.cli.live.record_watches import RecordWatches
    from stromboli.cli.top.frame_text import ScreenState
    from stromboli.cli.top.top_screen import silent_log

    state = ScreenState(tab=list(TopView).index(view), filter=filter[:100], where=_where(session))
    _choose_sorting(state, sort)
    once = once or output is not TopFormat.TABLE or not sys.stdout.isatty()
    async with silent_log():
        watches = RecordWatches(session, ClusterRecords(), lists_only=once)
        async with watches.running():
            content = await _content(session, watches)
            if once:
                await _print_once(content, watches, state, output)
            else:
                await _show(content, watches, state)


def _where(session: ClusterSession) -> str:
    where = session.running.data if session.running is not None else session.client.access.server
    return f"{where} namespace {session.namespace}" if session.namespace_given else str(where)


def _choose_sorting(state: ScreenState, sort: str) -> None:
    """`Usage` if the view cannot be sorted so."""
    if not sort:
        return
    if state.view is None:
        raise Usage("--sort needs a --view, such as --view nodes")
    orders = [sorting.name for sorting in state.view.sortings]
    if sort not in orders:
        raise Usage(shown(f"--sort {sort}: {state.view.title.lower()} are sorted by {', '.join(orders)}"))
    state.sortings[state.view.title] = orders.index(sort)


async def _content(session: ClusterSession, watches: RecordWatches) -> ClusterContent:
    """With the policy in force, read while the watches list."""
    from stromboli.cli.live.cluster_content import ClusterContent
    from stromboli.cli.status.cluster_policy import policy_in_force
    from stromboli.extensions import load_catalog
    from stromboli.kube.request import NoResponse

    catalog = load_catalog()
    try:
        policy = await policy_in_force(session.client, session.running, catalog)
    except NoResponse:
        policy = None
    return ClusterContent(watches.records, policy, catalog)


async def _print_once(
    content: ClusterContent, watches: RecordWatches, state: ScreenState, output: TopFormat
) -> None:
    from stromboli.cli.cluster.object_output import ObjectFormat, write_document
    from stromboli.cli.output import console
    from stromboli.cli.top.top_screen import frame

    try:
        async with asyncio.timeout(LONGEST_LIST_SECONDS):
            await watches.listed()
    except TimeoutError:
        why = "; ".join(watches.problems()) or watches.progress()
        raise ClusterError(f"not all could be read within {LONGEST_LIST_SECONDS:g} seconds: {why}") from None
    if watches.sees_nothing:
        raise ClusterError(watches.refusals[0])
    for problem in watches.refusals + watches.absences:
        print_note(problem)
    if output is not TopFormat.TABLE:
        write_document(content.snapshot(time.time()), ObjectFormat(output.value))
        return
    columns, lines = shutil.get_terminal_size(WITHOUT_TERMINAL)
    for line in frame(content, state, columns, lines):
        console().print(line, soft_wrap=True)


async def _show(content: ClusterContent, watches: RecordWatches, state: ScreenState) -> None:
    from stromboli.cli.output import console
    from stromboli.cli.top.top_screen import TopScreen

    listing = asyncio.create_task(watches.listed())
    try:
        await TopScreen(console(), content, watches, state).show()
    finally:
        listing.cancel()
        await asyncio.gather(listing, return_exceptions=True)
