from stromboli.embedded.nodes.pod_addresses import PodAddresses
from tests.embedded.nodes.node_pods import pod


def test_pods_of_a_node_have_different_addresses_and_keep_theirs():
    addresses = PodAddresses()
    first, host = addresses.of(pod("a"))
    assert addresses.of(pod("b")) == ("10.64.1.2", host)
    assert addresses.of(pod("a")) == (first, host) == ("10.64.1.1", "172.16.0.1")
    assert addresses.of(pod("c", status={"podIP": "10.64.1.3"}))[0] == "10.64.1.3"
    assert addresses.of(pod("d"))[0] == "10.64.1.4"
    assert addresses.range("n2").cidr == "10.64.2.0/24"


def test_an_address_is_free_again_when_its_pod_is_gone():
    addresses = PodAddresses()
    taken = {addresses.of(pod(f"p{index}"))[0] for index in range(254)}
    assert len(taken) == 254
    addresses.release("n1", "uid-p7")
    assert addresses.of(pod("new"))[0] == "10.64.1.8"


def test_a_node_that_was_there_before_keeps_its_range():
    addresses = PodAddresses()
    addresses.adopt("n10", "10.64.10.0/24")
    addresses.adopt("odd", "192.168.0.0/16")
    assert addresses.range("n10").cidr == "10.64.10.0/24"
    assert addresses.range("new").cidr == "10.64.11.0/24"
    assert addresses.range("odd").cidr == "10.64.12.0/24"
    addresses.adopt("n10", "10.64.99.0/24")
    assert addresses.range("n10").cidr == "10.64.10.0/24"
