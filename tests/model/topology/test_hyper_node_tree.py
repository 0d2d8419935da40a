"""The tree of HyperNodes: members, what is left out and why, after every change."""

from __future__ import annotations

import re
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.patterns import matches, pattern_error
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import HyperNode
from stromboli.model.intake.object_intake import Intake
from stromboli.model.topology import membership, name_patterns
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.hyper_node_tree import HyperNodeTree
from stromboli.model.topology.membership import MAX_LEVELS, TOP
from stromboli.model.topology.name_patterns import plain_text
from tests.manifests import Manifest, discovered, hyper_node, node
from tests.number_of_examples import scaled

Snapshot = dict[str, Any]


def member(type: str = "Node", **selector: Any) -> Manifest:
    return {"type": type, "selector": selector}


def by_pattern(pattern: str) -> Manifest:
    return member(regexMatch={"pattern": pattern})


def by_labels(**labels: str) -> Manifest:
    return member(labelMatch={"matchLabels": labels})


def switch(name: str, tier: int = 1, *members: Manifest, created: float = 0, **terms: Any) -> Manifest:
    """A HyperNode with any members, beside those that `hyper_node` takes."""
    made = hyper_node(name, tier, **terms)
    made["spec"]["members"] += members
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{int(created):02}Z"
    return made


