"""`stromboli status`: what queues and nodes have, use and leave free, of any cluster."""

import asyncio
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import Result

from stromboli.api.decoding import decode
from stromboli.api.types.node import Node
from stromboli.api.types.scheduling import HyperNode
from stromboli.cli.status import cluster_status
from stromboli.cli.status.cluster_policy import CONFIG_MAP, PolicyInForce
from stromboli.cli.status.cluster_status import status_of
from stromboli.cli.status.resource_columns import short_bytes
from stromboli.cli.status.status_text import print_status
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, resource_of
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import ApiError
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import job_manifests
from tests.device_manifests import allocated, claim, device_class, reserved, resource_slice, uses
from tests.embedded.background_server import background_server
from tests.manifests import hyper_node
from tests.plugins.deviceshare.card_worlds import card_pod, card_policy, held, vgpu, vgpu_node

Run = Callable[..., Result]
Manifest = dict[str, Any]
CATALOG = load_catalog()
CAPACITY = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: capacity\n'


def status(*manifests: Manifest, policy: str = PRESETS["full"]) -> Manifest:
    objects: dict[Any, list[Any]] = {kind: [] for kind in cluster_status.LISTED}
    for manifest in manifests:
        obj = decode(manifest)
        objects[type(obj)].append(obj)
    in_force = PolicyInForce(load_policy(policy, CATALOG), "preset full")
    return status_of(objects, in_force, CATALOG, 0.0, {"url": "https://a", "kubeconfig": "/k"})


def text_of(shown: Manifest, wide: bool = False, width: int = 80) -> str:
    out = Console(width=width, file=io.StringIO(), highlight=False)
    print_status(out, shown, wide)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def by_name(shown: Manifest, key: str = "queues") -> dict[str, Manifest]:
    return {entry["name"]: entry for entry in shown[key]}


TWO_TEAMS = (
    *nodes("n1 cpu=8,memory=32Gi; n2 cpu=8,memory=32Gi; g1 cpu=32,memory=256Gi,nvidia.com/gpu=8"),
    *queues("research weight=3; production weight=1; ex state=Closed"),
    *job_manifests("train", queue="research", pods=2, cpu=4, memory="8Gi", gpu=2, running_on="g1 g1"),
    *job_manifests("more", queue="research", pods=20, minimum=1, cpu=4),
    *job_manifests("serve", queue="production", pods=30, minimum=1, cpu=2, memory="1Gi", running_on="n1"),
)


