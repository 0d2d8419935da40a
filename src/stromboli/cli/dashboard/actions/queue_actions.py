"""What can be done to a queue: open and close it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from stromboli.api import names
from stromboli.cli.cluster.bus_commands import bus_command
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import COMMANDS, QUEUES, Manifest
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.actions.action_page import (
    UID,
    ActionOffer,
    check_target,
    create_command,
    offer_page,
)
from stromboli.cli.dashboard.actions.viewer_permission import Permission, missing_permission
from stromboli.cli.dashboard.pages.page_content import PageContent, ViewRequest, address, queue_address
from stromboli.cli.queue.queue_names import state_of_queue
from stromboli.cli.queue.queue_orders import CLOSING, OPENING, QueueOrder, check_order, send_order


async def closing(request: ViewRequest) -> PageContent:
    effects = [
        "The queue and those below it take no more jobs; what is in them goes on to its end.",
        "It is Closing until its last PodGroup is gone, and then Closed.",
    ]
    return await _order_page(request, CLOSING, "close", effects)


async def opening(request: ViewRequest) -> PageContent:
    effects = ["The queue takes jobs again, and so do the queues below that were closed with it."]
    return await _order_page(request, OPENING, "open", effects)


async def _order_page(request: ViewRequest, order: QueueOrder, verb: str, effects: list[str]) -> PageContent:
    session, name = request.viewer.session, request.names["queue"]
    queue = await session.get(QUEUES, name)
    where = names.QUEUE_COMMANDS_NAMESPACE
    obstacle = await _obstacle(session, queue, order) or await missing_permission(
        session, request.viewer.name, Permission("create", COMMANDS, where)
    )
    offer = ActionOffer(
        f"{verb.capitalize()} queue {name}",
        [f"It is {state_of_queue(queue)}.", *effects],
        [
            shlex.join(["stromboli", "queue", verb, name]),
            create_command(bus_command(order.action, QUEUES, queue), where),
        ],
        verb.capitalize(),
        queue,
        queue_address(name),
        obstacle,
    )
    return offer_page(request, offer)


async def _obstacle(session: ClusterSession, queue: Manifest, order: QueueOrder) -> str:
    try:
        return await check_order(session, queue, order)
    except ClusterError as error:
        return str(error)


async def close(request: ViewRequest, fields: Mapping[str, str]) -> str:
    return await _give(request, fields, CLOSING)


async def open_again(request: ViewRequest, fields: Mapping[str, str]) -> str:
    return await _give(request, fields, OPENING)


async def _give(request: ViewRequest, fields: Mapping[str, str], order: QueueOrder) -> str:
    """A queue that is as wanted already is left as it is."""
    session, name = request.viewer.session, request.names["queue"]
    queue = await session.get(QUEUES, name)
    check_target(queue, fields.get(UID, ""))
    if not await check_order(session, queue, order):
        await send_order(session, queue, order)
    return address(queue_address(name), done=order.verb)