class Model:
    """A cluster of nodes and HyperNodes."""

    def __init__(self, *manifests: Manifest):
        self.intake = Intake()
        self.objects: dict[tuple[type, str], Object] = {}
        self.put(*manifests)

    def put(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            obj = decode(manifest)
            assert obj is not None
            self.objects[type(obj), obj.name] = obj
            self.intake.put(obj)

    def drop(self, manifest: Manifest) -> None:
        obj = decode(manifest)
        assert obj is not None
        self.objects.pop((type(obj), obj.name), None)
        self.intake.drop(obj)

    @property
    def tree(self) -> HyperNodeTree:
        self.intake.cluster.settle()
        return self.intake.cluster.hyper_nodes

    def nodes(self, domain: Domain | str) -> list[str]:
        domain = self.tree.domains[domain] if isinstance(domain, str) else domain
        nodes = self.intake.cluster.columns.nodes
        return [nodes[row].name for row in domain.rows]

    def rebuilt(self) -> Model:
        fresh = Model()
        for obj in self.objects.values():
            fresh.intake.put(obj)
        return fresh

    def snapshot(self) -> Snapshot:
        """All that can be asked of the tree."""
        tree = self.tree
        return {
            "domains": [
                (
                    domain.name,
                    domain.tier,
                    domain.tier_name,
                    domain.parent.name if domain.parent else None,
                    [child.name for child in domain.children],
                    self.nodes(domain),
                )
                for domain in (*tree.domains.values(), tree.top)
            ],
            "tiers": (tree.tiers, dict(tree.tier_of_name)),
            "problems": dict(sorted(tree.problems.items())),
            "notices": {name: tree.notices(name) for name in tree.with_notices()},
            "leaves": [tree.leaf_of(row) and tree.leaf_of(row).name for row in range(len(tree.top.rows))],  # type: ignore[union-attr]
        }


# -- members


def test_members_are_selected_by_name_by_pattern_and_by_labels() -> None:
    model = Model(
        *(node(name) for name in ("a-1", "a-2", "b-1")),
        node("b-2", labels={"rack": "r1"}),
        switch("names", 1, nodes=["a-2", "b-1"]),
        switch("pattern", 1, by_pattern("-1$")),
        switch("prefix", 1, by_pattern("^a-")),
        switch("labels", 1, by_labels(rack="r1")),
        switch("empty-selector", 1, member(labelMatch={})),
        switch("spine", 2, children=["names", "labels"]),
    )
    assert model.nodes("names") == ["a-2", "b-1"]
    assert model.nodes("pattern") == ["a-1", "b-1"]
    assert model.nodes("prefix") == ["a-1", "a-2"]
    assert model.nodes("labels") == ["b-2"]
    assert model.nodes("empty-selector") == []
    assert model.nodes("spine") == ["a-2", "b-1", "b-2"]
    assert model.nodes(model.tree.top) == ["a-1", "a-2", "b-1", "b-2"]
    assert [child.name for child in model.tree.top.children] == [
        "empty-selector",
        "pattern",
        "prefix",
        "spine",
    ]


def test_a_node_that_stops_matching_leaves_at_once() -> None:
    model = Model(node("n", labels={"rack": "r1"}), switch("s", 1, by_labels(rack="r1")))
    model.put(switch("t", 2, children=["s"]))
    assert model.nodes("t") == ["n"]
    model.put(node("n", labels={"rack": "r2"}))
    assert (model.nodes("s"), model.nodes("t")) == ([], [])
    model.put(node("n", labels={"rack": "r1"}))
    assert (model.nodes("s"), model.nodes("t")) == (["n"], ["n"])


def test_the_top_is_a_tier_above_all_others() -> None:
    model = Model(node("n"))
    assert (model.tree.top.tier, model.tree.tiers, bool(model.tree)) == (1, [1], False)
    model.put(switch("s", 0))
    assert (model.tree.top.tier, model.tree.tiers, bool(model.tree)) == (1, [0, 1], True)
    model.put(switch("t", 5, children=["s"]))
    assert model.tree.tiers == [0, 5, 6]


def test_the_top_is_above_the_tiers_of_hyper_nodes_that_are_left_out() -> None:
    loop = switch("spine", 3, children=["spine"])
    model = Model(node("n"), switch("s", 1, nodes=["n"]), loop)
    assert (model.tree.top.tier, model.tree.tiers) == (4, [1, 4])
    model.drop(loop)
    assert (model.tree.top.tier, model.tree.tiers) == (2, [1, 2])


def test_of_a_tier_name_with_two_tiers_the_youngest_counts() -> None:
    model = Model(switch("b", 1, tier_name="rack", created=2), switch("a", 2, tier_name="rack", created=1))
    assert model.tree.tier_of_name == {"rack": 1}
    model.drop(switch("b"))
    assert model.tree.tier_of_name == {"rack": 2}
    model.drop(switch("a"))
    assert model.tree.tier_of_name == {}


def test_the_leaf_of_a_node_is_in_the_lowest_tier_that_there_is() -> None:
    model = Model(node("n1"), node("n2"), switch("s", 1, nodes=["n1"]), switch("t", 2, nodes=["n2"]))
    leaves = [model.tree.leaf_of(row) for row in (0, 1)]
    assert [leaf.name if leaf else None for leaf in leaves] == ["s", None]


# -- what is left out


@pytest.mark.parametrize(
    ("manifests", "problems"),
    [
        (
            [switch("s", 1, nodes=["n"]), switch("t", 2, children=["s"]), switch("u", 2, children=["s"])],
            {"s": "more than one HyperNode has it as a member: t, u"},
        ),
        (
            [switch("b", 1, children=["c"]), switch("c", 2, children=["a"]), switch("a", 3, children=["b"])],
            dict.fromkeys("abc", "it is a member of itself: a > b > c > a"),
        ),
        ([switch("a", 1, children=["a"])], {"a": "it is a member of itself: a > a"}),
        (
            [switch("s", 1, by_pattern("("), nodes=["n"])],
            {"s": "a pattern of its members is invalid: error parsing regexp: missing closing ): `(`"},
        ),
        ([switch(TOP, 1, nodes=["n"])], {TOP: "this is the name of the whole cluster"}),
    ],
)
def test_a_bad_hyper_node_is_left_out_and_all_others_stand(
    manifests: list[Manifest], problems: dict[str, str]
) -> None:
    good = switch("good", 1, nodes=["n"])
    model = Model(node("n"), good, *manifests)
    assert model.tree.problems == problems
    assert not problems.keys() & model.tree.domains.keys()
    assert model.nodes("good") == ["n"]
    for manifest in manifests:
        model.drop(manifest)
    assert (model.tree.problems, list(model.tree.domains)) == ({}, ["good"])


def test_what_is_below_a_hyper_node_that_is_left_out_is_below_the_top() -> None:
    model = Model(
        node("n"),
        switch("leaf", 1, nodes=["n"]),
        switch("middle", 2, children=["leaf"]),
        switch("t", 3, children=["middle"]),
        switch("u", 3, children=["middle"]),
    )
    assert list(model.tree.problems) == ["middle"]
    assert model.tree.domains["leaf"].parent is model.tree.top
    assert (model.nodes("t"), model.nodes("u"), model.nodes("leaf")) == ([], [], ["n"])
    model.drop(switch("u"))
    assert model.nodes("t") == ["n"]


def test_members_that_do_not_exist_are_named_until_they_do() -> None:
    model = Model(node("n1"), switch("t", 2, nodes=["n1", "n2"], children=["s"]))
    unknown = "members that do not exist are left out: "
    assert model.tree.notices("t") == {names.EVENT_UNKNOWN_MEMBERS: f"{unknown}HyperNode s, Node n2"}
    assert model.nodes("t") == ["n1"]
    model.put(node("n2"))
    model.put(switch("s", 1))
    assert model.nodes("t") == ["n1", "n2"]
    assert model.tree.notices("t") == {}
    model.drop(node("n1"))
    assert model.tree.notices("t") == {names.EVENT_UNKNOWN_MEMBERS: f"{unknown}Node n1"}


def test_more_levels_than_networks_have_are_left_out() -> None:
    chain = [switch(f"h{level:03}", level, children=[f"h{level - 1:03}"]) for level in range(1, 1000)]
    model = Model(node("n"), switch("h000", 0, nodes=["n"]), *chain)
    tree = model.tree
    assert len(tree.domains) == MAX_LEVELS
    assert tree.problems["h000"] == f"it lies below more than {MAX_LEVELS - 1} other HyperNodes"
    assert model.rebuilt().snapshot() == model.snapshot()
    model.drop(switch("h020"))
    assert model.nodes("h019") == ["n"]
    assert model.rebuilt().snapshot() == model.snapshot()


def test_a_long_loop_is_found() -> None:
    loop = [switch(f"h{level:04}", 1, children=[f"h{(level + 1) % 3000:04}"]) for level in range(3000)]
    model = Model(*loop)
    assert len(model.tree.problems) == 3000
    assert model.tree.problems["h1500"] == "it is a member of itself: h0000 > h0001 > h0002 > 2998 more"


# -- bounds


def test_patterns_of_the_youngest_are_left_out_if_all_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(f"n{number}") for number in range(20)]
    model = Model(*nodes, switch("old", 1, by_pattern("n1"), created=1))
    patterns = model.tree.membership._patterns
    monkeypatch.setattr(name_patterns, "MAX_MATCHING", patterns._patterns["n1"].cost(patterns._bytes))
    model.put(switch("young", 1, by_pattern("n2"), created=2), switch("named", 1, nodes=["n3"], created=3))
    model.put(switch("youngest", 1, by_pattern("n3"), created=4))
    assert list(model.tree.problems) == ["youngest"]
    assert "the patterns of older HyperNodes takes all the time" in model.tree.problems["youngest"]
    assert model.nodes("named") == ["n3"]
    assert model.rebuilt().snapshot() == model.snapshot()
    model.drop(switch("old"))
    assert model.nodes("youngest") == ["n3"]
    assert model.tree.problems == {}


