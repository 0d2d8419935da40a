"""What `stromboli status` shows, read from an API server."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.manifests.object_defaults import Priorities, apiserver_defaults, implied_queues
from stromboli.api.node_state import node_state
from stromboli.api.types.devices import DeviceClass, ResourceClaim, ResourceSlice
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode, PodGroup, Queue
from stromboli.api.types.volcano_job import Job
from stromboli.cli.status.cluster_policy import PolicyInForce, policy_in_force
from stromboli.cli.status.device_usage import cards, devices, queue_devices
from stromboli.cli.status.resource_usage import node_groups, queue_usage
from stromboli.cli.status.topology_usage import topology
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.embedded.running_clusters import RunningCluster
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.cluster_access import Access
from stromboli.kube.reflector import list_pages
from stromboli.kube.request import ApiError
from stromboli.model.intake.object_intake import Intake
from stromboli.policy.policy import Policy

OPTIONAL: tuple[type[Object], ...] = (HyperNode, DeviceClass, ResourceSlice, ResourceClaim)
"""Kinds without which there is still a lot to show to who may not list them."""
COUNTED: tuple[type[Object], ...] = (Queue, Node, *OPTIONAL, PodGroup, Pod)
"""What the model is made of, in an order in which objects find those that they name."""
LISTED: dict[type[Object], Resource] = {
    **{kind: RESOURCES[kind] for kind in COUNTED},
    Job: WATCHED_RESOURCES[Job],
}
Objects = dict[type[Object], list[Any]]
Content = dict[str, Any]


async def read_status(
    access: Access, running: RunningCluster | None, catalog: Catalog, policy: Policy | None
) -> Content:
    """The status as plain data, as JSON shows it. `running`: the cluster of `stromboli up`, if it is one."""
    async with Client(access) as client:
        objects = {kind: await all_of_kind(client, resource, kind) for kind, resource in LISTED.items()}
        in_force = (
            PolicyInForce(policy, policy.source_name)
            if policy
            else await policy_in_force(client, running, catalog)
        )
    return status_of(objects, in_force, catalog, time.time(), _where(access, running))


def _where(access: Access, running: RunningCluster | None) -> Content:
    if running is None:
        return {"url": access.server, "kubeconfig": access.source}
    return {
        "url": running.url,
        "data": running.data,
        "kubeconfig": str(running.kubeconfig),
        "pid": running.pid,
        "upSeconds": round(time.time() - running.since),
    }


def status_of(
    objects: Objects, in_force: PolicyInForce, catalog: Catalog, now: float, where: Content
) -> Content:
    """The status of a cluster with these objects, under this policy."""
    intake, unusable = intake_of(objects)
    states = {queue.name: queue.status.state for queue in objects[Queue]}
    groups = _phases_by_queue(objects[PodGroup])
    usages = queue_usage(intake.cluster, in_force.policy, catalog, now)
    of_devices = queue_devices(intake.cluster)
    queues = [
        {
            "name": usage["name"],
            "state": states.get(usage["name"], ""),
            "podGroups": dict(groups.get(usage["name"], {})),
            **usage,
            **({"devices": of_devices[usage["name"]]} if usage["name"] in of_devices else {}),
        }
        for usage in usages
    ]
    return {
        **where,
        "policy": in_force.origin,
        **({"policyRefused": in_force.refused} if in_force.refused else {}),
        "nodes": {"total": len(objects[Node]), **Counter(map(node_state, objects[Node]))},
        "nodeGroups": node_groups(intake.cluster),
        **devices(intake.cluster),
        **cards(intake.cluster),
        **topology(intake.cluster),
        "queues": queues,
        "jobs": dict(Counter(job.status.state.phase or "Pending" for job in objects[Job])),
        "podGroups": dict(Counter(group.status.phase or "Pending" for group in objects[PodGroup])),
        "pods": dict(Counter(pod.status.phase or "Pending" for pod in objects[Pod])),
        **({"unusable": unusable} if unusable else {}),
    }


def intake_of(objects: Objects) -> tuple[Intake, int]:
    """The model of a cluster with these objects, and how many of them cannot be used."""
    intake = Intake()
    for queue in implied_queues(queue.name for queue in objects.get(Queue, ())):
        intake.put(queue)
    unusable = 0
    for kind in COUNTED:
        for obj in objects.get(kind, ()):
            apiserver_defaults(obj, 0, Priorities())
            try:
                intake.put(obj)
            except BadObject:
                unusable += 1
    intake.cluster.settle()
    return intake, unusable


def _phases_by_queue(groups: list[PodGroup]) -> dict[str, Counter[str]]:
    phases: dict[str, Counter[str]] = {}
    for group in groups:
        counter = phases.setdefault(group.spec.queue or names.DEFAULT_QUEUE, Counter())
        counter[group.status.phase or "Pending"] += 1
    return phases


async def all_of_kind(client: Client, resource: Resource, kind: type[Object]) -> list[Object]:
    """All objects of a kind; none if the kind is not installed, or may not be listed and is optional."""
    objects: list[Object] = []
    try:
        async for page in list_pages(client, resource, kind):
            objects += [decoded.object for decoded in page.objects if decoded.object is not None]
    except ApiError as error:
        if error.status != 404 and not (error.status == 403 and kind in OPTIONAL):
            raise
    return objects
