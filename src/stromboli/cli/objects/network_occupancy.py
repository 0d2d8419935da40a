"""How full the HyperNodes of a cluster are, by the scheduler's own model of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode, PodGroup, Queue
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.status.cluster_status import all_of_kind, intake_of
from stromboli.cli.status.topology_usage import hyper_node_tree, topology
from stromboli.kube.api_resources import RESOURCES

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

Content = dict[str, Any]
READ: tuple[type[Object], ...] = (Queue, Node, HyperNode, PodGroup, Pod)


async def network_occupancy(session: ClusterSession, root: str = "") -> Content:
    """The tree of HyperNodes, or what is below one of them; with the tiers, and what is left out.

    The root is the name of a HyperNode, or what is shown for it.
    """
    objects = {kind: await all_of_kind(session.client, RESOURCES[kind], kind) for kind in READ}
    cluster = intake_of(objects)[0].cluster
    content = {"hyperNodes": hyper_node_tree(cluster), **topology(cluster)}
    if not root:
        return content
    found = _below(content["hyperNodes"], cluster.hyper_nodes.titles.resolve(root))
    if found is None:
        why = content.get("leftOutHyperNodes", {}).get(root, "it does not exist")
        raise ClusterError(f"hypernode.topology.volcano.sh/{root} is in no tree: {why}")
    return {"hyperNodes": [found]}


def _below(hyper_nodes: list[Content], name: str) -> Content | None:
    for each in hyper_nodes:
        if each["name"] == name:
            return each
        if (inner := _below(each["hyperNodes"], name)) is not None:
            return inner
    return None
