"""`stromboli queue list` and `get`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.cli.cluster.change_options import report_changes
from stromboli.cli.cluster.chosen_objects import Failures, chosen
from stromboli.cli.cluster.cluster_kinds import QUEUES, Manifest, name_of
from stromboli.cli.cluster.object_output import (
    OUTPUT,
    SELECTOR,
    WATCH,
    ObjectFormat,
    print_list,
    show_list,
)
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.queue.queue_columns import queue_columns
from stromboli.cli.queue.queue_names import QUEUE_NAMES
from stromboli.cli.queue.queue_shares import Share, read_shares, stated_share

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

TABLES = (ObjectFormat.TABLE, ObjectFormat.WIDE)


@on_cluster(namespaced=False)
async def list_queues(
    session: ClusterSession, selector: str = SELECTOR, watch: bool = WATCH, output: ObjectFormat = OUTPUT
) -> None:
    """List queues: state, parent, weight, and used, deserved, guaranteed and largest amounts side by side.

    What a queue deserves is computed as the scheduler divides the cluster by its policy. Who may not list nodes, pods
    and PodGroups sees what the queues themselves state. With -w, amounts of a queue that changes are what it states.

    Exit status 0, 1 if the cluster refuses or does not answer, 2 for a wrong command line.
    """
    if output not in TABLES:
        await show_list(session, QUEUES, (), output, watch, selector)
        return
    queues = (await session.list(QUEUES, labels=selector)).items
    shares, parts = await shares_for_table(session, queues)
    parts.tell()
    if watch:
        columns = queue_columns(shares, _as_changed(queues, shares))
        await show_list(session, QUEUES, columns, output, watch, selector)
    else:
        print_list(session, QUEUES, queues, queue_columns(shares), output)


def _as_changed(queues: list[Manifest], shares: dict[str, Share]) -> Callable[[Manifest], Share]:
    """The share of a queue; of one that has changed since, what it states now."""
    versions = {name_of(queue): queue["metadata"].get("resourceVersion") for queue in queues}

    def share_of(queue: Manifest) -> Share:
        known, name = shares.get(name_of(queue), {}), name_of(queue)
        is_same = versions.get(name) == queue["metadata"].get("resourceVersion")
        return known if is_same else {**known, **stated_share(queue)}

    return share_of


async def shares_for_table(
    session: ClusterSession, queues: list[Manifest]
) -> tuple[dict[str, Share], ReadableParts]:
    parts = ReadableParts()
    return await read_shares(session, queues, parts), parts


@on_cluster(namespaced=False)
async def get_queues(
    session: ClusterSession, names: list[str] = QUEUE_NAMES, output: ObjectFormat = OUTPUT
) -> None:
    """Show queues by name, in the columns of `stromboli queue list`.

    Exit status 0, 1 if one does not exist or the cluster refuses, 2 for a wrong command line.
    """
    failures = Failures()
    queues = await chosen(session, QUEUES, names, failures=failures)
    if queues and output in TABLES:
        shares, parts = await shares_for_table(session, queues)
        print_list(session, QUEUES, queues, queue_columns(shares), output)
        parts.tell()
    elif queues:
        report_changes(QUEUES, queues, "", output)
    failures.end()
