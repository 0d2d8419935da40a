"""The workloads by name: what stands in the cluster, what arrives, and what a cycle must decide about it.

Sizes and content of W1 to W9 are those on which a real Volcano was timed, so that seconds compare. A workload can be
scaled down: nodes, running jobs and pending pods shrink together. The mixed ones have the same sizes but ten kinds of
pods and several kinds of nodes (see `mix`). The guaranteed ones have the same pods with limits equal to their requests.
"""

from __future__ import annotations

from dataclasses import replace

from bench import worlds
from bench.corner_workloads import CORNERS
from bench.eviction_workloads import EVICTIONS
from bench.switches import SwitchedSizes
from bench.workload import EVICTING, Clearing, Workload
from bench.worlds import TEAM, Sizes
from stromboli.policy.presets import preset


def _gentle(workload: Workload, preset_name: str, clears: Clearing) -> Workload:
    """The same with the arguments that a preset gives its actions."""
    _, key, arguments = preset(preset_name).partition("configurations:\n")
    return replace(
        workload,
        name=f"{workload.name}-gentle",
        about=f"{workload.about}, as in the preset {preset_name}",
        configurations=key + arguments,
        clears=clears,
    )


_SEED = 20260801
_ONE_GANG = Sizes(nodes=1000, gangs=1, members=10_000)
_GANGS = Sizes(nodes=1000, gangs=500, members=20)
_SINGLES = Sizes(nodes=1000, gangs=10_000, members=1)
_FULL = Sizes(nodes=5000, gangs=500, members=20, running=2500)
_LARGE = Sizes(nodes=20_000, gangs=2000, members=20)
_LARGE_FULL = Sizes(nodes=20_000, gangs=2000, members=20, running=10_000)

_ALL = [
    Workload("W1-1x10000-1000n", "one gang of 10,000", _ONE_GANG, worlds.empty, True),
    Workload("W2-500x20-1000n", "500 gangs of 20", _GANGS, worlds.empty, True),
    Workload("W2-500x20-5000n", "500 gangs of 20", replace(_GANGS, nodes=5000), worlds.empty, True),
    Workload("W3-10000x1-1000n", "10,000 single pods", _SINGLES, worlds.empty, True),
    Workload("W3-10000x1-5000n", "10,000 single pods", replace(_SINGLES, nodes=5000), worlds.empty, True),
    Workload("L-2000x20-20000n", "2,000 gangs of 20 on 20,000 nodes", _LARGE, worlds.empty, True, cycles=2),
    Workload(
        "W4-idle-5000n-50000p",
        "nothing to do",
        Sizes(nodes=5000, running=2500),
        worlds.idle,
        False,
        counts_later=True,
    ),
    Workload("W5-full-5000n-500x20", "no room, 500 gangs wait", _FULL, worlds.full, False),
    Workload("W5f-fragmented-5000n-500x20", "0.4 cores free on each node", _FULL, worlds.fragmented, False),
    Workload(
        "W5-full-5000n-500x20-evict",
        "no room, evicting allowed",
        _FULL,
        worlds.full,
        False,
        actions=EVICTING,
    ),
    Workload(
        "W5f-fragmented-5000n-500x20-evict",
        "0.4 cores free, evicting allowed",
        _FULL,
        worlds.fragmented,
        False,
        actions=EVICTING,
    ),
    Workload(
        "W6-preempt-1000n-50x20",
        "50 urgent gangs",
        Sizes(nodes=1000, gangs=50, members=20, running=500),
        worlds.preempting,
        False,
        actions=("enqueue", "allocate", "preempt"),
        clears=Clearing(0.5),
    ),
    Workload(
        "W7-reclaim-1000n-50x20",
        "50 gangs of the other queue",
        Sizes(nodes=1000, gangs=50, members=20, running=500),
        worlds.reclaiming,
        False,
        actions=("enqueue", "allocate", "reclaim"),
        clears=Clearing(0.64, exactly=False),
    ),
    Workload(
        "W8-gpu-topology-1000n-60x16",
        "60 gangs, each below one switch",
        Sizes(nodes=1000, gangs=60, members=16, fewest_nodes=16),
        worlds.racks,
        True,
        plugins=("network-topology-aware",),
    ),
    Workload(
        "W9-gpu-tiers-5000n",
        "66 gangs of 16 to 128 that fit, each below one switch",
        SwitchedSizes(nodes=5000, wanted=2504),
        worlds.switched,
        True,
        plugins=("network-topology-aware",),
    ),
    Workload(
        "W9f-gpu-tiers-5000n-300-gangs",
        "300 gangs of 16 to 128, most find no room",
        SwitchedSizes(nodes=5000, wanted=99_999, phase="Inqueue"),
        worlds.switched,
        None,
        plugins=("network-topology-aware",),
    ),
    Workload(
        "W10-claims-5000n-50x20",
        "50 gangs of 20, a device by claim for each pod",
        Sizes(nodes=5000, gangs=50, members=20),
        worlds.claiming,
        True,
    ),
    Workload(
        "W11-local-claims-5000n-50x20",
        "50 gangs of 20, each pod with a claim on a local volume",
        Sizes(nodes=5000, gangs=50, members=20),
        worlds.local_claims,
        True,
    ),
    Workload(
        "W11-provisioned-claims-5000n-50x20",
        "50 gangs of 20, each pod with a claim that a driver provisions",
        Sizes(nodes=5000, gangs=50, members=20),
        worlds.provisioned_claims,
        True,
    ),
    Workload(
        "U-2000x20-20000n",
        "no room on 20,000 nodes, 2,000 gangs wait",
        _LARGE_FULL,
        worlds.full,
        False,
        counts_later=True,
    ),
    Workload(
        "U-2000x20-20000n-evict",
        "the same, evicting allowed",
        _LARGE_FULL,
        worlds.full,
        False,
        actions=EVICTING,
        counts_later=True,
    ),
    Workload(
        "M-5000n-100000p",
        "memory: 100,000 running pods",
        Sizes(nodes=5000, running=5000),
        worlds.idle,
        False,
        counts_later=True,
    ),
    Workload(
        "M-20000n-200000p",
        "load and memory: 200,000 running pods",
        Sizes(nodes=20_000, running=10_000),
        worlds.idle,
        False,
        counts_later=True,
    ),
]
_MIXED = [
    Workload(
        workload.name + "-mixed",
        workload.about + ", ten kinds of pods",
        workload.sizes,
        worlds.mixed,
        True,
        seed=_SEED,
        base=workload.name,
        cycles=workload.cycles,
    )
    for workload in _ALL
    if workload.build is worlds.empty
]

