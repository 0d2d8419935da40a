"""Changes to the PodGroup of a job: another minimum, less to be let in with, a wider topology."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from stromboli.api.resources.resource_lists import resource_list
from stromboli.model.amounts import Amounts, shift
from stromboli.simulator.explain.explanation_document import ObjectChange

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.dimensions import Dimensions
    from stromboli.model.job import Job


def group_patch(job: Job, patch: dict[str, Any]) -> ObjectChange:
    return ObjectChange("patch", "PodGroup", [job.name], job.namespace, patch)


def fewer_at_once(cluster: Cluster, job: Job, minimum: int) -> ObjectChange:
    """A smaller minimum, and what so many of its pods ask for as its minimum of resources, if it names one."""
    spec: dict[str, Any] = {"minMember": minimum}
    if job.min_resources:
        least: Amounts = {}
        for task in sorted(job.tasks.values(), key=lambda task: task.order)[:minimum]:
            shift(least, task.request)
        now = {dim: min(amount, least.get(dim, 0)) for dim, amount in job.min_resources.items()}
        spec["minResources"] = _resources(cluster.dims, now)
    return group_patch(job, {"spec": spec})


def group_with_less(
    dims: Dimensions, job: Job, asked: Mapping[int, int], most: Mapping[int, int]
) -> list[ObjectChange]:
    """Its minimum of resources, if it names one, lowered as its pods are."""
    if job.native is not None or not job.min_resources:
        return []
    lower = {
        dim: int(job.min_resources[dim] * most[dim] / asked[dim]) for dim in most if dim in job.min_resources
    }
    return [group_patch(job, {"spec": {"minResources": _resources(dims, lower)}})] if lower else []


def less_restricted(job: Job, tiers: Sequence[int]) -> Iterator[tuple[str, ObjectChange]]:
    """Higher tiers one after the other, and then none at all, of the job's own topology."""
    topology = job.group.spec.network_topology if job.group is not None and job.native is None else None
    if topology is None or topology.mode != "hard":
        return
    now: dict[str, Any] = msgspec.to_builtins(topology)
    allowed = topology.highest_tier_allowed
    if allowed is not None:
        for tier in [tier for tier in tiers[:-1] if tier > allowed][:2]:
            patch = {"spec": {"networkTopology": {**now, "highestTierAllowed": tier}}}
            yield f"tier {tier} is allowed instead of {allowed}", group_patch(job, patch)
    yield (
        "its topology is soft (networkTopology.mode: soft)",
        group_patch(job, {"spec": {"networkTopology": {"mode": "soft"}}}),
    )


def _resources(dims: Dimensions, amounts: Mapping[int, float]) -> dict[str, str]:
    named = dims.named({dim: int(amount) for dim, amount in amounts.items()})
    texts = resource_list(named)
    return {name: texts[name] for name in named}