def test_queues_show_what_they_use_and_what_their_share_leaves_free() -> None:
    shown = by_name(status(*TWO_TEAMS))
    research, production = shown["research"], shown["production"]
    assert research["used"] == {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4"}
    assert research["deserved"]["cpu"] == "36"  # three quarters of 48, as proportion divides them
    assert research["free"]["cpu"] == "28"
    assert research["pending"]["cpu"] == "80"
    assert (production["deserved"]["cpu"], production["free"]["cpu"]) == ("12", "10")
    assert research["podGroups"] == {"Running": 1, "Pending": 1}


def test_in_a_tree_a_queue_uses_what_those_below_it_use() -> None:
    tree = queues("lab deserved=cpu:8; team parent=lab deserved=cpu:6; other parent=lab")
    running = job_manifests("train", queue="team", pods=2, cpu=2, running_on="n1 n1")
    policy = CAPACITY + "    enableHierarchy: true\n"
    shown = by_name(status(*nodes("n1 cpu=40"), *tree, *running, policy=policy))
    assert (shown["lab"]["used"]["cpu"], shown["lab"]["free"]["cpu"]) == ("4", "4")
    assert (shown["team"]["used"]["cpu"], shown["team"]["free"]["cpu"]) == ("4", "2")
    assert shown["other"]["used"]["cpu"] == "0"


def test_no_column_is_cut_off_however_narrow_the_terminal() -> None:
    for wide in (False, True):
        assert "…" not in text_of(status(*TWO_TEAMS), wide, width=40)


RACKS = (
    *nodes("; ".join(f"n{number} cpu=8,nvidia.com/gpu=8" for number in range(1, 5))),
    hyper_node("rack-1", 1, nodes=["n1", "n2"], tier_name="rack"),
    hyper_node("rack-2", 1, nodes=["n3", "n4"], tier_name="rack"),
    hyper_node("spine", 2, children=["rack-1", "rack-2"]),
    *job_manifests("train", pods=3, cpu=4, gpu=2, running_on="n1 n3 n4"),
)


def test_tiers_show_what_is_free_and_the_largest_gang_that_still_fits() -> None:
    shown = status(*RACKS)
    rack, spine = shown["topology"]
    assert (rack["hyperNodes"], rack["free"]) == (2, 0)
    assert rack["rooms"]["nodes"] == {
        "total": 4,
        "free": 1,
        "full": 1,
        "largestGang": 1,
        "occupancy": 0.75,
        "fragmentation": 0,
    }
    assert (rack["rooms"]["gpus"]["free"], rack["rooms"]["gpus"]["largestGang"]) == (26, 14)
    assert rack["rooms"]["gpus"]["fragmentation"] == 0.125  # 16 of the 26 could lie below one switch
    assert spine["rooms"]["gpus"]["largestGang"] == 26
    lines = [line.split() for line in text_of(shown).splitlines()]
    assert ["1", "rack", "2", "whole", "nodes", "1", "4", "1", "1"] in lines
    assert ["GPUs", "26", "32", "0", "14"] in lines
    assert ["2", "-", "1", "whole", "nodes", "1", "4", "0", "1"] in lines
    assert ["GPUs", "26", "32", "0", "26"] in lines
    wide = [line.split() for line in text_of(shown, wide=True).splitlines()]
    assert ["GPUs", "26", "32", "0", "14", "19%", "12%"] in wide


def test_a_rack_whose_cpus_are_in_use_is_full_of_cpus_and_not_of_gpus() -> None:
    busy = job_manifests("etl", pods=4, cpu=8, running_on="n1 n2 n3 n4")
    lines = [line.split() for line in text_of(status(*RACKS[:7], *busy)).splitlines()]
    tier = lines.index(["1", "rack", "2", "whole", "nodes", "0", "4", "2", "0"])
    assert lines[tier + 1 : tier + 3] == [["GPUs", "32", "32", "0", "16"], ["CPUs", "0", "32", "2", "0"]]


def test_hyper_nodes_that_are_left_out_are_named() -> None:
    shown = status(*RACKS, hyper_node("other", 2, children=["rack-1"]))
    assert "rack-1: more than one HyperNode has it as a member: other, spine" in text_of(shown)
    assert list(shown["leftOutHyperNodes"]) == ["rack-1"]


def test_who_may_not_list_hyper_nodes_sees_all_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ApiError(403, "Forbidden", "no")

    monkeypatch.setattr(cluster_status, "list_pages", refuse)
    client: Any = None
    assert asyncio.run(cluster_status.all_of_kind(client, RESOURCES[HyperNode], HyperNode)) == []
    with pytest.raises(ApiError):
        asyncio.run(cluster_status.all_of_kind(client, RESOURCES[Node], Node))


def test_devices_are_shown_by_class_and_by_queue_with_its_limit() -> None:
    limits = {"deviceclass/gpu": "4", "cpu": "100", "memory": "100Gi"}
    (lab,) = queues("lab")
    lab["spec"]["capability"] = limits
    running = job_manifests("train", queue="lab", cpu=1, running_on="n1", spec=uses("c"))
    granted = allocated(claim("c", 2), "n1", "g0", "g1", reserved_for=(reserved("train-0"),))
    shown = status(
        *nodes("n1 cpu=8"), lab, device_class(), resource_slice("n1", 8), granted, *running, policy=CAPACITY
    )
    assert shown["devices"] == [{"class": "gpu", "total": 8, "used": 2, "free": 6}]
    assert by_name(shown)["lab"]["devices"] == {"deviceclass/gpu": {"used": "2", "limit": "4"}}
    assert by_name(shown)["root"]["devices"] == {"deviceclass/gpu": {"used": "2"}}
    lines = [line.split() for line in text_of(shown).splitlines()]
    assert ["lab", "deviceclass/gpu", "2", "4"] in lines
    assert ["gpu", "2", "8", "6"] in lines


def test_extended_resources_that_devices_serve_are_no_gpus_of_nodes() -> None:
    asked = {"deviceclass.resource.kubernetes.io/gpu": 4, "example.com/gpu": 2}
    running = job_manifests("train", cpu=1, resources=asked, running_on="n1")
    shown = status(
        *nodes("n1 cpu=8; n2 cpu=8,nvidia.com/gpu=8"),
        device_class(extendedResourceName="example.com/gpu"),
        resource_slice("n1", 8),
        *running,
    )
    rows = [line.split() for line in text_of(shown).splitlines()]
    (node,) = [row for row in rows if row and row[0].startswith("8cpu") and "8gpu" not in row[0]]
    assert node[-3:] == ["0", "0", "0"]


def test_shared_cards_show_what_is_used_of_memory_and_cores() -> None:
    ids = held("GPU-n1-0,NVIDIA,6000,40:;")
    running = card_pod("p", vgpu(6000, 40), on="n1", annotations=ids, schedulerName="volcano")
    shown = status(vgpu_node("n1"), *running, policy=card_policy(VGPUEnable=True))
    first, second = shown["cards"]
    assert (first["node"], first["card"], first["shares"]) == ("n1", "GPU-n1-0", 1)
    assert (first["memory"], first["cores"]) == ({"used": 6000, "total": 8000}, {"used": 40, "total": 100})
    assert second["memory"]["used"] == 0
    lines = [line.split() for line in text_of(shown).splitlines()]
    assert ["NVIDIA-A100", "1", "2", "6000", "16000", "40", "200"] in lines


def test_without_devices_nothing_is_said_about_them() -> None:
    shown = status(*TWO_TEAMS)
    assert not shown.keys() & {"devices", "cards"}
    assert not any("devices" in queue for queue in shown["queues"])


def test_without_hyper_nodes_nothing_is_said_about_them() -> None:
    shown = status(*TWO_TEAMS)
    assert not shown.keys() & {"topology", "leftOutHyperNodes"}
    assert "HyperNode" not in text_of(shown)


def test_shares_are_those_of_the_policy_in_force() -> None:
    own = queues("own deserved=cpu:10 capability=cpu:20")
    shown = by_name(status(*nodes("n1 cpu=40"), *own, policy=CAPACITY))["own"]
    assert shown["deserved"]["cpu"] == shown["free"]["cpu"] == "10"
    assert shown["capability"]["cpu"] == "20"
    assert (
        "deserved" not in by_name(status(*nodes("n1 cpu=40"), *queues("own")))["own"]
    )  # nothing is asked for


def test_nodes_are_grouped_by_instance_type_or_by_size() -> None:
    typed = nodes("a cpu=4 node.kubernetes.io/instance-type=m5; b cpu=2 node.kubernetes.io/instance-type=m5")
    groups = by_name(status(*TWO_TEAMS, *typed), "nodeGroups")
    assert list(groups) == ["32cpu,256Gi,8gpu", "8cpu,32Gi", "m5"]
    assert groups["m5"]["nodes"] == 2
    assert groups["m5"]["allocatable"]["cpu"] == "6"
    gpus = groups["32cpu,256Gi,8gpu"]
    assert (gpus["used"]["nvidia.com/gpu"], gpus["free"]["nvidia.com/gpu"]) == ("4", "4")


def test_what_an_unusable_node_has_is_not_free() -> None:
    ready, cordoned, lost = nodes("n1 cpu=4; n2 cpu=4; n3 cpu=4")
    cordoned["spec"]["unschedulable"] = True
    lost["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    shown = status(ready, cordoned, lost)
    [group] = shown["nodeGroups"]
    assert (group["nodes"], group["usable"], group["allocatable"]["cpu"]) == (3, 1, "12")
    assert group["free"]["cpu"] == "4"
    assert "3, 1 usable" in text_of(shown)
    assert shown["nodes"] == {"total": 3, "Unknown": 1, "Unknown,SchedulingDisabled": 1, "NotReady": 1}


def test_a_node_that_is_overcommitted_takes_no_free_room_from_the_others() -> None:
    """Whoever creates a pod with a nodeName asks no scheduler."""
    spec = {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "500"}}}]}
    large = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": spec}
    [group] = status(*nodes("n1 cpu=32; n2 cpu=32"), large)["nodeGroups"]
    assert (group["used"]["cpu"], group["free"]["cpu"]) == ("500", "32")