_ARRIVING = [
    replace(
        workload,
        name=f"{workload.name}-arriving",
        about=f"{workload.about}, and a single pod that fits comes before each later cycle",
        arriving=True,
    )
    for workload in _ALL
    if workload.name.startswith(("W4", "U-"))
]

_GUARANTEED = [
    replace(
        workload,
        name=f"{workload.name}-guaranteed",
        about=f"{workload.about}; pods limited to what they request",
        build=worlds.guaranteed(workload.build),
        base=workload.name,
    )
    for workload in [*_ALL, *_ARRIVING]
]

_ONE_NUMA_NODE = [
    replace(
        workload,
        name=f"{workload.name}-numa",
        about=f"{workload.about}; one node has a Numatopology",
        build=worlds.with_one_numa_node(workload.build),
    )
    for workload in _GUARANTEED
    if workload.arriving
]

_GENTLE = [
    _gentle(workload, name, clears)
    for workload in _ALL
    for begin, name, clears in (
        ("W6", "high-priority", Clearing(0.34, exactly=False, together=TEAM)),
        ("W7", "fair-share", Clearing(0.34, exactly=False)),
    )
    if workload.name.startswith(begin)
]

# The base of a workload stands before it.
WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in [
        *_ALL,
        *_ARRIVING,
        *_GENTLE,
        *CORNERS,
        *EVICTIONS,
        *_MIXED,
        *_GUARANTEED,
        *_ONE_NUMA_NODE,
    ]
}


def custom(nodes: int, pending: int, running: int, name: str = "custom") -> Workload:
    """Gangs of twenty that fit beside running jobs of twenty: for questions of growth."""
    sizes = Sizes(nodes=nodes, gangs=pending // TEAM, members=TEAM, running=running // TEAM)
    return Workload(name, "growth", sizes, worlds.busy, True, cycles=2)