def test_a_pattern_that_takes_too_long_leaves_other_hyper_nodes_their_nodes() -> None:
    nodes = [node(f"node-{number:04}") for number in range(300)]
    large = switch("large", 1, *(by_pattern(f"[a-z]{{{900 + number}}}[0-9]{{900}}") for number in range(90)))
    begin = process_time()
    model = Model(*nodes, large, switch("small", 1, by_pattern("^node-000.$"), created=5))
    assert "matching its patterns takes too long" in model.tree.problems["large"]
    assert len(model.nodes("small")) == 10
    assert process_time() - begin < 10


def test_all_hyper_nodes_together_name_a_bounded_number_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "MAX_MEMBERSHIPS", 6)
    nodes = [node(f"n{number}") for number in range(3)]
    every = [switch(f"h{number}", 1, by_pattern("n"), created=9 - number) for number in range(4)]
    model = Model(*nodes, *every)
    assert sorted(model.tree.problems) == ["h0", "h1"]
    assert "it is one of the youngest" in model.tree.problems["h0"]
    assert model.rebuilt().snapshot() == model.snapshot()
    model.drop(node("n0"))
    assert sorted(model.tree.problems) == ["h0"]
    assert model.rebuilt().snapshot() == model.snapshot()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^gpu-", "gpu-"),
        ("rack-17-[0-9]+$", "rack-17-"),
        ("^a1[0-9]{2}-rack", "-rack"),
        ("gpu-1*", "gpu-"),
        ("gpu-1?x", "gpu-"),
        ("gpu-1{0}", "gpu-"),
        ("gpu-1+", "gpu-1"),
        ("gpu-1+?", ""),
        (r"gpu\.example\.com", "example"),
        (r"gpu-\d", "gpu-"),
        (r"gpu-\pL", ""),
        (r"\Qgpu*\E", ""),
        (r"[\]a]gpu", ""),
        ("[[:alpha:]]gpu", ""),
        ("[^]gpu[0-9]", ""),
        ("(?i)gpu", ""),
        ("a|b", ""),
        ("", ""),
    ],
)
def test_names_must_have_the_text_of_a_pattern_only_if_it_is_plain(pattern: str, text: str) -> None:
    assert plain_text(pattern) == text


