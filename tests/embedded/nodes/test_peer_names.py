"""Names of peers mean this machine; what only looks like a name stays."""

import pytest

from stromboli.embedded.nodes.peer_names import hosts_config_map, local_names
from tests.embedded.nodes.node_pods import pod

WORKER = pod(
    "torch-worker-1",
    spec={"hostname": "torch-worker-1", "subdomain": "torch"},
    meta={"labels": {"volcano.sh/job-name": "torch"}},
)
ORDINAL = pod("web-0", spec={"hostname": "web-0", "subdomain": "peers"})


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("torch-master-0.torch", "127.0.0.1"),
        ("torch-worker-1.torch,torch-worker-2.torch", "127.0.0.1,127.0.0.1"),
        ("torch-master-0.torch.default", "127.0.0.1"),
        ("torch-master-0.torch.default.svc:80", "127.0.0.1:80"),
        ("torch-master-0.torch.default.svc.cluster.local.", "127.0.0.1"),
        ("tcp://torch-master-0.torch:23456/x", "tcp://127.0.0.1:23456/x"),
        ('{"worker":["torch-worker-0.torch:2222"]}', '{"worker":["127.0.0.1:2222"]}'),
        ("http://front.torch:8080", "http://127.0.0.1:8080"),
        ("front.torch.default.svc", "127.0.0.1"),
        ("ask torch-master-0.torch.", "ask 127.0.0.1."),
    ],
)
def test_names_of_peers_are_this_machine(text: str, local: str) -> None:
    assert local_names(WORKER)(text) == local


@pytest.mark.parametrize(
    "text",
    [
        "best.torch",
        "runs/epoch-3.torch",
        "/data/torch-final.torch",
        "torch-master-0.torch.example.org",
        "torch-master-0.torch.other.svc",
        "torch-master-0.torchvision",
        "x.torch-master-0.torch",
        "torch-master-0",
        "torch",
        "a.b.torch:80",
    ],
)
def test_what_only_looks_like_the_name_of_a_peer_stays(text: str) -> None:
    assert local_names(WORKER)(text) == text


def test_pods_of_a_stateful_set_are_peers() -> None:
    local = local_names(ORDINAL)
    assert local("web-0.peers web-12.peers.default.svc.cluster.local") == "127.0.0.1 127.0.0.1"
    assert local("web-x.peers db-0.peers web-0.torch") == "web-x.peers db-0.peers web-0.torch"


def test_without_a_subdomain_nothing_is_a_peer() -> None:
    assert local_names(pod("web-0"))("web-0.peers:80") == "web-0.peers:80"
    assert hosts_config_map(pod("web-0", meta={"labels": {"volcano.sh/job-name": "j"}})) == ""
    assert hosts_config_map(WORKER) == "torch-svc"
