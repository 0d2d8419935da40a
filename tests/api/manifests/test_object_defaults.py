"""What an API server would have filled in."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stromboli.api.manifests.case_files import read_case
from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.api.manifests.object_defaults import (
    FIRST_CREATION,
    default_storage_class,
    fill_storage_class,
)
from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.storage import PersistentVolumeClaim, StorageClass

Manifest = dict[str, Any]


def named(kind: str, name: str, **rest: Any) -> Manifest:
    return {"kind": kind, "metadata": {"name": name}, **rest}


@pytest.fixture
def load(tmp_path: Path) -> Any:
    def load(*manifests: Manifest, case: bool = False) -> dict[str, Any]:
        file = tmp_path / "input.json"
        file.write_bytes(
            msgspec.json.encode({"objects": manifests} if case else {"kind": "List", "items": manifests})
        )
        objects = read_case(str(file)).objects if case else open_paths([str(file)])
        return {f"{type(obj).__name__}/{obj.key}": obj for obj in objects}

    return load


def test_metadata_is_completed_the_same_way_every_time(load: Any) -> None:
    objects = load(named("Node", "n"), named("Pod", "p"))
    assert objects["Node/n"].metadata.uid == "Node/n"
    assert objects["Pod/default/p"].metadata.uid == "Pod/default/p"
    assert objects["Node/n"].metadata.creation_timestamp == FIRST_CREATION
    assert objects["Pod/default/p"].metadata.creation_timestamp == FIRST_CREATION + timedelta(seconds=1)


def test_a_pod_is_ours_by_default_only_in_a_case(load: Any) -> None:
    assert load(named("Pod", "p"))["Pod/default/p"].spec.scheduler_name == "default-scheduler"
    assert load(named("Pod", "p"), case=True)["Pod/default/p"].spec.scheduler_name == "volcano"


def test_priority_comes_from_the_class_then_the_default_class_then_zero(load: Any) -> None:
    high = named("PriorityClass", "high", value=100, preemptionPolicy="Never")
    usual = named("PriorityClass", "usual", value=7, globalDefault=True)
    asking = named("Pod", "asking", spec={"priorityClassName": "high"})
    assert load(named("Pod", "plain"))["Pod/default/plain"].spec.priority == 0

    objects = load(asking, named("Pod", "plain"), named("Pod", "given", spec={"priority": 3}), high, usual)
    assert objects["Pod/default/asking"].spec.priority == 100
    assert objects["Pod/default/asking"].spec.preemption_policy == "Never"
    assert objects["Pod/default/plain"].spec.priority == 7
    assert objects["Pod/default/plain"].spec.preemption_policy == "PreemptLowerPriority"
    assert objects["Pod/default/given"].spec.priority == 3
    assert objects["Pod/default/given"].status.phase == "Pending"


def test_system_classes_need_no_manifest(load: Any) -> None:
    pod = named("Pod", "dns", spec={"priorityClassName": "system-node-critical"})
    assert load(pod)["Pod/default/dns"].spec.priority == 2_000_001_000


def test_requests_follow_limits_where_unstated(load: Any) -> None:
    container = {
        "name": "c",
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
    }
    pod = load(named("Pod", "p", spec={"containers": [container]}))["Pod/default/p"]
    assert pod.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}


def test_pod_level_requests_follow_the_containers_then_the_limit(load: Any) -> None:
    containers = [{"name": name, "resources": {"requests": {"cpu": "500m"}}} for name in "ab"]
    spec = {"containers": containers, "resources": {"limits": {"cpu": "4", "memory": "1Gi"}}}
    pod = load(named("Pod", "p", spec=spec))["Pod/default/p"]
    assert pod.spec.resources.requests == {"cpu": "1", "memory": "1Gi"}


def test_a_nodes_capacity_and_allocatable_complete_each_other(load: Any) -> None:
    node = load(named("Node", "n", status={"capacity": {"cpu": "4"}}))["Node/n"]
    other = load(named("Node", "n", status={"allocatable": {"cpu": "4"}}))["Node/n"]
    assert node.status == other.status


def test_root_and_default_always_exist(load: Any) -> None:
    objects = load(named("Queue", "mine"))
    assert list(objects) == ["Queue/mine", "Queue/root", "Queue/default"]
    mine, root, default = objects.values()
    assert (mine.spec.weight, mine.spec.reclaimable, mine.spec.parent, mine.status.state) == (
        1,
        True,
        "root",
        "Open",
    )
    assert (root.spec.reclaimable, root.spec.parent, root.status.state) == (False, "", "Open")
    assert (default.spec.reclaimable, default.spec.parent, default.status.state) == (True, "root", "Open")


def test_what_a_queue_says_is_kept(load: Any) -> None:
    spec = {"reclaimable": False, "parent": "mine", "weight": 3}
    queue = load(named("Queue", "default", spec=spec, status={"state": "Closed"}))["Queue/default"]
    assert (queue.spec.reclaimable, queue.spec.parent, queue.spec.weight) == (False, "mine", 3)
    assert queue.status.state == "Closed"


def test_groups_quotas_and_storage_are_completed(load: Any) -> None:
    objects = load(
        named("PodGroup", "g"),
        named("ResourceQuota", "q", spec={"hard": {"pods": 4}}),
        named("StorageClass", "s"),
        named("PersistentVolume", "v"),
        named("PersistentVolumeClaim", "c"),
    )
    assert objects["PodGroup/default/g"].spec.queue == "default"
    assert objects["PodGroup/default/g"].status.phase == ""
    assert objects["ResourceQuota/default/q"].status.hard == {"pods": 4}
    assert objects["StorageClass/s"].volume_binding_mode == "Immediate"
    assert objects["PersistentVolume/v"].status.phase == "Available"
    assert objects["PersistentVolumeClaim/default/c"].status.phase == "Pending"


def test_of_several_default_storage_classes_the_youngest_counts_then_the_first_by_name() -> None:
    def marked(
        name: str, day: int, mark: str = "storageclass.kubernetes.io/is-default-class"
    ) -> StorageClass:
        created = datetime(2026, 1, day, tzinfo=UTC)
        return StorageClass(ObjectMeta(name, creation_timestamp=created, annotations={mark: "true"}))

    classes = [marked("old", 1), marked("b", 3), marked("a", 3), marked("other", 9, "some/mark")]
    assert default_storage_class(classes) == "a"
    assert default_storage_class(classes[3:]) is None


def test_a_bound_claim_keeps_having_no_class() -> None:
    bound, waiting = PersistentVolumeClaim(ObjectMeta("c")), PersistentVolumeClaim(ObjectMeta("d"))
    bound.status.phase = "Bound"
    for claim in (bound, waiting):
        fill_storage_class(claim, "disks")
    assert (bound.spec.storage_class_name, waiting.spec.storage_class_name) == (None, "disks")
