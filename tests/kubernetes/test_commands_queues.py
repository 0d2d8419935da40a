"""`stromboli queue` on an API server: created with all fields, listed, drawn, changed, closed, opened, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.kubernetes.commanding import PATIENCE, CommandCluster, cells
from tests.kubernetes.servers import control_plane

WAIT = ("--wait", "--timeout", PATIENCE)
EVERY_FIELD = (
    *(
        "--weight",
        "3",
        "--capability",
        "cpu=12,memory=64Gi,nvidia.com/gpu=8",
        "--deserved",
        "cpu=8,memory=32Gi",
    ),
    *("--guarantee", "cpu=2", "--parent", "root", "--priority", "5", "--reclaimable", "false"),
    *("--dequeue-strategy", "traverse", "--type", "training", "--affinity-required", "fast"),
    *("--affinity-preferred", "a,b", "--anti-affinity-required", "old", "--anti-affinity-preferred", "slow"),
)


@pytest.fixture(scope="module")
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandCluster]:
    """The controllers of queues and PodGroups, no scheduler; a node, for shares."""
    folder = tmp_path_factory.mktemp("queue_commands")
    with control_plane(folder) as plane:
        made = CommandCluster(folder, plane)
        try:
            made.install()
            made.start("--controllers=*,-sharding-controller,-job-controller")
            plane.request("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
            made.patch("nodes", "n1", {"status": NODE_STATUS}, "", "status")
            yield made
        finally:
            made.close()


NODE_STATUS = {
    "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
    "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"},
    "conditions": [{"type": "Ready", "status": "True"}],
}


@pytest.fixture
def space(cluster: CommandCluster, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
    return cluster.place_of(name)


def group(cluster: CommandCluster, space: str, name: str, queue: str) -> None:
    cluster.make("podgroups", {"metadata": {"name": name}, "spec": {"minMember": 1, "queue": queue}}, space)


def test_a_queue_is_created_with_every_field_and_is_open_then(cluster: CommandCluster) -> None:
    made = cluster.output("queue", "create", "whole", *EVERY_FIELD, *WAIT)
    assert made == "queue.scheduling.volcano.sh/whole created\n"
    assert cluster.state("whole") == "Open"
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    assert cluster.read("queues", "whole")["spec"] == {
        "weight": 3,
        "capability": {"cpu": "12", "memory": "64Gi", "nvidia.com/gpu": "8"},
        "deserved": {"cpu": "8", "memory": "32Gi"},
        "guarantee": {"resource": {"cpu": "2"}},
        "parent": "root",
        "priority": 5,
        "reclaimable": False,
        "dequeueStrategy": "traverse",
        "type": "training",
        "affinity": {
            "nodeGroupAffinity": {required: ["fast"], preferred: ["a", "b"]},
            "nodeGroupAntiAffinity": {required: ["old"], preferred: ["slow"]},
        },
    }
    again = cluster.run("queue", "create", "whole")
    assert (again.exit_code, '"whole" already exists' in again.stderr) == (1, True)
    tried = cluster.output("queue", "create", "other", "weight=2", "--dry-run=server", "-o", "json")
    assert json.loads(tried)["spec"]["weight"] == 2
    assert "other" not in cluster.names("queues")
    for bad in (
        ("weight=none",),
        ("deserved=4",),
        ("colour=red",),
        ("weight=1", "--weight", "2"),
        ("weight",),
    ):
        assert cluster.run("queue", "create", "bad", *bad).exit_code == 2


def test_fields_are_set_and_removed(cluster: CommandCluster) -> None:
    cluster.output("queue", "create", "changing", "deserved=cpu=4,memory=8Gi", "capability=cpu=8", *WAIT)
    cluster.output("queue", "set", "changing", "weight=7", "deserved.cpu=5", "--reclaimable=false")
    spec = cluster.read("queues", "changing")["spec"]
    assert (spec["weight"], spec["reclaimable"]) == (7, False)
    assert spec["deserved"] == {"cpu": "5", "memory": "8Gi"}
    cluster.output("queue", "set", "queue/changing", "deserved=cpu=6", "capability=")
    spec = cluster.read("queues", "changing")["spec"]
    assert spec["deserved"] == {"cpu": "6"}
    assert not spec.get("capability")
    tried = json.loads(
        cluster.output("queue", "set", "changing", "weight=1", "--dry-run=client", "-o", "json")
    )
    assert tried["spec"]["weight"] == 1
    assert "unchanged" in cluster.output("queue", "set", "changing", "weight=7")
    assert cluster.run("queue", "set", "changing").exit_code == 2
    missing = cluster.run("queue", "set", "nobody", "weight=1")
    assert (missing.exit_code, missing.stderr) == (
        1,
        "error: queue.scheduling.volcano.sh/nobody does not exist\n",
    )


def test_lists_show_the_four_amounts_side_by_side(cluster: CommandCluster, space: str) -> None:
    cluster.output("queue", "create", "shown", "deserved=cpu=4", "guarantee=cpu=1", "capability=cpu=8", *WAIT)
    title, row = cells(cluster.output("queue", "get", "shown"))
    assert title[:8] == [
        "NAME",
        "STATE",
        "PARENT",
        "WEIGHT",
        "CPU USED",
        "DESERVED",
        "GUARANTEE",
        "CAPABILITY",
    ]
    assert (row[:5], row[6:8]) == (["shown", "Open", "root", "1", "0"], ["1", "8"])
    assert "shown" in [row[0] for row in cells(cluster.output("queue", "list"))]
    names = cluster.output("queue", "list", "-o", "name").split()
    assert "queue.scheduling.volcano.sh/shown" in names
    wide = cells(cluster.output("queue", "list", "-o", "wide"))
    assert wide[0][-4:] == ["PRIORITY", "RECLAIMABLE", "PODGROUPS", "AGE"]


def test_the_tree_has_children_below_their_parents_with_bars(cluster: CommandCluster) -> None:
    for arguments in (("lab", "deserved=cpu=8"), ("team", "--parent", "lab", "--deserved", "cpu=4")):
        cluster.output("queue", "create", *arguments, *WAIT)
    lines = cluster.output("queue", "tree", "lab").splitlines()
    assert lines[0].split()[:4] == ["QUEUE", "STATE", "WEIGHT", "RESOURCE"]
    assert lines[1].startswith("lab ")
    assert lines[3].startswith("└─ team ")
    content = json.loads(cluster.output("queue", "tree", "-o", "json"))
    assert content["name"] == "root"
    (lab,) = [queue for queue in content["queues"] if queue["name"] == "lab"]
    assert [queue["name"] for queue in lab["queues"]] == ["team"]
    assert cluster.run("queue", "tree", "nobody").exit_code == 1


@pytest.mark.smoke
def test_a_queue_closes_when_its_groups_are_gone_and_opens_again(cluster: CommandCluster, space: str) -> None:
    cluster.output("queue", "create", "busy", *WAIT)
    group(cluster, space, "train", "busy")
    late = cluster.run("queue", "close", "busy", "--wait", "--timeout", "3s")
    assert late.exit_code == 124, late.output
    assert f"1 PodGroup is left: {space}/train" in late.stderr
    full = cluster.run("queue", "delete", "busy")
    assert (full.exit_code, f"is not empty: {space}/train" in full.stderr) == (1, True)
    with cluster.meanwhile(lambda: cluster.delete("podgroups", "train", space)):
        again = cluster.run("queue", "close", "busy", *WAIT)
        assert (again.exit_code, " already\n" in again.stderr) == (0, True), again.output
    assert cluster.state("busy") == "Closed"
    assert cluster.output("queue", "open", "busy", *WAIT) == "queue.scheduling.volcano.sh/busy opened\n"
    assert cluster.state("busy") == "Open"
    assert "is Open already" in cluster.run("queue", "open", "busy", *WAIT).stderr
    closed = json.loads(cluster.output("queue", "close", "busy", "--dry-run=server", "-o", "json"))
    assert (closed["kind"], cluster.state("busy")) == ("Queue", "Open")
    assert cluster.run("queue", "close", "root").exit_code == 1


def test_a_queue_below_a_closed_one_is_not_opened(cluster: CommandCluster) -> None:
    cluster.output("queue", "create", "above", *WAIT)
    cluster.output("queue", "create", "below", "--parent", "above", *WAIT)
    cluster.output("queue", "close", "above", *WAIT)
    assert cluster.state("below") == "Closed"
    refused = cluster.run("queue", "open", "below")
    assert (refused.exit_code, "its parent above is Closed" in refused.stderr) == (1, True), refused.output


def test_queues_are_deleted_only_if_nothing_is_lost(cluster: CommandCluster, space: str) -> None:
    for arguments in (("outer",), ("inner", "--parent", "outer"), ("full",)):
        cluster.output("queue", "create", *arguments, *WAIT)
    group(cluster, space, "train", "full")
    parent = cluster.run("queue", "delete", "outer")
    assert (parent.exit_code, "queues are below it: inner" in parent.stderr) == (1, True)
    assert cluster.run("queue", "delete", "full").exit_code == 1
    assert "(dry run)" in cluster.output("queue", "delete", "full", "--force", "--dry-run=client")
    cluster.output("queue", "delete", "full", "--force")
    cluster.output("queue", "delete", "inner", "outer")
    assert not {"outer", "inner", "full"} & set(cluster.names("queues"))
    for name in ("default", "root"):
        permanent = cluster.run("queue", "delete", name, "--force")
        assert (permanent.exit_code, "a cluster always has it" in permanent.stderr) == (1, True)


def test_who_may_only_look_at_queues_sees_what_they_state(cluster: CommandCluster, space: str) -> None:
    cluster.output("queue", "create", "stated", "deserved=cpu=4", "capability=cpu=8", *WAIT)
    cluster.patch("queues", "stated", {"status": {"allocated": {"cpu": "2", "pods": "2"}}}, "", "status")
    rule = {"apiGroups": ["scheduling.volcano.sh"], "resources": ["queues"], "verbs": ["get", "list"]}
    viewer = cluster.account(space, "viewer", rule, everywhere=True)
    shown = cluster.run("queue", "get", "stated", kubeconfig=viewer)
    assert shown.exit_code == 0, shown.output
    title, row = cells(shown.stdout)
    assert (title[4:7], row[4:7]) == (["CPU USED", "DESERVED", "CAPABILITY"], ["2", "4", "8"])
    assert "shares are as the queues state them" in shown.stderr
    assert "may not list nodes in the whole cluster" in shown.stderr
    assert "stated" in cluster.run("queue", "tree", kubeconfig=viewer).stdout
    for arguments, right in (
        (("close", "stated"), "create commands.bus.volcano.sh in namespace default"),
        (("set", "stated", "weight=2"), "patch queues.scheduling.volcano.sh in the whole cluster"),
        (("delete", "stated", "--force"), "delete queues.scheduling.volcano.sh in the whole cluster"),
        (("create", "more"), "create queues.scheduling.volcano.sh in the whole cluster"),
    ):
        refused = cluster.run("queue", *arguments, kubeconfig=viewer)
        assert (refused.exit_code, f"may not {right}: an administrator" in refused.stderr) == (1, True), (
            refused.output
        )