@example("[^]abc[x]", "0")
@given(pattern=st.text("abc01-.*+?^$[]{},|()\\d", max_size=9), name=st.text("abc01-", max_size=6))
def test_every_name_that_a_pattern_matches_has_its_text(pattern: str, name: str) -> None:
    if not pattern_error(pattern) and matches(pattern, name):
        assert plain_text(pattern) in name


# -- changes

RACKS = st.sampled_from([None, "r1", "r2"])
NODES = [f"{letter}-{number}" for letter in "ab" for number in range(3)]
HYPER_NODES = [f"h{number}" for number in range(6)]
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "odd"])
REQUIREMENTS = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    st.sampled_from(["rack", "zone"]),
    OPERATORS,
    st.lists(st.sampled_from(["r1", "r2"]), max_size=2),
)
MEMBERS = st.one_of(
    st.sampled_from([*NODES, "unknown"]).map(lambda name: member(exactMatch={"name": name})),
    st.sampled_from(HYPER_NODES).map(lambda name: member("HyperNode", exactMatch={"name": name})),
    st.sampled_from(["^a-", "1$", "", "(", "[ab]-0"]).map(by_pattern),
    st.sampled_from([{}, {"rack": "r1"}, {"rack": "r2", "zone": "r1"}]).map(
        lambda labels: by_labels(**labels)
    ),
    st.lists(REQUIREMENTS, min_size=1, max_size=2).map(
        lambda requirements: member(labelMatch={"matchExpressions": requirements})
    ),
)


def _labelled(name: str, rack: str | None, zone: str | None, created: float) -> Manifest:
    labels = {key: value for key, value in (("rack", rack), ("zone", zone)) if value is not None}
    return node(name, labels=labels, created=created)


