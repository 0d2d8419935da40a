"""How many pods of one size fit, by amounts alone: in the whole cluster, and within one HyperNode of each tier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from stromboli.api import names
from stromboli.api.node_state import is_gpu
from stromboli.api.resources.quantity import QuantityError, milli, whole
from stromboli.cli.dashboard.topology.job_places import JobPlaces
from stromboli.cli.dashboard.topology.node_occupancy import Floats, NodeOccupancy
from stromboli.cli.live.cluster_content import GPU
from stromboli.cli.live.cluster_records import Amounts
from stromboli.model.topology.domain import Domain

SIZE_FIELDS = (names.CPU, names.MEMORY, GPU)
"""Resources that can be chosen in an address."""
COUNTABLE_AMOUNT = 2**52


class BadSize(ValueError):
    """What was chosen as the size of a pod is none; the message says why."""


class PodSize(NamedTuple):
    """What a pod asks for, and where that was taken from."""

    request: Amounts
    origin: str


class TierRoom(NamedTuple):
    """The HyperNode of a tier in which the most pods fit."""

    tier: int
    name: str
    """The name of the tier, if it has any."""
    largest: int
    domain: Domain


class GangRoom(NamedTuple):
    """How many pods of some size fit."""

    by_node: Floats
    total: int
    tiers: list[TierRoom]


def chosen_size(query: Mapping[str, str], jobs: JobPlaces) -> PodSize:
    """The size that an address states; else the most common one of pods that wait, else of those that have a node."""
    given = {name: text for name in SIZE_FIELDS if (text := query.get(name, "").strip())}
    if given:
        return PodSize({name: _amount(name, text) for name, text in given.items()}, "as chosen")
    if (request := jobs.common_waiting_request()) is not None:
        return PodSize(_by_field(request), "the most common size of pods that wait or are to come")
    if (request := jobs.common_placed_request()) is not None:
        return PodSize(_by_field(request), "the most common size of pods that run")
    return PodSize({names.CPU: 1000}, "as no pod waits or runs")


def _amount(resource: str, text: str) -> int:
    try:
        amount = (whole if resource == names.MEMORY else milli)(text)
    except QuantityError as error:
        raise BadSize(f"{resource}: {error}") from None
    if not 0 <= amount <= COUNTABLE_AMOUNT:
        raise BadSize(f"{resource}: {text} is not between 0 and 2^52")
    return amount


def _by_field(request: Amounts) -> Amounts:
    """GPUs of whatever maker as `gpu`."""
    gpus = sum(amount for name, amount in request.items() if is_gpu(name))
    rest = {name: amount for name, amount in request.items() if not is_gpu(name)}
    return {**rest, GPU: gpus} if gpus else rest


def gang_room(occupancy: NodeOccupancy, request: Amounts) -> GangRoom:
    """Count on ready nodes that are not cordoned, by what is free there and by how many pods they take."""
    fitting = occupancy.columns(names.PODS).free
    for resource, amount in request.items():
        if amount > 0:
            fitting = np.minimum(fitting, occupancy.columns(resource).free // amount)
    fitting = fitting * occupancy.usable
    return GangRoom(fitting, int(fitting.sum()), _tiers(occupancy, fitting))


def _tiers(occupancy: NodeOccupancy, fitting: Floats) -> list[TierRoom]:
    """Of HyperNodes with equal room, the first by name."""
    network = occupancy.network
    best: dict[int, TierRoom] = {}
    for domain, room in zip(network.domains, network.sums(fitting).tolist(), strict=True):
        known = best.get(domain.tier)
        if known is None or room > known.largest:
            best[domain.tier] = TierRoom(domain.tier, "", int(room), domain)
    return [best[tier]._replace(name=network.tier_name(tier)) for tier in sorted(best)]
