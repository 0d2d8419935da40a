"""The consistency check looks at the tree of HyperNodes, too."""

from __future__ import annotations

import numpy as np

from stromboli.model.cluster import Cluster
from stromboli.scheduler.mirror.consistency import compare
from stromboli.testing import World
from tests.manifests import hyper_node


def cluster() -> Cluster:
    return World(nodes="a cpu=1\nb cpu=1").add(hyper_node("rack", 1, nodes=["a", "b"])).cluster


def test_a_tree_with_other_nodes_than_a_fresh_one_is_reported() -> None:
    live = cluster()
    assert compare(live, cluster()) == []
    live.hyper_nodes.domains["rack"].rows = np.array([0])
    [difference] = compare(live, cluster())
    assert str(difference) == (
        "HyperNode rack in the tree: tier 1 below <cluster-top-hypernode>, nodes a; "
        "on the API server: tier 1 below <cluster-top-hypernode>, nodes a, b"
    )