PUTS = st.one_of(
    st.builds(_labelled, st.sampled_from(NODES), RACKS, RACKS, st.integers(0, 3)),
    st.builds(
        lambda name, tier, members, created, tier_name: switch(
            name, tier, *members, created=created, tier_name=tier_name
        ),
        st.sampled_from(HYPER_NODES),
        st.integers(0, 3),
        st.lists(MEMBERS, max_size=3),
        st.integers(0, 3),
        st.sampled_from(["", "rack", "spine"]),
    ),
)
CHANGES = st.lists(st.lists(st.tuples(st.booleans(), PUTS), min_size=1, max_size=3), min_size=1, max_size=8)


@settings(max_examples=scaled(25))
@given(begin=st.lists(PUTS, max_size=12), changes=CHANGES)
@example(begin=[switch("h0", 1, nodes=["a-0"])], changes=[[(False, switch("h0"))], [(True, node("a-0"))]])
def test_after_any_changes_the_tree_is_as_if_built_anew(begin: list[Manifest], changes: Any) -> None:
    model = Model(*begin)
    for step in changes:
        model.snapshot()
        for added, manifest in step:
            if added:
                model.put(manifest)
            else:
                model.drop(manifest)
        assert model.snapshot() == model.rebuilt().snapshot()
        _check_by_definition(model)


def test_a_hyper_node_that_changed_keeps_the_notice_about_its_low_tier() -> None:
    above = [
        switch(f"above-{n}", 1, member("HyperNode", exactMatch={"name": f"below-{n}"})) for n in range(8)
    ]
    model = Model(*(switch(f"below-{n}") for n in range(8)), *above)
    model.snapshot()
    for changed in above:
        changed["spec"]["tierName"] = "rack"
        model.put(changed)
    assert set(model.snapshot()["notices"]) == {f"above-{n}" for n in range(8)}


def _check_by_definition(model: Model) -> None:
    """Compare the tree with one that follows the definitions word by word."""
    objects = model.intake.cluster.objects.hyper_nodes
    children = {
        name: {
            each.selector.exact_match.name
            for each in obj.spec.members
            if each.type == "HyperNode" and each.selector.exact_match
        }
        for name, obj in objects.items()
    }
    parents = {name: [other for other in objects if name in children[other]] for name in objects}

    def ancestors(name: str) -> list[str]:
        path: list[str] = []
        while len(parents[name]) == 1 and parents[name][0] not in path:
            name = parents[name][0]
            path.append(name)
        return path

    standing = {
        name
        for name, obj in objects.items()
        if len(parents[name]) <= 1
        and name not in ancestors(name)
        and not any(
            each.selector.regex_match and pattern_error(each.selector.regex_match.pattern)
            for each in obj.spec.members
        )
    }

    def nodes(name: str) -> set[str]:
        below = [nodes(child) for child in children[name] if child in standing]
        return _named(objects[name], model).union(*below)

    tree = model.tree
    assert tree.domains.keys() == standing
    assert tree.problems.keys() == objects.keys() - standing
    for name, domain in tree.domains.items():
        assert set(model.nodes(domain)) == nodes(name)
        above = [parent for parent in parents[name] if parent in standing]
        assert domain.parent is (tree.domains[above[0]] if above else tree.top)


def _named(obj: HyperNode, model: Model) -> set[str]:
    named = set()
    for each in model.intake.cluster.columns.nodes:
        for selector in (entry.selector for entry in obj.spec.members if entry.type == "Node"):
            exact, regex, labels = selector.exact_match, selector.regex_match, selector.label_match
            if (
                (exact and exact.name == each.name)
                or (regex and regex.pattern and regex.pattern != "(" and re.search(regex.pattern, each.name))
                or (
                    labels
                    and (labels.match_labels or labels.match_expressions)
                    and matches_labels(labels, each.labels)
                )
            ):
                named.add(each.name)
    return named


# -- what changes cost


def test_a_change_of_another_kind_leaves_the_tree_as_it_is() -> None:
    model = Model(node("n"), switch("s", 1, nodes=["n"]))
    version, domain = model.tree.version, model.tree.domains["s"]
    model.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    model.put(switch("s", 1, nodes=["n"]))
    model.put(node("n", labels={"unasked": "label"}, cpu=9))
    assert (model.tree.version, model.tree.domains["s"]) == (version, domain)


