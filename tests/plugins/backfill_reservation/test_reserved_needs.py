"""A job is promised more than amounts: cards, devices, CPUs, volumes, a HyperNode; no other job takes these."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.testing import World
from tests.device_manifests import claim as device_claim
from tests.device_manifests import device_class, resource_slice, uses
from tests.manifests import group, hyper_node, policy
from tests.plugins.backfill_reservation.backfill_worlds import NOON, job, step
from tests.plugins.deviceshare.card_worlds import card, vgpu, vgpu_node
from tests.plugins.network_topology_aware.topology_worlds import topology
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology
from tests.storage_manifests import claiming, csi_node, disk

MODES = pytest.mark.parametrize("mode", ["easy", "conservative"])


def world(mode: str, *plugins: Any, nodes: str = "", queues: str = "") -> World:
    backfill = ("backfill-reservation", {"mode": mode})
    return World(nodes, queues, policy=policy("allocate", "priority gang predicates", *plugins, backfill))


def with_card(memory: int) -> dict[str, Any]:
    """The spec of a pod with a part of a card."""
    return {"containers": [{"name": "main", "resources": {"limits": {"cpu": 1, **vgpu(memory)}}}]}


def starts(result: Any) -> dict[str, float]:
    """The promised starts, in seconds after noon."""
    return {key.partition("/")[2]: promise.start - NOON for key, promise in result.promised.items()}


@MODES
def test_a_gang_with_whole_gpus(mode: str) -> None:
    gpus = {"nvidia.com/gpu": 4}
    here = world(mode, nodes="n1 cpu=9,nvidia.com/gpu=4; n2 cpu=9,nvidia.com/gpu=4; n3 cpu=9")
    job(here, "one", 1, "1h", resources={"nvidia.com/gpu": 2})
    job(here, "two", 1, "2h", resources={"nvidia.com/gpu": 3})
    step(here)
    job(here, "gang", 1, "1h", pods=2, resources=gpus)
    job(here, "long", 1, "9h", resources={"nvidia.com/gpu": 1})
    job(here, "short", 1, "1h", resources={"nvidia.com/gpu": 1})
    job(here, "without", 2, "9h")
    result = step(here)
    assert starts(result)["gang"] == 7200
    assert result.promised["default/gang"].nodes == ("n1", "n2")
    assert result.bound_per_job == {"default/short": 1, "default/without": 1}


@MODES
def test_a_gang_with_parts_of_cards(mode: str) -> None:
    here = world(mode, ("deviceshare", {"deviceshare.VGPUEnable": True}))
    here.add(vgpu_node("n1", card("c1")), vgpu_node("n2", card("c2")))
    job(here, "one", 1, "1h", spec=with_card(6000))
    job(here, "two", 1, "2h", spec=with_card(5000))
    assert len(step(here).binds) == 2
    job(here, "gang", 1, "1h", pods=2, spec=with_card(8000))
    job(here, "long", 1, "9h", spec=with_card(1000))
    job(here, "short", 1, "1h", spec=with_card(1000))
    job(here, "without", 2, "9h")
    result = step(here)
    assert starts(result)["gang"] == 7200
    assert result.bound_per_job == {"default/short": 1, "default/without": 1}
    here.sleep(7195)
    for name in ("one-0", "two-0", "short-0"):
        here.finish(name)
    assert step(here).bound_per_job == {"default/gang": 2}


@MODES
def test_a_job_with_a_device_claim(mode: str) -> None:
    here = world(mode, nodes="n1 cpu=9").add(device_class(), resource_slice("n1", 2))
    here.add(device_claim("a", 1), device_claim("b", 2), device_claim("c", 1), device_claim("d", 1))
    job(here, "one", 1, "1h", spec=uses("a"))
    assert len(step(here).binds) == 1
    job(here, "head", 1, "1h", spec=uses("b"))
    job(here, "long", 1, "9h", spec=uses("c"))
    job(here, "short", 1, "50m", spec=uses("d"))
    job(here, "without", 2, "9h")
    result = step(here)
    assert starts(result)["head"] == 3600
    assert result.bound_per_job == {"default/short": 1, "default/without": 1}


@MODES
def test_a_gang_within_a_hyper_node(mode: str) -> None:
    sizes = "cpu=4,memory=9Gi,pods=9"
    here = world(mode, "network-topology-aware", nodes="; ".join(f"n{n} {sizes}" for n in range(4)))
    here.add(hyper_node("s0", nodes=["n0", "n1"]), hyper_node("s1", nodes=["n2", "n3"]))
    for number, limit in enumerate(("4h", "1h", "2h", "3h")):
        job(here, f"r{number}", 4, limit, spec={"nodeSelector": {"kubernetes.io/hostname": f"n{number}"}})
    step(here)
    job(here, "gang", 4, "1h", pods=2, group=topology(1))
    result = step(here)
    assert starts(result) == {"gang": 3 * 3600}
    assert result.promised["default/gang"].nodes == ("n2", "n3")
    here.sleep(3700)
    here.finish("r1-0")
    job(here, "long", 2, "9h")
    assert step(here).binds == {"default/long-0": "n1"}
    here.finish("r2-0")
    job(here, "late", 3, "9h")
    assert step(here).bound_per_job == {}
    here.finish("r3-0")
    assert step(here).binds == {"default/gang-0": "n2", "default/gang-1": "n3"}


@MODES
def test_a_job_with_cpus_of_a_numa_node(mode: str) -> None:
    here = world(mode, ("numa-aware", {"weight": 1}), nodes="n1 cpu=16,memory=64Gi,pods=99")
    here.add(numa_topology("n1", numa=1, each=4))
    for name, cpus, limit in (("one", 2, "1h"), ("head", 4, "1h"), ("long", 1, "9h"), ("short", 1, "50m")):
        annotations = {"stromboli.sh/time-limit": limit}
        here.add(group(name, 1, annotations=annotations))
        here.add(numa_pod(f"{name}-0", cpus, group=name, policy="restricted", annotations=annotations))
        if name == "one":
            assert len(step(here).binds) == 1
    job(here, "without", 2, "9h")
    result = step(here)
    assert starts(result)["head"] == 3600
    assert result.bound_per_job == {"default/short": 1, "default/without": 1}


@MODES
def test_a_job_whose_volumes_need_others_to_be_detached(mode: str) -> None:
    here = world(mode, nodes="n1 cpu=9").add(csi_node("n1", 2))
    for name in "abcde":
        here.add(*disk(name))
    job(here, "one", 1, "1h", spec=claiming("a"))
    assert len(step(here).binds) == 1
    job(here, "head", 1, "1h", spec=claiming("b", "c"))
    job(here, "long", 1, "9h", spec=claiming("d"))
    job(here, "short", 1, "50m", spec=claiming("e"))
    job(here, "without", 2, "9h")
    result = step(here)
    assert starts(result)["head"] == 3600
    assert result.bound_per_job == {"default/short": 1, "default/without": 1}


def test_a_promise_waits_for_the_limit_of_the_queue_as_well() -> None:
    here = world("easy", "capacity", nodes="n1 cpu=10", queues="small capability=cpu:7; other")
    job(here, "own", 4, "2h", queue="small")
    job(here, "others", 6, "1h", queue="other")
    step(here)
    job(here, "head", 5, "1h", queue="small")
    assert starts(step(here)) == {"head": 7200}
    here.sleep(3595)
    here.finish("others-0")
    job(here, "long", 6, "9h", queue="other")
    job(here, "beside", 5, "9h", queue="other")
    assert step(here).bound_per_job == {"default/beside": 1}
    here.sleep(3599)
    here.finish("own-0")
    assert step(here).bound_per_job == {"default/head": 1}


def test_a_job_at_the_limit_of_its_queue_is_passed_over_until_the_limit_frees() -> None:
    here = world("easy", "capacity", nodes="n1 cpu=10", queues="small capability=cpu:4; other")
    job(here, "own", 4, "1h", queue="small")
    job(here, "others", 4, "3h", queue="other")
    step(here)
    job(here, "limited", 2, "9h", queue="small", priority=9)
    job(here, "large", 6, "1h", queue="other")
    result = step(here)
    assert starts(result) == {"large": 3600}
    here.sleep(3600)
    here.finish("own-0")
    assert step(here).bound_per_job == {"default/limited": 1}
