"""`stromboli queue delete`."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

import typer

from stromboli.api import names
from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    ChangeReport,
    DryRun,
    seconds_of,
)
from stromboli.cli.cluster.changed_objects import change_each, until_gone
from stromboli.cli.cluster.chosen_objects import Failures, chosen
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text
from stromboli.cli.cluster.cluster_kinds import QUEUES, Manifest, full_name, name_of
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.queue.queue_names import QUEUE_NAMES, parent_of, state_of_queue
from stromboli.cli.queue.queue_state import GROUPS_NAMED, groups_in
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

PERMANENT = (names.ROOT_QUEUE, names.DEFAULT_QUEUE)
STATUS_DELAY, STATUS_PAUSE = 5.0, 0.2
"""Seconds in which the scheduler writes that the last pods of a queue are gone, and between two attempts meanwhile."""


@on_cluster(namespaced=False)
async def delete(
    session: ClusterSession,
    queue_names: list[str] = QUEUE_NAMES,
    force: bool = typer.Option(
        False,
        "--force",
        show_default=False,
        help="Even if jobs are in it, which then belong to no queue. Admission may refuse that.",
    ),
    wait: bool = typer.Option(True, "--wait/--no-wait", help="Until they are gone."),
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Delete queues; one with jobs in it only with --force.

    Exit status 0, 1 if one cannot be deleted, 2 for a wrong command line, 124 after --timeout.
    """
    longest, failures, parts = seconds_of(timeout), Failures(), ReadableParts()
    await change_each(
        await chosen(session, QUEUES, queue_names, failures=failures),
        lambda queue: _delete(session, queue, force, parts, dry_run),
        ChangeReport(QUEUES, "deleted", output, dry_run),
        failures,
        (lambda queue: until_gone(session, QUEUES, queue, longest))
        if wait and dry_run is DryRun.NONE
        else None,
    )
    parts.tell()
    failures.end()


async def _delete(
    session: ClusterSession, queue: Manifest, force: bool, parts: ReadableParts, dry_run: DryRun
) -> bool:
    """Whether it was; an error if not."""
    is_empty = await _check(session, queue, force, parts)
    if dry_run is not DryRun.CLIENT:
        await _send(session, queue, dry_run is DryRun.SERVER, is_empty)
    return True


async def _check(session: ClusterSession, queue: Manifest, force: bool, parts: ReadableParts) -> bool:
    """Report why the API server would refuse, and what would be lost; return whether the queue is known to be empty."""
    name = name_of(queue)
    if name in PERMANENT:
        raise ClusterError(f"{full_name(QUEUES, name)} cannot be deleted: a cluster always has it")
    queues = await parts.list("child queues are not known", session, QUEUES)
    children = sorted(name_of(each) for each in queues or () if parent_of(each) == name)
    if children:
        raise ClusterError(
            f"{full_name(QUEUES, name)} cannot be deleted: queues are below it: {', '.join(children)};"
            " delete them first, or give them another parent"
        )
    groups = await groups_in(session, {name}, parts)
    if force or not (groups or (groups is None and _holds_pods(queue))):
        return groups == []
    listed = ", ".join((groups or [])[:GROUPS_NAMED]) or "pods"
    more = f" and {len(groups) - GROUPS_NAMED} more" if groups and len(groups) > GROUPS_NAMED else ""
    raise ClusterError(
        f"{full_name(QUEUES, name)} is not empty: {listed}{more}; `stromboli queue close {name} --wait` waits for"
        " their end, --force deletes it all the same"
    )


def _holds_pods(queue: Manifest) -> bool:
    allocated = (queue.get("status") or {}).get("allocated") or {}
    return any(str(amount) != "0" for amount in allocated.values())


async def _send(session: ClusterSession, queue: Manifest, dry_run: bool, is_empty: bool) -> None:
    """Delete a queue; while its status still counts pods that are gone, try again.

    The error names the remedy where the API server wants the queue closed first, as older versions of Volcano do.
    """
    name, deadline = name_of(queue), monotonic() + STATUS_DELAY
    while True:
        try:
            await session.delete(QUEUES, name, dry_run=dry_run)
            return
        except ApiError as error:
            if is_empty and "allocated Pods" in str(error) and monotonic() < deadline:
                await asyncio.sleep(STATUS_PAUSE)
                continue
            if "Closed" not in str(error) or state_of_queue(queue) == names.QUEUE_CLOSED:
                raise
            remedy = f"`stromboli queue close {name} --wait` first"
            raise ClusterError(f"{refusal_text(error)}; {remedy}") from None
