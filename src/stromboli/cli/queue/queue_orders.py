"""Orders to the queue controller: open a queue, or close it. Without a terminal, for commands and the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.cli.cluster.bus_commands import send_command
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import QUEUES, Manifest, full_name, name_of
from stromboli.cli.queue.queue_names import parent_of, state_of_queue

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession


class QueueOrder(NamedTuple):
    """What the controller of queues is told to do, how that is called, and the states in which it is done already."""

    action: str
    verb: str
    done: tuple[str, ...]


OPENING = QueueOrder(names.OPEN_QUEUE, "opened", (names.QUEUE_OPEN,))
CLOSING = QueueOrder(names.CLOSE_QUEUE, "closed", (names.QUEUE_CLOSED, names.QUEUE_CLOSING))


async def check_order(session: ClusterSession, queue: Manifest, order: QueueOrder) -> str:
    """Why an order changes nothing, empty if it does; `ClusterError` if it cannot be carried out."""
    name, state = name_of(queue), state_of_queue(queue)
    if order is CLOSING and name == names.ROOT_QUEUE:
        raise ClusterError(f"{full_name(QUEUES, name)} cannot be closed: all queues are below it")
    if state in order.done:
        return f"{full_name(QUEUES, name)} is {state} already"
    if order is OPENING:
        await _check_parent(session, name, parent_of(queue))
    return ""


async def _check_parent(session: ClusterSession, name: str, parent: str) -> None:
    if parent in ("", names.ROOT_QUEUE):
        return
    state = state_of_queue(await session.find(QUEUES, parent))
    if state != names.QUEUE_OPEN:
        raise ClusterError(
            f"{full_name(QUEUES, name)} cannot be opened: its parent {parent} is {state};"
            f" `stromboli queue open {parent}` first"
        )


async def send_order(
    session: ClusterSession, queue: Manifest, order: QueueOrder, dry_run: bool = False
) -> None:
    """Tell the controller; with `dry_run` the API server only checks the command."""
    await send_command(session, order.action, QUEUES, queue, names.QUEUE_COMMANDS_NAMESPACE, dry_run)
