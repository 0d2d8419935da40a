"""Which objects a scheduler watches, by its flags and feature gates, and its watches of them."""

from __future__ import annotations

import asyncio
import logging
import os

from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.devices import ResourceClaimTemplate
from stromboli.api.types.meta import Object
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.numa_topology import Numatopology
from stromboli.api.types.scheduling import PodDisruptionBudget, PriorityClass
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.options import Options
from stromboli.scheduler.partitioning import ObjectFilter, by_hash, by_label, idle_members, parse_selectors
from stromboli.scheduler.thread_seam import ThreadSeam

log = logging.getLogger(__name__)


def watch_cluster(options: Options, client: Client) -> ClusterWatches:
    """Watches of all kinds but the one of which the policy says what is watched."""
    kinds = [kind for kind in watched_kinds(options) if kind is not ConfigMap]
    seam = ThreadSeam(asyncio.get_running_loop())
    return ClusterWatches(client, kinds, seam, object_filter(options))


def watched_kinds(options: Options) -> list[type[Object]]:
    """The kinds to watch, by flags and feature gates."""
    off: set[type[Object]] = {ResourceClaimTemplate}  # claims are made of them by a controller
    if not options.priority_class or not options.gate("PriorityClass", True):
        off.add(PriorityClass)
    if not options.gate("PodDisruptionBudgetsSupport", True):
        off.add(PodDisruptionBudget)
    if not options.gate("WorkLoadSupport", True):
        off |= {ReplicaSet, StatefulSet, ReplicationController}
    if not options.gate("ResourceTopology", True):
        off.add(Numatopology)
    if options.scheduler_sharding_mode == "none":
        off.add(NodeShard)
    return [kind for kind in RESOURCES if kind not in off]


def object_filter(options: Options) -> ObjectFilter:
    """Which objects are ours: by label, and by hash where several schedulers divide the cluster."""
    labelled = by_label(parse_selectors(options.node_selector))
    hashed = by_hash(os.environ, options.scheduler_name)
    if options.leader_elect and (why := idle_members(os.environ, options.leader_elect_resource_name)):
        log.warning("%s", why)
    return lambda object: labelled(object) and hashed(object)
