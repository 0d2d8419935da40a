"""The pages of the network: the tree, the tiers, one HyperNode."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from stromboli.cli.dashboard.pages.network.topology_page import hyper_node, topology
from stromboli.cli.dashboard.pages.page_content import NotThere, PageContent
from stromboli.cli.live.visible_records import Visibility
from tests.cli.dashboard.network_manifests import Manifest, node, pod, pod_group, two_racks
from tests.cli.dashboard.network_manifests import hyper_node as hyper_node_manifest
from tests.cli.dashboard.number_links import assert_numbers_lead_to_as_many, numbers_of
from tests.cli.dashboard.view_requests import HOSTILE, html_of, links_of, rendered, text_of, view_request


def network(*manifests: Manifest, **query: str) -> PageContent:
    return rendered(topology, view_request("/topology", *manifests, query=query))


def page_of(name: str, *manifests: Manifest, **query: str) -> PageContent:
    request = view_request(f"/topology/{name}", *manifests, query=query, names={"hypernode": name})
    return rendered(hyper_node, request)


def lines(page: PageContent) -> list[str]:
    """The HyperNodes of the tree, from the first to the last."""
    return re.findall(r'class="tree-name">([^<]*)<', html_of(page))


# -- the whole network


def test_a_hyper_node_says_how_full_it_is_and_what_fits() -> None:
    text = text_of(network(*two_racks(), cpu="8"))
    assert "rack-a rack (tier 1) 2 nodes, 1 free" in text
    assert "8 / 32" in text  # CPU
    assert "fits 3 pods 1 job" in text
    assert "spine tier 2 4 nodes, 2 free" in text
    assert "fits 6 pods 1 job" in text


def test_the_tree_has_those_below_within_those_above() -> None:
    assert lines(network(*two_racks())) == ["spine", "rack-a", "rack-b"]


def test_branches_are_open_where_the_address_says_so() -> None:
    assert "<details>" in html_of(network(*two_racks()))
    assert '<details open="">' in html_of(network(*two_racks(), open="all"))


def test_tiers_count_free_hyper_nodes_and_show_each_resource() -> None:
    cluster = [*two_racks(), node("n-5"), hyper_node_manifest("rack-c", 1, "n-5", tier_name="rack")]
    page = network(*cluster)
    assert "rack (tier 1) 3 1 3 of 5 12 / 80 CPU in use 12 / 80 0 full" in text_of(page)
    assert "/topology?tier=1&room=free" in links_of(page)


def test_a_rack_without_free_cpus_is_full_of_cpus_and_not_of_gpus() -> None:
    cluster = [
        *(node(name, gpus=8) for name in ("n-1", "n-2")),
        *(hyper_node_manifest(f"rack-{each}", 1, f"n-{each}", tier_name="rack") for each in (1, 2)),
        pod_group(),
        *(pod(f"etl-{each}", on=f"n-{each}", cpu="16") for each in (1, 2)),
    ]
    page = network(*cluster)
    assert "rack (tier 1) 2 0 0 of 2 32 / 32 CPU in use 32 / 32 2 full" in text_of(page)
    assert "0 / 16 GPU in use 0 / 16 0 full" in text_of(page)
    full = network(*cluster, tier="1", room="full-of-cpu")
    assert "2 HyperNodes of tier 1, full of CPU" in text_of(full)
    assert "0 HyperNodes of tier 1, full of GPU" in text_of(network(*cluster, tier="1", room="full-of-gpu"))


def test_a_rack_is_not_said_to_be_full_of_what_only_a_cordoned_node_has_free() -> None:
    cluster = [node("n-1", cordoned=True), hyper_node_manifest("rack-1", 1, "n-1", tier_name="rack")]
    assert "0 / 16 CPU in use 0 / 16 1 full" in text_of(network(*cluster))


def test_hyper_nodes_from_labels_show_the_value_of_the_label() -> None:
    generated = "hypernode-racks-tier1-5q82h"
    rack = hyper_node_manifest(generated, 1, "n-1", tier_name="topology/rack")
    rack["metadata"]["labels"] = {"topology/rack": "rack-1", "volcano.sh/network-topology-source": "label"}
    page = network(node("n-1"), rack)
    assert lines(page) == ["rack-1"]
    assert f"/topology/{generated}" in links_of(page)
    for name in (generated, "rack-1"):
        own = page_of(name, node("n-1"), rack)
        assert own.title == "HyperNode rack-1"
        assert f"Name {generated}" in text_of(own)


def test_a_number_of_a_tier_leads_to_its_hyper_nodes() -> None:
    cluster = [*two_racks(), node("n-5"), hyper_node_manifest("rack-c", 1, "n-5")]
    page = network(*cluster, tier="1", room="free")
    assert "1 HyperNode of tier 1, free" in text_of(page)
    assert "/topology/rack-c" in re.findall(r'href="([^"]*)"', page.regions["hyper-nodes"])
    assert "rack-a" not in page.regions["hyper-nodes"]


def test_hyper_nodes_that_are_left_out_are_told_with_the_reason() -> None:
    page = network(*two_racks(), hyper_node_manifest("other", 2, "rack-a", of="HyperNode"))
    assert "Problems" in text_of(page)
    assert "left out" in text_of(page)


def test_a_cluster_without_hyper_nodes_says_so() -> None:
    assert "There are no HyperNodes" in text_of(network(node("n-1")))


def test_many_hyper_nodes_come_in_pages() -> None:
    cluster = [node("n-1"), *(hyper_node_manifest(f"rack-{number:04}", 1, "n-1") for number in range(3000))]
    page = network(*cluster, page="2")
    assert lines(page)[0] == "rack-0050"
    assert len(lines(page)) == 50
    assert "/topology?page=60" in links_of(page)


def test_a_hyper_node_with_many_below_it_leads_to_them() -> None:
    racks = [hyper_node_manifest(f"rack-{number:04}", 1, "n-1") for number in range(60)]
    spine = hyper_node_manifest("spine", 2, *(f"rack-{number:04}" for number in range(60)), of="HyperNode")
    page = network(node("n-1"), *racks, spine)
    assert len(lines(page)) == 51
    assert "10 more HyperNodes below" in text_of(page)


def test_a_deep_tree_is_shown_to_some_depth() -> None:
    chain = [hyper_node_manifest("d-0", 1, "n-1")]
    chain += [
        hyper_node_manifest(f"d-{tier}", tier + 1, f"d-{tier - 1}", of="HyperNode") for tier in range(1, 60)
    ]
    page = network(node("n-1"), *chain)
    assert len(lines(page)) == 8
    assert "1 HyperNode below" in text_of(page)


def test_every_number_leads_to_as_many_objects() -> None:
    cluster = [
        *two_racks(),
        node("n-5"),
        hyper_node_manifest("rack-c", 1, "n-2", "n-5", tier_name="rack"),
        node("n-6"),
        pod("orphan", on="n-2", group="no-such-group"),
    ]
    for query in ({}, {"tier": "1"}, {"tier": "1", "room": "free"}, {"cpu": "3"}):
        request = view_request("/topology", *cluster, query=query)
        compared = assert_numbers_lead_to_as_many(request, rendered(topology, request))
        assert ("/nodes?tier=1&state=free+of+jobs", 2) in compared
        assert any("sort=-fits" in target for target, _ in compared)
        assert "room" in query or any(target.endswith("#region-hyper-node-jobs") for target, _ in compared)
    request = view_request("/topology/spine", *cluster, names={"hypernode": "spine"})
    regions = rendered(hyper_node, request).regions
    tree = PageContent("", {name: regions[name] for name in ("hyper-node", "hyper-nodes")})
    assert ("/nodes?hypernode=spine", 4) in assert_numbers_lead_to_as_many(request, tree)


def test_numbers_of_pods_lead_to_the_pods_of_the_job() -> None:
    jobs = page_of("rack-a", *two_racks()).regions["hyper-node-jobs"]
    assert numbers_of(jobs) == [
        ("/podgroups/default/train?tab=pods", 2),
        ("/podgroups/default/train?tab=pods", 3),
    ]


def test_who_may_not_list_pods_is_not_told_that_all_is_free() -> None:
    blind = Visibility({"pods": frozenset()})
    full = [*two_racks(), *(pod(f"p-{number}", on=f"n-{number}", cpu="8") for number in range(1, 5))]
    request = view_request("/topology", *full, visibility=blind)
    text = text_of(rendered(topology, request))
    assert "rack-a rack (tier 1) 2 nodes, ? free" in text
    assert "? / 32" in text
    assert "fits ? pods ? jobs" in text
    assert "rack (tier 1) 2 ? ? of 4 ? / 64 CPU in use ? / 64 ? full" in text
    assert "It is not known what is in use, and so what is free" in text
    own = replace(request, path="/topology/rack-a", names={"hypernode": "rack-a"})
    text = text_of(rendered(hyper_node, own))
    assert "2 , ? free" in text
    assert "Pods that fit ? of" in text
    table = replace(request, query={"tier": "1", "room": "free"})
    assert "2 HyperNodes of tier 1 all as a tree" in text_of(rendered(topology, table))


# -- one HyperNode


def test_the_page_of_a_hyper_node_has_its_place_its_nodes_and_its_jobs() -> None:
    page = page_of("rack-a", *two_racks(), pod_group("small"), pod("small-0", on="n-2", group="small"))
    assert {"/topology", "/topology/spine", "/nodes?hypernode=rack-a", "/podgroups/default/train"} <= set(
        links_of(page)
    )
    assert 'data-names="n-1 n-2"' in page.regions["heat-names"]
    jobs = re.sub("<[^>]*>", " ", page.regions["hyper-node-jobs"]).split()
    assert "2 jobs with pods in rack-a" in " ".join(jobs)
    assert "default/train default ● Running 2 3".replace("● ", "") in " ".join(jobs)


def test_the_nodes_of_a_hyper_node_are_grouped_by_those_below_it() -> None:
    page = page_of("spine", *two_racks())
    assert (
        "[[&quot;rack-a&quot;,2,&quot;rack-a&quot;],[&quot;rack-b&quot;,2,&quot;rack-b&quot;]]"
        in page.regions["heat-names"]
    )
    assert lines(page) == ["rack-a", "rack-b"]


def test_a_hyper_node_that_is_left_out_has_a_page_that_says_why() -> None:
    cluster = [*two_racks(), hyper_node_manifest("other", 2, "rack-a", of="HyperNode")]
    assert "left out" in text_of(page_of("rack-a", *cluster))


def test_a_hyper_node_that_does_not_exist_is_not_there() -> None:
    with pytest.raises(NotThere, match="no HyperNode rack-z"):
        page_of("rack-z", *two_racks())


# -- hostile and large


def test_hostile_names_are_harmless() -> None:
    cluster = [
        node("n-1"),
        hyper_node_manifest(HOSTILE, 1, "n-1", "x" * 100_000, tier_name=HOSTILE * 1000),
        hyper_node_manifest("loop", 2, "loop", of="HyperNode"),
    ]
    for page in (
        network(*cluster, open=HOSTILE, tier=HOSTILE),
        network(*cluster),
        page_of(HOSTILE, *cluster),
    ):
        assert "<script" not in html_of(page)
        assert len(html_of(page)) < 30_000


def test_pages_of_5000_nodes_are_small(record_property: Callable[[str, object], None]) -> None:
    cluster = [node(f"node-{number:05}", gpus=8) for number in range(5000)]
    racks = [
        hyper_node_manifest(f"rack-{rack:03}", 1, *(f"node-{n:05}" for n in range(rack * 16, rack * 16 + 16)))
        for rack in range(312)
    ]
    spines = [
        hyper_node_manifest(
            f"spine-{spine:02}",
            2,
            *(f"rack-{n:03}" for n in range(spine * 16, spine * 16 + 16)),
            of="HyperNode",
        )
        for spine in range(20)
    ]
    pods = [pod(f"p-{n}", on=f"node-{n:05}", group=f"job-{n // 20}") for n in range(5000)]
    groups = [pod_group(f"job-{n}") for n in range(250)]
    request = view_request("/topology", *cluster, *racks, *spines, *groups, *pods)
    began = time.perf_counter()
    page = rendered(topology, request)
    record_property("seconds", time.perf_counter() - began)
    assert len(html_of(page).encode()) < 800_000
