"""A note of the change feed is needed: without it, some change of an object is missed.

This tests the property tests of the feed as much as the feed: if a note could be left out and nothing noticed, then
nothing would notice either that a change is not noted.
"""

from __future__ import annotations

from copy import deepcopy

import pytest

from stromboli.model import node_columns
from tests.properties.feed_notes import Note, notes, without
from tests.properties.probe import differences
from tests.properties.single_changes import Change, Witness, changes

WITNESSES: dict[str, Witness] = {
    "CardLedger.register note": Witness("Node", "metadata.annotations", "proportion"),
    "CardLedger.add note": Witness("Pod", "comes", "proportion", "held"),
    "CardLedger.remove note": Witness("Pod", "goes", "proportion", "held"),
    "GpuColumns._start note_everything": Witness("Node", "goes", "packing"),
    "GpuColumns._read note": Witness("Pod", "comes", "packing", "vgpu"),
    "Cluster.set_shard note_everything": Witness("NodeShard", "goes", "packing"),
    "Cluster._enter_job mark_dirty": Witness("Pod", "comes", "still", "numa"),
    "Cluster.leave mark_dirty": Witness("Pod", "goes", "still", "numa"),
    "Cluster.settle note_nodes": Witness("Node", "goes", "proportion"),
    "Cluster.resize note_nodes": Witness("Node", "status.allocatable", "proportion"),
    "DeviceLedger._class_changed note 3": Witness("DeviceClass", "comes", "proportion", "extended"),
    "PodCounts.add note": Witness("Pod", "goes", "packing", "p-port"),
    "CpuLedger._touch note": Witness("Numatopology", "spec", "proportion"),
    "DeviceLedger._note_slice note 2": Witness("ResourceSlice", "goes", "proportion"),
    "DeviceLedger._class_changed note": Witness("DeviceClass", "goes", "proportion", "gpu"),
    "DeviceLedger._shift note": Witness("ResourceClaim", "goes", "proportion", "r-"),
    "PoolIndex._forget note": Witness("ResourceSlice", "spec.node_name", "proportion"),
    "put_queue note_queue": Witness("Queue", "metadata.creation_timestamp", "still"),
    "_mark_jobs_dirty note_queue": Witness("Queue", "goes", "proportion"),
    "_mark_jobs_dirty mark_dirty": Witness("Queue", "goes", "proportion"),
    "LookupObjects.put note_object": Witness("PodDisruptionBudget", "comes", "still"),
    "LookupObjects.drop note_object": Witness("PodDisruptionBudget", "goes", "still"),
    "Columns.arrange note": Witness("Node", "goes", "proportion"),
    "Columns.arrange note_everything": Witness("Node", "goes", "proportion"),
    "Columns.arrange note_everything 2": Witness("Node", "goes", "proportion"),
    "Columns.object_changed note": Witness("Node", "spec.taints", "proportion"),
    "Columns._touch note": Witness("Pod", "goes", "proportion", "s-"),
    "Columns.widen note": Witness("Pod", "comes", "proportion", "rare"),
    "Cluster.join note_queue": Witness("PodGroup", "goes", "proportion"),
    "Cluster.join note_queue 2": Witness("PodGroup", "comes", "proportion"),
    "Cluster.join mark_dirty": Witness("PodGroup", "spec.priority_class_name", "still"),
    "Cluster._update_volumes_only mark_dirty": Witness(
        "PersistentVolumeClaim", "goes", "proportion", "remote"
    ),
    "PodCounts._shift note": Witness("Namespace", "goes", "packing"),
    "Intake._reprioritise mark_dirty": Witness("PriorityClass", "value", "proportion"),
    "DiskUsers.count note": Witness("Pod", "goes", "packing", "iscsi"),
    "VolumeLedger.add note": Witness("Pod", "comes", "packing", "single-x-1"),
    "VolumeLedger.remove note": Witness("Pod", "goes", "packing", "single-x-1"),
    "VolumeLedger.changed note": Witness("CSIStorageCapacity", "goes", "proportion"),
    "VolumeLedger.changed note 2": Witness("PersistentVolumeClaim", "goes", "proportion", "remote"),
    "Attachments.count note": Witness("VolumeAttachment", "goes", "still"),
    "Attachments.limits_changed note_everything": Witness("CSINode", "goes", "proportion"),
}
"""A sort of changes in which each note is needed."""
UNSEEN: dict[str, str] = {
    "Cluster.usage note": "notes measured load, which is no object",
    "Cluster.mark_all_dirty note_everything": "a new leader and a failed cycle call it, no object does",
    "Reservations.update note": "only actions reserve",
    "Reservations._apply mark_dirty": "only actions reserve",
    "Cluster.set_phase mark_dirty": "only actions set phases",
    "CardLedger.configure note_everything": "metrics alone follow nodes that lose their cards",
    "Cluster.set_shard note_nodes": "says which jobs are tried again; a probe tries all",
    "Cluster._apply note_job": "says which jobs are tried and sorted again within a cycle; a probe tries all",
    "Cluster.share_cards note": "no ConfigMap of the worlds changes which pods are concerned",
    "CpuLedger.changed note": "the worlds keep a Numatopology",
    "CpuLedger.changed note_everything": "the worlds keep a Numatopology",
    "DeviceLedger._note_slice note": "remedies alone read it",
    "DeviceLedger._class_changed note 2": "remedies alone read it",
}
"""Notes that can be left out in these worlds without a difference, and why."""


@pytest.fixture(autouse=True)
def nodes_are_read_again_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were many: of three nodes one is so much that sums are made anew."""
    monkeypatch.setattr(node_columns, "_FEW", 0)


def is_noticed(note: Note, change: Change) -> bool:
    """Whether a model that does not hear of a change comes to something else than one that is made after it."""
    world, fresh = change.world(after=False), change.world(after=True)
    world.catch_up()
    fresh.now, fresh.intake.cluster.memory = world.now, deepcopy(world.intake.cluster.memory)
    with without(note) as left_out:
        change.make(world)
        try:
            missed = world.probe()
        except (AssertionError, ValueError):  # arrays of another length, for example
            return bool(left_out)
    return bool(left_out) and bool(differences(missed, fresh.probe()))


def test_every_note_is_known() -> None:
    known = {*WITNESSES, *UNSEEN}
    new, gone = sorted(notes().keys() - known), sorted(known - notes().keys())
    assert not new, (
        f"{new}: name in WITNESSES a change of an object that only this note reports, "
        "or in UNSEEN why no object of these worlds needs it"
    )
    assert not gone, f"{gone}: remove these from WITNESSES or UNSEEN, as the model no longer makes them"
    assert not WITNESSES.keys() & UNSEEN.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", WITNESSES)
def test_no_note_can_be_left_out(name: str) -> None:
    assert any(is_noticed(notes()[name], change) for change in changes(WITNESSES[name]))