def test_a_label_touches_the_hyper_nodes_above_its_node_alone() -> None:
    racks = [switch(f"rack-{number}", 1, by_labels(rack=str(number))) for number in range(4)]
    model = Model(
        *(node(f"n{number}", labels={"rack": str(number % 4)}) for number in range(8)),
        *racks,
        switch("even", 2, children=["rack-0", "rack-2"]),
        switch("odd", 2, children=["rack-1", "rack-3"]),
    )
    before = {name: domain.rows for name, domain in model.tree.domains.items()}
    model.put(node("n0", labels={"rack": "2"}))
    changed = {name for name, domain in model.tree.domains.items() if domain.rows is not before[name]}
    assert changed == {"rack-0", "rack-2"}
    assert model.nodes("even") == ["n0", "n2", "n4", "n6"]


def test_thousands_of_hyper_nodes_are_taken_in_and_changed_in_little_time() -> None:
    nodes = [node(f"n{number:04}", labels={"rack": f"r{number // 2}"}) for number in range(1000)]
    leaves = [switch(f"leaf-{number:04}", 1, by_labels(rack=f"r{number}")) for number in range(5000)]
    spines = [
        switch(f"spine-{spine:02}", 2, children=[f"leaf-{100 * spine + leaf:04}" for leaf in range(100)])
        for spine in range(50)
    ]
    model = Model(*nodes, *leaves, *spines)
    begin = process_time()
    assert len(model.tree.domains) == 5050
    taken_in = process_time() - begin
    begin = process_time()
    for number in range(20):
        model.put(node(f"n{number:04}", labels={"rack": "r4999"}))
        assert model.tree.version
    changed = (process_time() - begin) / 20
    assert taken_in < 5
    assert changed < taken_in


# -- display names


def titles(model: Model) -> dict[str, str]:
    return {name: domain.title for name, domain in model.tree.domains.items()}


def test_a_hyper_node_from_a_label_shows_the_value_and_others_their_names() -> None:
    model = Model(discovered("hypernode-racks-tier1-5q82h", "topology/rack", "rack-1"), switch("mine"))
    assert titles(model) == {"hypernode-racks-tier1-5q82h": "rack-1", "mine": "mine"}


def test_equal_values_are_distinguished_by_their_labels_and_else_by_names() -> None:
    model = Model(
        discovered("a", "topology/rack", "1"),
        discovered("b", "topology/row", "1", tier=2),
        discovered("c", "one/zone", "x"),
        discovered("d", "two/zone", "x"),
        discovered("e", "topology/rack", "switch"),
        switch("switch"),
    )
    expected = {"a": "rack=1", "b": "row=1", "c": "c", "d": "d", "e": "rack=switch", "switch": "switch"}
    assert titles(model) == expected
    assert [model.tree.titles.resolve(title) for title in expected.values()] == list(expected)


def test_display_names_follow_changes() -> None:
    model = Model(discovered("a", "topology/rack", "1"), discovered("b", "topology/row", "1", tier=2))
    model.drop(discovered("b", "topology/row", "1", tier=2))
    assert titles(model) == {"a": "1"}
    model.put(discovered("a", "topology/rack", "2"))
    assert titles(model) == {"a": "2"}
    model.put(switch("2"))
    assert titles(model) == {"a": "rack=2", "2": "2"}


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "rack", "row"]), st.sampled_from("ab1")))
)
def test_display_names_are_unique_and_those_of_a_new_tree(changes: list[tuple[str, str, str]]) -> None:
    model, objects = Model(), dict[str, Manifest]()
    for name, key, value in changes:
        if key:
            objects[name] = discovered(name, f"topology/{key}", value)
            model.put(objects[name])
        elif name in objects:
            model.drop(objects.pop(name))
        shown = titles(model)
        assert len(set(shown.values())) == len(shown)
        assert shown == titles(Model(*objects.values()))
