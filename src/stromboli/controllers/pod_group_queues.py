"""The queue of a PodGroup that a controller creates: what the admission webhook does for the PodGroups of users.

The API server does not call the webhook for our controllers (deploy/admission/webhooks.yaml), so that pods for our
scheduler start while the webhook is down, the webhook server's own pods among them.
"""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.types.scheduling import Namespace, Queue
from stromboli.controllers.api_writer import decode_response
from stromboli.controllers.controller import Context
from stromboli.controllers.reconciler import SyncError
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.request import ApiError


class QueueNotOpen(SyncError):
    """The queue of a new PodGroup takes no PodGroups now."""


async def admitted_queue(context: Context, queue: str, namespace: str) -> str:
    """Return the queue of a new PodGroup: the one that the namespace names in place of the default queue.

    A queue that does not exist is returned too: the scheduler reports it on the pods, which start once it is created.
    """
    if queue in ("", names.DEFAULT_QUEUE):
        queue = await _queue_of_namespace(context, namespace) or names.DEFAULT_QUEUE
    known = context.store(Queue).get(queue)
    if known is not None and known.status.state not in (names.QUEUE_OPEN, ""):
        problem = names.GROUP_QUEUE_NOT_OPEN.format(queue=queue, state=known.status.state)
        raise QueueNotOpen(f"{problem} Open the queue, or use another.")
    return queue


async def _queue_of_namespace(context: Context, namespace: str) -> str:
    """Return the queue of a namespace; empty if it names none, or if the permission to read namespaces is missing.

    It is missing while an older role is installed, and then the API server calls the webhook for us.
    """
    try:
        answer = await context.writer.read_at(RESOURCES[Namespace], namespace)
    except ApiError as error:
        if error.status != 403:
            raise
        return ""
    return decode_response(Namespace, answer).metadata.annotations.get(names.QUEUE_NAME, "") if answer else ""
