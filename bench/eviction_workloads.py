"""Evictions for many jobs at once, where cost could grow with everything that runs, job by job."""

from __future__ import annotations

from bench import worlds
from bench.workload import Clearing, Workload
from bench.worlds import Sizes

_GANGS = Sizes(nodes=4000, gangs=200, members=20, running=2000)
_GANGPREEMPT = ("enqueue", "allocate", "gangpreempt")
NO_HARM = """\
configurations:
- name: {action}
  arguments:
    fewestVictims: {fewest_victims}
    doNoHarm: true
"""

EVICTIONS = [
    Workload(
        "E-gangpreempt-4000n-200-gangs",
        "200 urgent gangs, each takes the place of another",
        _GANGS,
        worlds.preempting_alike,
        False,
        actions=_GANGPREEMPT,
        clears=Clearing(1.0),
    ),
    Workload(
        "E-gangpreempt-4000n-200-gangs-fewest",
        "the same with as few victims as possible",
        _GANGS,
        worlds.preempting_alike,
        False,
        actions=_GANGPREEMPT,
        configurations=NO_HARM.format(action="gangpreempt", fewest_victims="true"),
        clears=Clearing(1.0, exactly=False),
    ),
    Workload(
        "E-reclaim-2000-queues-50-gangs",
        "50 gangs reclaim from 2,000 queues with guarantees",
        Sizes(nodes=4000, gangs=50, members=10, running=2000),
        worlds.guaranteed_queues,
        False,
        actions=("enqueue", "allocate", "reclaim"),
        configurations=NO_HARM.format(action="reclaim", fewest_victims="false"),
        clears=Clearing(1.0, exactly=False),
    ),
    Workload(
        "E-reclaim-200-queues-of-one",
        "200 queues reclaim a pod each from 1,000 jobs of one queue",
        Sizes(nodes=2000, gangs=200, members=1, running=1000),
        worlds.one_holder,
        False,
        actions=("enqueue", "allocate", "reclaim"),
        clears=Clearing(1.0, exactly=False),
    ),
    Workload(
        "E-reclaim-200-queues-of-one-fewest",
        "the same with as few victims as possible",
        Sizes(nodes=2000, gangs=200, members=1, running=1000),
        worlds.one_holder,
        False,
        actions=("enqueue", "allocate", "reclaim"),
        configurations=NO_HARM.format(action="reclaim", fewest_victims="true"),
        clears=Clearing(1.0, exactly=False),
    ),
    Workload(
        "E-gangreclaim-2000-queues-50-gangs",
        "50 queues reclaim for a gang each from 2,000 queues",
        Sizes(nodes=4000, gangs=50, members=4, running=2000),
        worlds.guaranteed_queues,
        False,
        actions=("enqueue", "allocate", "gangreclaim"),
        clears=Clearing(5.0, exactly=False),
    ),
]