def test_the_table_fits_80_columns_and_wide_has_more() -> None:
    shown = status(*TWO_TEAMS)
    text = text_of(shown)
    assert max(map(len, text.splitlines())) <= 80
    assert "Queues, shares by preset full" in text
    research = next(line for line in text.splitlines() if line.startswith("research"))
    assert research.split() == ["research", "8", "36", "28", "16Gi", "16Gi", "0", "4", "4", "0"]
    assert "ex (Closed)" in text
    assert "\nroot" not in text
    wide = text_of(shown, wide=True, width=200)
    assert "waiting" in wide
    assert "1 Pending, 1 Running" in wide
    assert "\nroot" in wide
    without_gpus = text_of(status(*nodes("n1 cpu=4")))
    assert "GPU" not in without_gpus


def test_what_a_queue_does_not_limit_has_no_limit_in_the_table() -> None:
    shown = status(*nodes("n1 cpu=1280000,memory=1Ti"), *queues("own capability=cpu:20,memory:0"))
    [row] = [
        line.split() for line in text_of(shown, wide=True, width=200).splitlines() if line.startswith("own")
    ]
    used_deserved_free_limit_waiting = (row[4:9], row[9:14])
    assert used_deserved_free_limit_waiting == (["0", "-", "-", "20", "-"], ["0", "-", "-", "-", "-"])
    assert "1280000" in text_of(shown)


