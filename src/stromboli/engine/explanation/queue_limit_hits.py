"""Which limit of a queue keeps a job waiting, with what the queue holds of it."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.engine.explanation.shortages import Holder, Shortage, WayOut, amounts_text, shortage
from stromboli.engine.session import Session
from stromboli.model.amounts import Vector, minus, plus
from stromboli.model.dimensions import PODS
from stromboli.model.job import Job
from stromboli.model.queue import Queue


class Hit(NamedTuple):
    """A limit that what is asked for would exceed."""

    text: str
    remedy: str
    shortages: tuple[Shortage, ...]
    holders: tuple[Holder, ...]


def limit_hit(session: Session, queue: Queue, asked: Vector) -> Hit | None:
    """The first limit of a queue, or of one above it, that leaves no room for a request."""
    dims, held_then = session.cluster.dims, session.uncommitted.held
    promised = minus(held_then[queue], queue.held) if queue in held_then else {}
    for limit in session.rules.queue_limits(queue):
        held = plus(limit.held, promised)
        short = {
            dim: amount
            for dim, amount in asked.items()
            if amount > 0 and dim != PODS and held.get(dim, 0) + amount > limit.most.get(dim, float("inf"))
        }
        if short:
            most = amounts_text(dims, {dim: limit.most[dim] for dim in short})
            now = amounts_text(dims, {dim: held.get(dim, 0) for dim in short})
            owner, name = limit.queue, limit.name
            limit_name = f"its {name}" if owner is queue else f'the {name} of "{owner.name}"'
            return Hit(
                f"{limit_name} is {most}, it holds {now}",
                limit.remedy,
                tuple(
                    shortage(dims, dim, amount, limit.most[dim] - held.get(dim, 0))
                    for dim, amount in short.items()
                ),
                tuple(Holder(owner.name, dims.names[dim], int(held.get(dim, 0))) for dim in short),
            )
    return None


def queue_way_out(session: Session, job: Job, queue: Queue, hit: Hit | None) -> WayOut:
    """What the job asks for, what its queue holds, and how it could get more."""
    dims = session.cluster.dims
    asked = amounts_text(dims, job.pending)
    held = amounts_text(dims, session.uncommitted.held.get(queue, queue.held))
    remedy = hit.remedy if hit else "raise its weight, deserved or capability"
    way_out = f"wait for its jobs or {remedy}" if held else remedy
    text = f"{asked} is asked for and the queue holds {held or 'nothing'}: {way_out}"
    return WayOut(text, hit.shortages, hit.holders) if hit else WayOut(text)
