"""What queues deserve, by the plugins of the policy in force.

The policy is asked about a cluster of one node, with what queues share, and of two jobs in each queue: one has what
its pods have together, the other wants what its pods wait for. Shares depend on nothing else, so that the answer is
that of the whole cluster, and takes as long as there are queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.resources.resource_lists import resource_list
from stromboli.api.types.scheduling import Queue
from stromboli.cli.live.cluster_records import Amounts, ClusterRecords

if TYPE_CHECKING:
    from stromboli.engine.catalog import Catalog
    from stromboli.policy.policy import Policy

Content = dict[str, Any]
NODE, NAMESPACE = "all-nodes", "sums"


class QueueDemand(NamedTuple):
    """What the pods of a queue have and wait for."""

    used: Amounts
    waiting: Amounts


def queue_shares(
    queues: Iterable[Queue],
    total: Amounts,
    demands: Mapping[str, QueueDemand],
    policy: Policy,
    catalog: Catalog,
    now: float,
) -> dict[str, Content]:
    """By queue: `used`, with what is below it in a tree of queues, `deserved`, `capability`, `parent`, `weight`."""
    from stromboli.cli.status.cluster_status import intake_of
    from stromboli.cli.status.resource_usage import queue_usage

    known = list(queues)
    manifests = [_node(total)]
    for queue in known:
        if (demand := demands.get(queue.name)) is not None:
            manifests += _job(queue.name, "used", demand.used, NODE)
            manifests += _job(queue.name, "waiting", demand.waiting, "")
    objects: dict[Any, list[Any]] = {Queue: known}
    for manifest in manifests:
        object = decode(manifest)
        objects.setdefault(type(object), []).append(object)
    cluster = intake_of(objects)[0].cluster
    return {usage["name"]: usage for usage in queue_usage(cluster, policy, catalog, now)}


def sharable_amounts(records: ClusterRecords) -> Amounts:
    """Return what queues share, as `Cluster.sharable`: all nodes, and what pods hold beyond the size of theirs."""
    total = dict(records.total)
    for name, sums in records.of_node.items():
        node = records.nodes.get(name)
        for resource, used in sums.used.items():
            has = node.allocatable.get(resource, 0) if node is not None else 0
            if used > has:
                total[resource] = total.get(resource, 0) + used - has
    return total


def _node(total: Amounts) -> Content:
    resources = {**resource_list(total), names.PODS: "1000000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "status": {"allocatable": resources, "capacity": resources},
    }


def _job(queue: str, what: str, amounts: Amounts, node: str) -> list[Content]:
    """A PodGroup of one pod; none if it would ask for nothing."""
    held = {name: amount for name, amount in amounts.items() if amount > 0}
    if not held:
        return []
    group = f"{queue}-{what}"
    metadata = {"name": group, "namespace": NAMESPACE}
    return [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": {"minMember": 1, "queue": queue},
            "status": {"phase": names.GROUP_RUNNING if node else names.GROUP_INQUEUE},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "annotations": {names.GROUP_NAME: group}},
            "spec": {
                "schedulerName": names.SCHEDULER_NAME,
                "nodeName": node,
                "containers": [{"name": "main", "resources": {"requests": resource_list(held)}}],
            },
            "status": {"phase": names.POD_RUNNING if node else names.POD_PENDING},
        },
    ]


def declared_shares(queues: Iterable[Queue]) -> dict[str, Content]:
    """What queues declare themselves, where the policy cannot be asked."""
    return {
        queue.name: {
            "deserved": dict(queue.spec.deserved),
            "parent": queue.spec.parent,
            "weight": queue.spec.weight,
        }
        for queue in queues
    }
