"""Whatever moves and objects come: a ledger counts what one made anew counts, and undoing restores it exactly."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stromboli.model.cluster import Change, Cluster
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.volumes.task_volumes import delayed_claims, volume_demand
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.model.volumes.volume_ledger import VolumeLedger
from stromboli.plugins.predicates.plugin import volume_grants
from stromboli.testing import World
from tests.storage_manifests import (
    Manifest,
    attachment,
    capacity,
    claim,
    claiming,
    csi_driver,
    csi_node,
    disk,
    storage_class,
    volume,
)

NODES = ("a", "b", "c")
SIZES = ("1Gi", "2Gi", "3Gi")
MODES = (["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "ReadWriteMany"])


@st.composite
def volumes(draw: st.DrawFn) -> list[Manifest]:
    count = draw(st.integers(0, 6))
    return [
        volume(
            f"v{number}",
            draw(st.sampled_from(SIZES)),
            *draw(st.sets(st.sampled_from(NODES), max_size=2)),
            accessModes=draw(st.sampled_from(MODES)),
            labels={"kind": draw(st.sampled_from(["ssd", "hdd"]))},
        )
        for number in range(count)
    ]


@st.composite
def claims(draw: st.DrawFn) -> list[Manifest]:
    listed = []
    for number in range(4):
        more: dict[str, Any] = {"accessModes": draw(st.sampled_from(MODES[:2]))}
        if draw(st.booleans()):
            more["selector"] = {"matchLabels": {"kind": "ssd"}}
        of = draw(st.sampled_from(["local", "made", "measured"]))
        node = draw(st.sampled_from(["", "", "", *NODES]))
        listed.append(claim(f"c{number}", draw(st.sampled_from(SIZES)), of, node=node, **more))
    return listed


@st.composite
def worlds(draw: st.DrawFn) -> World:
    world = World(nodes="; ".join(f"{name} cpu=9" for name in NODES))
    world.add(storage_class(), storage_class("measured", "disk.example.com"), csi_driver())
    world.add(storage_class("made", "example.com/made"))
    world.add(*draw(volumes()), *draw(claims()), *disk("d"), csi_node("a", 1), csi_node("b"))
    world.add(capacity("a", draw(st.sampled_from(SIZES)), "measured"), capacity("b", "4Gi", "measured"))
    for number in range(4):
        used = draw(st.sets(st.sampled_from(["c0", "c1", "c2", "c3", "d"]), max_size=3))
        own = [{"name": "own", "gcePersistentDisk": {"pdName": "p"}}] if draw(st.booleans()) else []
        spec = {"volumes": [*claiming(*sorted(used))["volumes"], *own]}
        world.job(f"j{number}", cpu=1, spec=spec)
    return world


def counted(ledger: VolumeLedger) -> dict[str, Any]:
    """All that a ledger counts, by name."""
    return {
        "promises": dict(ledger._promises),
        "taken": dict(ledger.free._taken),
        "provisioned": {name: dict(held) for name, held in ledger.capacity._promised.items() if held},
        "uses": {
            node: {key: list(n) for key, n in uses.items()} for node, uses in ledger.attachments._uses.items()
        },
        "attached": {
            driver: {node: list(counts) for node, counts in nodes.items() if any(counts)}
            for driver, nodes in ledger.attachments._counts.items()
            if any(any(counts) for counts in nodes.values())
        },
        "disks": {key: dict(users) for key, users in ledger.disks._users.items()},
        "users": {key: {task.uid for task in tasks} for key, tasks in ledger._users.items()},
        "columns": {
            driver: [column.tolist() for column in ledger.attachments.columns(driver)]
            for driver in ("disk.example.com", "pd.csi.storage.gke.io")
        },
        "free": {name: ledger.capacity.of_class(name)._free.tolist() for name in ("measured", "local")},
    }


def made_anew(cluster: Cluster) -> dict[str, Any]:
    objects = cluster.objects
    ledger = VolumeLedger(objects, cluster.columns, cluster.nodes)
    tables = (
        objects.storage_classes,
        objects.volumes,
        objects.claims,
        objects.storage_nodes,
        objects.drivers,
    )
    for table in (*tables, objects.storage_capacities, objects.attachments):
        for obj in table.values():
            ledger.changed(obj)
    for task in cluster.tasks.values():
        if task.node is not None and ledger.concerns(task.shape.spec):
            ledger.add(task, task.status, task.node)
    return counted(ledger)


def place(cluster: Cluster, task: Task, status: Status, row: int) -> Change | None:
    """Move a task onto a node with its volumes, as far as filters would let it."""
    demand = volume_demand(cluster.volumes, cluster.objects, task)
    matching = cluster.volumes.matching.match(demand.delayed)
    if not (matching.bindable[row] and matching.enough[row]):
        return None
    node = cluster.columns.nodes[row]
    grants = tuple(volume_grants(cluster, task, node, 600))
    assert all(isinstance(grant, VolumeGrant) for grant in grants)
    change = cluster.move(task, status, node, grants)
    assert isinstance(change, Change)
    return change


def no_volume_is_given_twice(cluster: Cluster) -> None:
    given_to: dict[str, set[str]] = {}
    for task in cluster.tasks.values():
        for grant in task.grants:
            if isinstance(grant, VolumeGrant) and grant.volume:
                given_to.setdefault(grant.volume, set()).add(grant.claim)
    assert all(len(claims) == 1 for claims in given_to.values())


@given(worlds(), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), max_size=12))
def test_moves_and_their_undo_keep_the_ledger_true(world: World, steps: list[tuple[int, int, int]]) -> None:
    cluster = world.cluster
    tasks = sorted(cluster.tasks.values(), key=lambda task: task.name)
    before = counted(cluster.volumes)
    assert before == made_anew(cluster)
    changes: list[Change] = []
    for index, kind, row in steps:
        task, change = tasks[index], None
        if task.node is None and kind < 3:
            change = place(cluster, task, Status.PIPELINED if kind == 2 else Status.ALLOCATED, row)
        elif task.node is not None:
            leaves = kind > 2
            moved = cluster.move(
                task, Status.PENDING if leaves else Status.RELEASING, None if leaves else task.node
            )
            assert isinstance(moved, Change)
            change = moved
        if change is not None:
            changes.append(change)
        assert counted(cluster.volumes) == made_anew(cluster)
        no_volume_is_given_twice(cluster)
    for change in reversed(changes):
        cluster.undo(change)
    assert counted(cluster.volumes) == before


@given(worlds(), st.data())
def test_objects_that_change_under_tasks_keep_the_ledger_true(world: World, data: st.DataObject) -> None:
    cluster = world.cluster
    for task in list(cluster.tasks.values()):
        place(cluster, task, Status.ALLOCATED, data.draw(st.integers(0, 2)))
    for _ in range(data.draw(st.integers(1, 5))):
        number = data.draw(st.integers(0, 3))
        change = data.draw(
            st.sampled_from(
                [
                    claim(f"c{number}", "2Gi", "local", volume=f"v{number}"),
                    claim(f"c{number}", "1Gi", "measured", node="b"),
                    volume(f"v{number}", "3Gi", "a", claimed_by=f"c{number}"),
                    volume(f"v{number}", "3Gi", csi={"driver": "disk.example.com", "volumeHandle": "h"}),
                    storage_class("measured", "disk.example.com", "Immediate"),
                    capacity("a", "9Gi", "measured", node="b"),
                    attachment("a", f"v{number}"),
                    {**csi_node("c", 3), "metadata": {"name": "c", "annotations": MIGRATED}},
                ]
            )
        )
        if data.draw(st.booleans()):
            world.remove(change)
        else:
            world.add(change)
        assert counted(cluster.volumes) == made_anew(cluster)


MIGRATED = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}


# -- a plain search, node by node, as the oracle of matching


def naive_match(cluster: Cluster, task: Task, row: int) -> tuple[bool, bool, dict[str, str]]:
    """Whether the claims of a task can be bound on a node, whether storage is enough, and the volumes."""
    node, objects, ledger = cluster.columns.nodes[row], cluster.objects, cluster.volumes
    given = {promise.volume for promise in ledger._promises.values() if promise.volume}
    chosen: dict[str, str] = {}
    wanted: dict[str, list[int]] = {}
    charged = 0
    for found, delayed in delayed_claims(ledger, objects, task):
        if delayed.volume:
            if not reaches(objects.volumes[delayed.volume], node.name):
                return False, True, {}
            chosen[found.name] = delayed.volume
            continue
        provisioner = objects.storage_classes[delayed.kind.storage_class].provisioner
        makes = provisioner not in ("", "kubernetes.io/no-provisioner")
        if delayed.node:
            if delayed.node != node.name or not makes:
                return False, True, {}
            wanted.setdefault(provisioner, []).append(delayed.kind.request)
            charged += delayed.kind.request if provisioner == "disk.example.com" else 0
            chosen[found.name] = ""
            continue
        free = [
            each
            for each in objects.volumes.values()
            if each.status.phase == "Available"
            and each.spec.claim_ref is None
            and each.name not in given | set(chosen.values())
            and delayed.kind.is_served_by(each)
            and reaches(each, node.name)
        ]
        best = min(free, key=lambda each: (size(each), each.name), default=None)
        if best is None and not makes:
            return False, True, {}
        if best is None:
            wanted.setdefault(provisioner, []).append(delayed.kind.request)
        chosen[found.name] = best.name if best is not None else ""
    asked = wanted.get("disk.example.com", [])
    if not asked:
        return True, True, chosen
    promised = sum(
        held.request
        for held in ledger.capacity._promised.get("measured", {}).values()
        if held.node == node.name
    )
    report = objects.storage_capacities.get(f"default/{node.name}")
    left = size_of_text(report.capacity) if report is not None else -1
    new = sum(asked) - charged
    return True, max(asked) <= left and (new == 0 or new + promised <= left), chosen


def reaches(volume: Any, node: str) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None:
        return True
    return node in affinity.required.node_selector_terms[0].match_expressions[0].values


def size(volume: Any) -> int:
    return size_of_text(volume.spec.capacity["storage"])


def size_of_text(text: Any) -> int:
    return int(str(text).removesuffix("Gi")) * 2**30


@given(worlds(), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_claims_match_as_in_a_plain_search_node_by_node(world: World, rows: list[int]) -> None:
    cluster = world.cluster
    for task, chosen_row in zip(sorted(cluster.tasks.values(), key=lambda t: t.name), rows, strict=True):
        demand = volume_demand(cluster.volumes, cluster.objects, task)
        matching = cluster.volumes.matching.match(demand.delayed)
        for row in range(len(NODES)):
            bindable, enough, chosen = naive_match(cluster, task, row)
            assert bool(matching.bindable[row]) == bindable
            if bindable:
                assert bool(matching.enough[row]) == enough
                names = [found.name for found, _ in delayed_claims(cluster.volumes, cluster.objects, task)]
                picked = cluster.volumes.matching.choose(demand.delayed, row)
                assert picked is not None
                assert dict(zip(names, picked, strict=True)) == chosen
        place(cluster, task, Status.ALLOCATED, chosen_row)