def test_memory_is_short() -> None:
    sizes = (0, 1023, 1024, 1.5 * 1024**3, 1010 * 1024**2, 3 * 1024**4)
    assert [short_bytes(size) for size in sizes] == ["0", "1023", "1Ki", "1.5Gi", "1010Mi", "3Ti"]


# -- which cluster


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of an API server with a node, a queue and a policy, which `stromboli up` did not start."""
    folder = tmp_path_factory.mktemp("server")
    with background_server(folder, crds=True):
        kubeconfig = folder / "kubeconfig"
        namespace, name, key = CONFIG_MAP
        objects = [
            *nodes("n1 cpu=40"),
            *queues("own deserved=cpu:10"),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace},
                "data": {key: CAPACITY},
            },
        ]
        asyncio.run(create(kubeconfig, objects))
        yield kubeconfig


async def create(kubeconfig: Path, objects: list[Manifest]) -> None:
    async with Client(find_access(str(kubeconfig))) as client:
        for content in objects:
            resource = resource_of(content)
            await client.create(resource, content, content["metadata"].get("namespace", ""))


def environment(tmp_path: Path, kubeconfig: Path | str = "") -> dict[str, str]:
    return {"KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}


def test_the_cluster_of_kubeconfig_is_shown_with_its_own_policy(
    run: Run, server: Path, tmp_path: Path
) -> None:
    result = run("status", "-o", "json", env=environment(tmp_path, server))
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["policy"] == "volcano-system/volcano-scheduler-configmap"
    assert by_name(shown)["own"]["deserved"]["cpu"] == "10"
    assert shown["kubeconfig"] == str(server)
    assert "pid" not in shown
    named = run("status", "--kubeconfig", server, env=environment(tmp_path))
    assert "Queues, shares by volcano-system/volcano-scheduler-configmap" in named.stdout
    chosen = run(
        "status", "--kubeconfig", server, "--preset", "basic", "-o", "yaml", env=environment(tmp_path)
    )
    assert "policy: preset basic\n" in chosen.stdout


def test_what_is_wrong_has_a_sentence_and_an_exit_status(run: Run, server: Path, tmp_path: Path) -> None:
    none = run("status", env=environment(tmp_path, tmp_path / "gone"))
    assert (none.exit_code, "no cluster runs; `stromboli up` starts one" in none.stderr) == (2, True)
    unknown = run("status", "--kubeconfig", server, "--context", "nowhere", env=environment(tmp_path))
    assert (unknown.exit_code, "nowhere" in unknown.stderr) == (2, True)
    both = run("status", "--kubeconfig", server, "--data", tmp_path, env=environment(tmp_path))
    assert both.exit_code == 2
    away = tmp_path / "away"
    away.write_text(re.sub(r"https://127\.0\.0\.1:\d+", "https://127.0.0.1:1", server.read_text()))
    stranger = tmp_path / "stranger"
    stranger.write_text(re.sub(r'("?token"?: *"?)[^"\s]+', r"\1nobody", server.read_text()))
    refused = run("status", "--kubeconfig", stranger, env=environment(tmp_path))
    assert (refused.exit_code, "does not know you" in refused.stderr) == (1, True), refused.stderr
    silent = run("status", "--kubeconfig", away, env=environment(tmp_path))
    assert silent.exit_code == 1
    assert "the cluster does not answer: GET https://127.0.0.1:1/" in silent.stderr
