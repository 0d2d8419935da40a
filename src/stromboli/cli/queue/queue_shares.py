"""What queues use, deserve, are guaranteed and may have: as the scheduler divides, or else as the queues state."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.resources.resource_lists import amount_text
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.cluster.tree_branches import DEEPEST
from stromboli.cli.queue.queue_names import parent_of, spec_of_queue

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

Share = dict[str, Any]
PARTS = ("used", "deserved", "guarantee", "capability")
LEFT_OUT = "shares are as the queues state them, not as the scheduler divides"
LARGEST = Fraction(2**63)
UNCOUNTED = ("pods",)
"""Resources that no share is about."""


async def read_shares(
    session: ClusterSession, queues: list[Manifest], parts: ReadableParts
) -> dict[str, Share]:
    """By queue; for users who may not list nodes, pods or PodGroups, what the queues say."""
    shares = {name_of(queue): stated_share(queue) for queue in queues} | await _computed(session, parts)
    parents = {name: str(share.get("parent") or names.ROOT_QUEUE) for name, share in shares.items()}
    parents |= {name_of(queue): parent_of(queue) for queue in queues}
    return with_sums(shares, parents)


def with_sums(shares: Mapping[str, Share], parents: Mapping[str, str]) -> dict[str, Share]:
    """The same shares; a queue uses what those below it use, also under a policy that divides without a tree."""
    children: dict[str, list[str]] = {}
    for name, parent in parents.items():
        if name not in (parent, names.ROOT_QUEUE):
            children.setdefault(parent, []).append(name)
    summed: dict[str, dict[str, Fraction]] = {}

    def used(name: str, above: tuple[str, ...]) -> dict[str, Fraction]:
        if name in summed or len(above) > DEEPEST:
            return summed.get(name, {})
        totals: dict[str, Fraction] = {}
        for child in children.get(name, ()):
            if child not in above:
                for resource, amount in used(child, (*above, name)).items():
                    totals[resource] = totals.get(resource, Fraction(0)) + amount
        for resource, amount in (shares.get(name, {}).get("used") or {}).items():
            totals[resource] = max(totals.get(resource, Fraction(0)), amount_of(amount))
        summed[name] = totals
        return totals

    for name in children:
        used(name, ())
    return {
        name: {**share, "used": {each: amount_text(each, total) for each, total in summed[name].items()}}
        if summed.get(name)
        else share
        for name, share in shares.items()
    }


def amount_of(amount: object) -> Fraction:
    """A quantity; nothing for what is none."""
    try:
        value = exact(amount)  # type: ignore[arg-type]
    except QuantityError:
        return Fraction(0)
    return min(value, LARGEST)


def stated_share(queue: Manifest) -> Share:
    """What a queue says of itself: what its jobs hold, and the shares in its spec."""
    spec, status = spec_of_queue(queue), queue.get("status") or {}
    lists = {
        "used": status.get("allocated"),
        "deserved": spec.get("deserved"),
        "guarantee": (spec.get("guarantee") or {}).get("resource"),
        "capability": spec.get("capability"),
    }
    return {key: _counted(amounts) for key, amounts in lists.items() if isinstance(amounts, dict) and amounts}


def _counted(amounts: Manifest) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items() if name not in UNCOUNTED}


async def _computed(session: ClusterSession, parts: ReadableParts) -> dict[str, Share]:
    """As `stromboli status` computes them; none if something that it takes may not be read."""
    from stromboli.api.types.volcano_job import Job
    from stromboli.cli.status.cluster_policy import policy_in_force
    from stromboli.cli.status.cluster_status import LISTED, all_of_kind, status_of
    from stromboli.extensions import load_catalog

    objects: dict[Any, Any] = {Job: []}
    for kind, resource in LISTED.items():
        if kind is Job:
            continue
        read = await parts.read(LEFT_OUT, all_of_kind(session.client, resource, kind), None)
        if read is None:
            return {}
        objects[kind] = read
    catalog = load_catalog(None)
    in_force = await policy_in_force(session.client, session.running, catalog)
    status = status_of(objects, in_force, catalog, time.time(), {})
    return {queue["name"]: queue for queue in status["queues"]}
