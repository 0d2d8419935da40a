"""The page of all nodes: the heat map, the largest gang, the table."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from html import unescape

import pytest

from stromboli.cli.dashboard.pages.network.heat_map_markup import node_groups
from stromboli.cli.dashboard.pages.network.node_list_page import node_list
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.cli.live.visible_records import EVERYTHING, Visibility
from stromboli.model.topology.display_names import natural_order
from tests.cli.dashboard.network_manifests import Manifest, hyper_node, node, pod, pod_group, two_racks
from tests.cli.dashboard.number_links import assert_numbers_lead_to_as_many
from tests.cli.dashboard.view_requests import HOSTILE, html_of, links_of, rendered, text_of, view_request


def nodes_page(
    *manifests: Manifest, query: dict[str, str] | None = None, visibility: Visibility = EVERYTHING
) -> PageContent:
    return rendered(node_list, view_request("/nodes", *manifests, query=query, visibility=visibility))


def attribute(page: PageContent, name: str) -> str:
    match = re.search(rf' {name}="([^"]*)"', html_of(page))
    assert match is not None, name
    return unescape(match.group(1))


def cells(page: PageContent) -> dict[str, str]:
    """The character of each node."""
    return dict(zip(attribute(page, "data-names").split(), attribute(page, "shares"), strict=True))


def vacant(page: PageContent) -> set[str]:
    """The nodes that are marked as free of jobs."""
    marks = bytes.fromhex(attribute(page, "vacant"))
    bits = "".join(f"{byte:08b}" for byte in marks)
    return {name for name, bit in zip(cells(page), bits, strict=False) if bit == "1"}


# -- the map


def test_a_cell_says_how_much_is_in_use() -> None:
    page = nodes_page(*two_racks())
    assert cells(page) == {"n-1": "U", "n-2": "0", "n-3": "F", "n-4": "0"}  # 30 and 15 of 60 levels
    assert vacant(page) == {"n-2", "n-4"}


def test_full_and_nearly_full_nodes_look_different() -> None:
    page = nodes_page(
        node("full"), node("nearly"), pod("a", on="full", cpu="16"), pod("b", on="nearly", cpu="15999m")
    )
    assert cells(page) == {"full": "y", "nearly": "x"}


def test_nodes_without_the_resource_have_a_sign_of_their_own() -> None:
    page = nodes_page(node("a"), node("b", gpus=8), pod("p", on="b", gpus=8), query={"resource": "gpu"})
    assert cells(page) == {"a": ".", "b": "y"}


def test_a_node_that_is_full_of_other_pods_is_shown_as_full_and_free_of_jobs() -> None:
    page = nodes_page(node("a"), node("b"), pod("web", on="a", cpu="16", group=""), pod("train-0", on="b"))
    assert cells(page) == {"a": "y", "b": "F"}
    assert vacant(page) == {"a"}


def test_cordoned_nodes_and_those_that_are_not_ready_are_marked_by_number() -> None:
    page = nodes_page(node("a"), node("b", cordoned=True), node("c", state="NotReady"))
    assert attribute(page, "cordoned") == "1"
    assert attribute(page, "not-ready") == "2"


def test_nodes_are_grouped_by_the_lowest_tier_unless_the_address_says_otherwise() -> None:
    cluster = [*two_racks(), node("n-0", labels={"topology.kubernetes.io/zone": "west"})]

    def groups(query: dict[str, str]) -> list[list[object]]:
        groups = json.loads(attribute(nodes_page(*cluster, query=query), "data-groups"))
        return [[title, size] for title, size, _ in groups]

    assert groups({}) == [["rack-a", 2], ["rack-b", 2], ["in no HyperNode of this tier", 1]]
    assert groups({"group": "tier:2"}) == [["spine", 4], ["in no HyperNode of this tier", 1]]
    assert groups({"group": "state"}) == [["Ready", 5]]
    assert groups({"group": "none"}) == [["", 5]]
    zone = "topology.kubernetes.io/zone"
    assert groups({"group": zone}) == [["west", 1], [f"without {zone}", 4]]
    assert groups({"group": "no-such-label"}) == groups({})


def test_above_groups_with_long_titles_stands_what_tells_them_apart() -> None:
    titles = {0: "hypernode-racks-tier1-4m2vc", 1: "hypernode-racks-tier1-4mzpt"}
    groups = node_groups(titles, [0, 1, 2], "others")
    assert [group.label for group in groups] == ["4m2vc", "4mzpt", ""]
    assert [group.title for group in groups] == [*titles.values(), "others"]


def test_short_titles_of_groups_stay_whole() -> None:
    assert [group.label for group in node_groups({0: "rack-a", 1: "rack-b"}, [0, 1], "others")] == ["", ""]


def test_numbers_in_titles_are_compared_as_numbers() -> None:
    assert sorted(["rack-10", "rack-9", "rack"], key=natural_order) == ["rack", "rack-9", "rack-10"]


def test_the_map_has_a_summary_in_words() -> None:
    label = re.search(r'<heat-map[^>]*aria-label="([^"]*)"', html_of(nodes_page(*two_racks())))
    assert label is not None
    assert "4 nodes: 19% of the CPU in use, 2 free of jobs, 0 take no new pods" in label.group(1)


# -- the largest gang


def test_the_largest_gang_is_counted_in_the_cluster_and_within_hyper_nodes() -> None:
    text = text_of(nodes_page(*two_racks(), pod("next", cpu="8")))
    assert "Pods of 8 CPU, 1Gi Memory each (the most common size of pods that wait or are to come)" in text
    # n-1 has room for 1, n-3 for 1, the empty ones for 2 each
    assert "Whole cluster 6" in text
    assert "Within one rack (tier 1) 3 in rack-a" in text
    assert "Within one HyperNode (tier 2) 6 in spine" in text


def test_the_size_of_the_pods_can_be_chosen() -> None:
    text = text_of(nodes_page(*two_racks(), query={"cpu": "500m", "memory": "32Gi"}))
    assert "Pods of 0.5 CPU, 32Gi Memory each (as chosen)" in text
    assert "Whole cluster 6" in text  # of two nodes something is in use


def test_cordoned_nodes_and_those_that_are_not_ready_take_no_gang() -> None:
    page = nodes_page(node("a", cordoned=True), node("b", state="NotReady"), node("c"), query={"cpu": "16"})
    assert "Whole cluster 1" in text_of(page)


def test_no_more_pods_fit_than_a_node_takes() -> None:
    assert "Whole cluster 110" in text_of(nodes_page(node("a"), query={"cpu": "1m"}))


def test_a_size_that_is_none_is_told() -> None:
    assert "cpu: bad quantity &quot;lots&quot;" in html_of(nodes_page(node("a"), query={"cpu": "lots"}))


# -- the table


def test_the_table_links_nodes_their_pods_and_their_hyper_nodes() -> None:
    links = links_of(nodes_page(*two_racks()))
    assert {"/nodes/n-1", "/nodes/n-1#region-node-pods", "/topology/rack-a"} <= set(links)


def test_every_number_leads_to_as_many_objects() -> None:
    for query in ({}, {"hypernode": "rack-a"}, {"cpu": "8", "memory": "1Gi"}):
        request = view_request("/nodes", *two_racks(), query=query)
        compared = assert_numbers_lead_to_as_many(request, rendered(node_list, request))
        assert ("/nodes/n-1#region-node-pods", 2) in compared
        assert any(target.startswith("/nodes?sort=-fits") for target, _ in compared)


def test_the_table_says_how_many_pods_fit_on_each_node() -> None:
    text = text_of(nodes_page(*two_racks(), query={"cpu": "8", "hypernode": "rack-a"}))
    assert "2 of 4 nodes 2 Ready; 3 more pods of 8 CPU fit" in text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"hypernode": "rack-b"}, ["n-3", "n-4"]),
        ({"hypernode": "no-such"}, []),
        ({"q": "n-1"}, ["n-1"]),
        ({"state": "Ready"}, ["n-1", "n-2", "n-3", "n-4"]),
        ({"state": "SchedulingDisabled"}, ["n-5", "n-6"]),
        ({"state": "NotReady"}, ["n-6", "n-7"]),
        ({"tier": "1"}, ["n-1", "n-2", "n-3", "n-4"]),
        ({"tier": "2", "state": "free of jobs"}, ["n-2", "n-4"]),
        ({"tier": "9"}, []),
        ({"state": "free of jobs"}, ["n-2", "n-4"]),
    ],
)
def test_filters_leave_some_nodes_on_the_map_and_in_the_table(
    query: dict[str, str], shown: list[str]
) -> None:
    others = (
        node("n-5", cordoned=True),
        node("n-6", cordoned=True, state="NotReady"),
        node("n-7", state="NotReady"),
    )
    page = nodes_page(*two_racks(), *others, query=query)
    assert attribute(page, "data-names").split() == shown
    assert [target for target in links_of(page) if re.fullmatch(r"/nodes/n-\d", target)] == [
        f"/nodes/{name}" for name in shown
    ]


# -- rights


def test_who_may_not_list_pods_sees_nodes_without_their_use() -> None:
    page = nodes_page(*two_racks(), visibility=Visibility({"pods": frozenset()}))
    assert set(cells(page).values()) == {"?"}
    text = text_of(page)
    assert "Pods may not be listed" in text
    assert "? / 16" in text
    assert "0 / 16" not in text
    assert "It is not known what is in use, and so what is free" in text
    free = nodes_page(
        *two_racks(), query={"state": "free of jobs"}, visibility=Visibility({"pods": frozenset()})
    )
    assert "0 of 4 nodes" in text_of(free)


def test_only_visible_pods_count() -> None:
    cluster = [node("n-1"), pod("mine", on="n-1"), pod("theirs", on="n-1", namespace="other")]
    page = nodes_page(*cluster, visibility=Visibility({"pods": frozenset({"default"})}))
    assert cells(page) == {"n-1": "F"}
    assert "Only the pods that you may see count" in text_of(page)


def test_who_may_not_list_nodes_sees_none() -> None:
    page = nodes_page(*two_racks(), visibility=Visibility(hidden=frozenset({"nodes"})))
    assert "0 of 0 nodes" in text_of(page)


# -- hostile and large


def test_hostile_names_and_labels_are_harmless() -> None:
    page = nodes_page(
        node(f"n {HOSTILE}", labels={"zone": HOSTILE}),
        node("n-2", labels={"zone": "x" * 100_000}),
        hyper_node(HOSTILE, 1, "n-2", tier_name=HOSTILE),
        query={"group": "zone", "q": "", "resource": HOSTILE, "hypernode": "", "cpu": HOSTILE},
    )
    assert "<script" not in html_of(page)
    assert len(html_of(page)) < 20_000
    assert len(attribute(page, "data-names").split()) == len(attribute(page, "shares"))


def test_a_page_of_5000_nodes_is_small_and_an_update_tiny(
    record_property: Callable[[str, object], None],
) -> None:
    cluster = [node(f"node-{number:05}.zone-a.example", gpus=8) for number in range(5000)]
    racks = [
        hyper_node(
            f"rack-{rack:03}", 1, *(f"node-{n:05}.zone-a.example" for n in range(rack * 16, rack * 16 + 16))
        )
        for rack in range(313)
    ]
    pods = [pod(f"p-{number}", on=f"node-{number:05}.zone-a.example", gpus=2) for number in range(0, 5000, 2)]
    request = view_request("/nodes", *cluster, *racks, pod_group(), *pods, query={"resource": "gpu"})
    page = rendered(node_list, request)
    assert len(html_of(page).encode()) < 400_000
    assert len(page.regions["heat-map"].encode()) < 8_000
    request.records.version += 1
    began = time.perf_counter()
    rendered(node_list, request)
    record_property("seconds", time.perf_counter() - began)
