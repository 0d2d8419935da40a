"""What simulated containers seem to use: shares of their requests that stay, and move little."""

import pytest

from stromboli.embedded.nodes.usage.simulated_usage import WINDOW, container_usages, node_level
from tests.embedded.nodes.node_pods import pod

NOW = 1_700_000_010.0
GIB = 1 << 30


def usage_of(name="p", now=NOW, **resources):
    given = pod(name, spec={"containers": [{"name": "main", "resources": resources}]})
    return container_usages(given, ["main"], now)[0].usage


@pytest.mark.parametrize("kind", ["requests", "limits"])
def test_a_container_uses_a_share_of_what_it_requests(kind):
    for number in range(50):
        usage = usage_of(f"p{number}", **{kind: {"cpu": "2", "memory": "4Gi"}})
        assert 0.6 < usage.cpus < 1.8
        assert 1.8 * GIB < usage.memory < 3.5 * GIB


def test_a_container_without_requests_uses_little():
    usage = usage_of()
    assert 0 < usage.cpus < 0.01
    assert 1 << 20 < usage.memory < 64 << 20


def test_all_who_ask_in_a_while_get_the_same_and_later_nearly_the_same():
    requests = {"cpu": "2", "memory": "4Gi"}
    first = usage_of(requests=requests)
    assert usage_of(now=NOW + 1, requests=requests) == first
    for windows in range(1, 100):
        later = usage_of(now=NOW + windows * WINDOW, requests=requests)
        assert later.cpus == pytest.approx(first.cpus, rel=0.11)
    assert usage_of("other", requests=requests) != first


@pytest.mark.parametrize(
    "resources", [None, "x", {"requests": {"cpu": "lots", "memory": True}}, {"limits": None}]
)
def test_amounts_that_cannot_be_read_count_as_none(resources):
    given = pod(spec={"containers": [{"name": "main", "resources": resources}]})
    assert container_usages(given, ["main"], NOW)[0].usage.cpus < 0.01


def test_an_idle_node_uses_little_of_what_it_has():
    usage = node_level("n1", {"cpu": "64", "memory": "256Gi"}).at(NOW).usage
    assert 0.3 < usage.cpus < 1.0
    assert 2 * GIB < usage.memory < 6 * GIB
    assert node_level("n1", {}).at(NOW).usage.cpus > 0
