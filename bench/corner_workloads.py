"""Corners of the policy in which cost could grow with everything that runs; each beside a plain workload.

A corner may cost at most twice as much as the workload that it is compared with (`targets.py`).
"""

from __future__ import annotations

from bench import worlds
from bench.workload import Clearing, Workload
from bench.worlds import Sizes
from stromboli.policy.presets import CHART

GATE = Sizes(nodes=5000, gangs=500, members=20, running=2500)
URGENT = """\
configurations:
- name: enqueue
  arguments:
    letUrgentThrough: true
"""
PREEMPTING = ("enqueue", "allocate", "preempt")
CAPACITY = CHART.replace("  - name: proportion\n", "  - name: capacity\n    enableHierarchy: true\n")
DRF = CHART.replace("  - name: drf\n    enablePreemptable: false\n", "  - name: drf\n")

CORNERS = [
    Workload(
        "C-capacity-500-queues-500x20-1000n",
        "500 gangs of 20, each in a leaf queue of its own, with capacity",
        Sizes(nodes=1000, gangs=500, members=20),
        worlds.leaf_queues,
        True,
        tiers=CAPACITY,
        base="W2-500x20-1000n",
    ),
    Workload(
        "C-drf-preemptable-1000n-50x20",
        "50 gangs that preempt by drf, none is more urgent",
        Sizes(nodes=1000, gangs=50, members=20, running=500),
        worlds.full,
        False,
        actions=PREEMPTING,
        tiers=DRF,
        base="W6-preempt-1000n-50x20",
        clears=Clearing(0.5),
    ),
    Workload(
        "C-shuffle-5000n-50000p",
        "shuffle with nobody to go, a single pod comes before each cycle",
        Sizes(nodes=5000, running=2500),
        worlds.idle,
        False,
        actions=("enqueue", "allocate", "backfill", "shuffle"),
        plugins=("rescheduling",),
        base="W4-idle-5000n-50000p-arriving",
        counts_later=True,
        arriving=True,
    ),
    Workload(
        "C-gate-5000n-500x20",
        "no room, 500 urgent gangs wait at the gate",
        GATE,
        worlds.urgent_at_gate,
        False,
        actions=PREEMPTING,
    ),
    Workload(
        "C-gate-5000n-500x20-urgent",
        "the same with letUrgentThrough; the gate lets one in at a time",
        GATE,
        worlds.urgent_at_gate,
        False,
        actions=PREEMPTING,
        configurations=URGENT,
        base="C-gate-5000n-500x20",
        clears=Clearing(0.5, only=20),
    ),
]
