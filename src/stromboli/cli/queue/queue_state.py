"""`stromboli queue open` and `close`: commands to the queue controller, and waiting for their effect."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.cli.cli_errors import print_note
from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    WAIT,
    ChangeReport,
    DryRun,
    ProgressLine,
    seconds_of,
)
from stromboli.cli.cluster.changed_objects import change_each
from stromboli.cli.cluster.chosen_objects import Failures, chosen
from stromboli.cli.cluster.cluster_errors import ClusterError, TimedOut, shown
from stromboli.cli.cluster.cluster_kinds import POD_GROUPS, QUEUES, Manifest, full_name, name_of
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.queue.queue_editing import until_open
from stromboli.cli.queue.queue_names import QUEUE_NAMES, below, state_of_queue
from stromboli.cli.queue.queue_orders import CLOSING, OPENING, QueueOrder, check_order, send_order

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

POLL = 1.0
"""Seconds from look to look at what is left in a closing queue."""
GROUPS_NAMED = 5


@on_cluster(namespaced=False)
async def open_queues(
    session: ClusterSession,
    queue_names: list[str] = QUEUE_NAMES,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Open queues: they take jobs again, and so do the queues below that were closed with them.

    With --wait until they are Open.

    Exit status 0, 1 if one cannot be opened, 2 for a wrong command line, 124 after --timeout.
    """
    longest, failures = seconds_of(timeout), Failures()
    await change_each(
        await chosen(session, QUEUES, queue_names, failures=failures),
        lambda queue: _send(session, queue, OPENING, dry_run),
        ChangeReport(QUEUES, OPENING.verb, output, dry_run),
        failures,
        (lambda queue: until_open(session, name_of(queue), longest))
        if wait and dry_run is DryRun.NONE
        else None,
    )
    failures.end()


@on_cluster(namespaced=False)
async def close_queues(
    session: ClusterSession,
    queue_names: list[str] = QUEUE_NAMES,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Close queues: they and those below take no more jobs; what is in them goes on to its end.

    A queue is Closing until its last PodGroup is gone, and then Closed. With --wait until then.

    Exit status 0, 1 if one cannot be closed, 2 for a wrong command line, 124 after --timeout.
    """
    longest, failures = seconds_of(timeout), Failures()
    await change_each(
        await chosen(session, QUEUES, queue_names, failures=failures),
        lambda queue: _send(session, queue, CLOSING, dry_run),
        ChangeReport(QUEUES, CLOSING.verb, output, dry_run),
        failures,
        (lambda queue: until_closed(session, name_of(queue), longest))
        if wait and dry_run is DryRun.NONE
        else None,
    )
    failures.end()


async def _send(session: ClusterSession, queue: Manifest, order: QueueOrder, dry_run: DryRun) -> bool:
    """Whether it is so now, or will be; an error if it cannot be."""
    if note := await check_order(session, queue, order):
        print_note(shown(note))
    elif dry_run is not DryRun.CLIENT:
        await send_order(session, queue, order, dry_run is DryRun.SERVER)
    return True


async def until_closed(session: ClusterSession, name: str, timeout: float) -> None:
    """Until a queue and those below it are Closed; the PodGroups that are left are counted meanwhile."""
    progress, parts = ProgressLine(), ReadableParts()
    until = time.monotonic() + timeout
    try:
        while True:
            queues = (await session.list(QUEUES)).items
            states = {name_of(queue): state_of_queue(queue) for queue in queues}
            if name not in states:
                raise ClusterError(f"{full_name(QUEUES, name)} was deleted before it was Closed")
            waiting = {
                each: states[each]
                for each in (name, *below(queues, name))
                if states[each] != names.QUEUE_CLOSED
            }
            if not waiting:
                return
            left = await groups_in(session, set(waiting), parts)
            text = _text_of_rest(name, waiting, left)
            if time.monotonic() >= until:
                raise TimedOut(f"{text}; --timeout says how long to wait")
            progress.show(text)
            await asyncio.sleep(min(POLL, max(0.0, until - time.monotonic())))
    finally:
        progress.clear()
        parts.tell()


def _text_of_rest(name: str, waiting: dict[str, str], left: list[str] | None) -> str:
    state = waiting.get(name) or ", ".join(f"{each} {state}" for each, state in sorted(waiting.items()))
    text = f"{full_name(QUEUES, name)} is {state}" if name in waiting else f"below {name}: {state}"
    if left is None:
        return text
    more = f" and {len(left) - GROUPS_NAMED} more" if len(left) > GROUPS_NAMED else ""
    groups = "PodGroup is" if len(left) == 1 else "PodGroups are"
    return f"{text}: {len(left)} {groups} left{': ' if left else ''}{', '.join(left[:GROUPS_NAMED])}{more}"


async def groups_in(session: ClusterSession, queues: set[str], parts: ReadableParts) -> list[str] | None:
    """The PodGroups of queues, by their jobs if they have any; None if the user may not list them."""
    groups = await parts.list("what is left in a queue is not known", session, POD_GROUPS, "")
    if groups is None:
        return None
    return sorted(
        f"{group['metadata'].get('namespace')}/{_owner(group) or name_of(group)}"
        for group in groups
        if ((group.get("spec") or {}).get("queue") or names.DEFAULT_QUEUE) in queues
    )


def _owner(group: Manifest) -> str:
    """The name of the job or workload that a PodGroup belongs to."""
    owners = group["metadata"].get("ownerReferences") or ()
    return str(next((owner.get("name") for owner in owners if owner.get("controller")), "") or "")
