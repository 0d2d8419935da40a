"""What is written when HyperNodes differ from what was discovered, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.scheduling import HyperNodeSpec
from stromboli.controllers.hypernode.discovered_hyper_nodes import DiscoveredHyperNode, exact_members
from stromboli.controllers.hypernode.reconcile import labels_of, reconcile
from stromboli.controllers.watched_kinds import HyperNode

SOURCE = "volcano.sh/network-topology-source"


def rack(name: str, *nodes: str, **labels: str) -> DiscoveredHyperNode:
    return DiscoveredHyperNode(name, 1, exact_members("Node", nodes), "rack", labels)


def switch(name: str, *racks: str) -> DiscoveredHyperNode:
    return DiscoveredHyperNode(name, 2, exact_members("HyperNode", racks), "switch")


def there(*discovered: DiscoveredHyperNode, source: str = "label") -> dict[str, HyperNode]:
    """They exist as discovered."""
    return {
        each.name: HyperNode(
            metadata=ObjectMeta(each.name, labels=labels_of(each, source)),
            spec=HyperNodeSpec(each.tier, each.tier_name, each.members),
        )
        for each in discovered
    }


def writes(
    discovered: list[DiscoveredHyperNode], existing: dict[str, HyperNode], may_delete: bool = True
) -> list[str]:
    return [
        f"delete {write.existing.name}"
        if write.discovered is None and write.existing is not None
        else f"{'create' if write.existing is None else 'update'} {write.discovered.name}"
        for write in reconcile("label", discovered, existing, may_delete).writes
        if write.discovered is not None or write.existing is not None
    ]


def test_nothing_is_written_where_nothing_differs() -> None:
    """Volcano writes everything at every discovery, and sets all counts to 0 by that."""
    discovered = [rack("r", "a", "b", row="7"), switch("s", "r")]
    assert writes(discovered, there(*discovered)) == []


def test_children_are_created_before_parents_and_deleted_after_them() -> None:
    discovered = [switch("s", "r0", "r1"), rack("r1", "b"), rack("r0", "a")]
    assert writes(discovered, {}) == ["create r0", "create r1", "create s"]
    assert writes([], there(*discovered)) == ["delete s", "delete r0", "delete r1"]


def test_a_node_leaves_its_rack_before_it_joins_another() -> None:
    before = there(rack("r0", "a", "b"), rack("r1", "c"))
    assert writes([rack("r0", "a"), rack("r1", "b", "c")], before) == ["update r0", "update r1"]
    assert writes([rack("r0", "a", "b", "c")], before) == ["delete r1", "update r0"]


def test_a_rack_leaves_its_switch_before_it_is_deleted() -> None:
    before = there(switch("s", "r0", "r1"), rack("r0", "a"), rack("r1", "b"))
    after = [switch("s", "r0"), rack("r0", "a")]
    assert writes(after, before) == ["update s", "delete r1"]


def test_tiers_names_of_tiers_and_labels_are_put_right_too() -> None:
    (wanted,) = [rack("r", "a", row="7")]
    for label in ("row", SOURCE):
        assert label in there(wanted)["r"].metadata.labels
    changed = there(wanted)
    changed["r"].metadata.labels["row"] = "8"
    assert writes([wanted], changed) == ["update r"]
    changed = there(wanted)
    changed["r"].metadata.labels["more"] = "of somebody"
    assert writes([wanted], changed) == []
    changed["r"].spec.tier = 5
    assert writes([wanted], changed) == ["update r"]
    changed = there(wanted)
    changed["r"].spec.tier_name = ""
    assert writes([wanted], changed) == ["update r"]


def test_other_sources_and_hyper_nodes_of_users_are_left_alone() -> None:
    existing = {
        **there(rack("by-ufm", "x"), source="ufm"),
        "by-hand": HyperNode(metadata=ObjectMeta("by-hand")),
        **there(rack("ours", "y")),
    }
    result = reconcile("label", [rack("by-hand", "a"), rack("by-ufm", "a")], existing)
    assert [write.existing.name for write in result.writes if write.existing is not None] == ["ours"]
    assert [each.name for each in result.foreign] == ["by-hand", "by-ufm"]


def test_what_is_being_deleted_is_waited_for() -> None:
    existing = there(rack("r", "a"), rack("gone", "b"))
    for each in existing.values():
        each.metadata.deletion_timestamp = datetime(2026, 1, 1, tzinfo=UTC)
    assert writes([rack("r", "a", "b")], existing) == []


def test_nothing_is_deleted_as_long_as_not_everything_is_known() -> None:
    assert writes([rack("new", "b")], there(rack("old", "a")), may_delete=False) == ["create new"]
