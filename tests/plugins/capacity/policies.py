"""Policies with `capacity`, and queues without a cluster."""

from __future__ import annotations

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.api.types.scheduling import QueueSpec
from stromboli.engine.decisions import Event
from stromboli.model.amounts import Amounts
from stromboli.model.queue import Queue
from stromboli.testing import Result

PLACE = "enqueue, allocate"


def policy(
    actions: str = PLACE,
    *,
    tree: bool = True,
    levels: int = 0,
    first: str = "priority gang",
    one_tier: bool = False,
) -> str:
    """Some plugins in the first tier; `capacity` with them or in the next."""
    lines = [f'actions: "{actions}"', "tiers:", "- plugins:"]
    lines += [f"  - name: {name}" for name in first.split()]
    lines += [] if one_tier else ["- plugins:"]
    lines += ["  - name: capacity", f"    enableHierarchy: {str(tree).lower()}"]
    lines += ["    arguments:", f"      ancestorReclaimLevel: {levels}", "  - name: predicates"]
    return "\n".join(lines) + "\n"


def queue(
    name: str,
    parent: str = "",
    *,
    deserved: Amounts | None = None,
    capability: Amounts | None = None,
    guarantee: Amounts | None = None,
    held: Amounts | None = None,
    created: float = 0,
) -> Queue:
    """A queue that exists, with amounts by dimension."""
    made = Queue(name)
    made.object = QueueObject(metadata=ObjectMeta(name=name), spec=QueueSpec(parent=parent))
    made.created = created
    made.deserved, made.capability, made.guarantee = deserved or {}, capability or {}, guarantee or {}
    made.allocated = held or {}
    return made


def messages_about(result: Result, job: str) -> list[str]:
    """The events about a job, in order."""
    return [
        decision.message
        for decision in result.decisions
        if isinstance(decision, Event) and decision.name == job
    ]
