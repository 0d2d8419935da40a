"""PodGroups: the queue that their namespace names, and that it exists and is open."""

from typing import Any

from stromboli.admission.rules.field import Field
from stromboli.admission.rules.network_topology_rules import BOTH_TIERS, check_topology
from stromboli.admission.rules.rule_context import Context
from stromboli.api import names


def default(group: dict[str, Any], context: Context) -> None:
    """The namespace's queue replaces `default`."""
    if context.namespace_queue is not None and names_default_queue(group):
        group["spec"]["queue"] = context.namespace_queue


def names_default_queue(group: Any) -> bool:
    spec = group.get("spec") if isinstance(group, dict) else None
    return isinstance(spec, dict) and spec.get("queue") == names.DEFAULT_QUEUE


def check(group: Field, context: Context) -> None:
    """Report what is wrong with a new group."""
    spec = group["spec"]
    if spec["queue"].text() and context.queues is not None:
        _check_queue(spec["queue"], context)
    check_topology(spec["networkTopology"], f"{BOTH_TIERS}.")
    for policy in spec["subGroupPolicy"].items():
        check_topology(
            policy["networkTopology"], f"in subGroupPolicy '{policy['name'].text()}': {BOTH_TIERS}."
        )


def _check_queue(field: Field, context: Context) -> None:
    name = field.text()
    queue = context.queues.get(name) if context.queues is not None else None
    if queue is None:
        field.wrong(
            f'unable to find queue: queue.scheduling.volcano.sh "{name}" not found',
            "create the queue first, or use another",
        )
    elif queue.status.state not in (names.QUEUE_OPEN, ""):
        field.wrong(
            names.GROUP_QUEUE_NOT_OPEN.format(queue=name, state=queue.status.state),
            "open the queue, or use another",
        )
