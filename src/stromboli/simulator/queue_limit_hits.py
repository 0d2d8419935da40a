"""Which limit of a queue keeps a job waiting, with what the queue holds of it."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.engine.cycle import Outcome
from stromboli.engine.plugin import QueueLimit
from stromboli.model.amounts import Amounts, Vector, minus, plus
from stromboli.model.dimensions import PODS
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.simulator.wait_hints import amounts_text


class Hit(NamedTuple):
    """A limit that what is asked for would exceed."""

    text: str
    remedy: str


def limit_hit(outcome: Outcome, queue: Queue, asked: Vector) -> Hit | None:
    """The first limit of a queue, or of one above it, that leaves no room for a request."""
    promised = minus(outcome.held[queue], queue.held) if queue in outcome.held else {}
    for limit in outcome.session.rules.queue_limits(queue):
        held = plus(limit.held, promised)
        short = [
            dim
            for dim, amount in asked.items()
            if amount > 0 and dim != PODS and held.get(dim, 0) + amount > limit.most.get(dim, float("inf"))
        ]
        if short:
            return Hit(_sentence(outcome, queue, limit, held, short), limit.remedy)
    return None


def _sentence(outcome: Outcome, queue: Queue, limit: QueueLimit, held: Amounts, short: list[int]) -> str:
    """`its capability is cpu 2, it holds cpu 2`."""
    dims = outcome.session.cluster.dims
    most = amounts_text(dims, {dim: limit.most[dim] for dim in short})
    now = amounts_text(dims, {dim: held.get(dim, 0) for dim in short})
    whose = f"its {limit.name}" if limit.queue is queue else f'the {limit.name} of "{limit.queue.name}"'
    return f"{whose} is {most}, it holds {now}"


def queue_hint(outcome: Outcome, job: Job, queue: Queue, limit: Hit | None) -> str:
    """What the job asks for, what its queue holds, and how it could get more."""
    dims = outcome.session.cluster.dims
    asked = amounts_text(dims, job.pending)
    held = amounts_text(dims, outcome.held.get(queue, queue.held))
    remedy = limit.remedy if limit else "raise its weight, deserved or capability"
    way_out = f"wait for its jobs or {remedy}" if held else remedy
    return f"{asked} is asked for and the queue holds {held or 'nothing'}: {way_out}"
