"""What the soak does to a cluster, and what must hold all the while: every rate and every limit, in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass

MIB = 1024 * 1024
BY_HAND = "STROMBOLI_SOAK_SECONDS" in os.environ
SECONDS = float(os.environ.get("STROMBOLI_SOAK_SECONDS", "25"))
"""How long the load lasts; start, checks and the end come on top, some ten seconds."""
SUITE_SEED = 3_605_945_661
SEED = int(os.environ.get("STROMBOLI_SOAK_SEED", "0")) or (
    int.from_bytes(os.urandom(4)) if BY_HAND else SUITE_SEED
)
"""Of the mutated requests: new ones in each run by hand, the same ones in the suite."""

NODES = "10x32cpu,128Gi"


@dataclass(frozen=True)
class Load:
    """Rates are per second. The suite runs it on two cores beside other tests, so it takes about half of one."""

    pods: float = 4.0
    jobs: float = 0.7
    config_maps: float = 3.0
    config_map_bytes: int = MIB
    """Of a large ConfigMap, which makes some 10 GiB of versions an hour."""
    large_config_maps: int = 6
    mutated: float = 12.0
    unread_watches: int = 60
    """Connections of a user who may only look, and does not read what comes: half as objects, half as tables."""
    slow_watches: int = 6
    """Connections that read some KiB a second."""
    half_requests: int = 20
    """Connections that send half a head and wait."""
    probe_pause: float = 0.4
    kill_interval: float = 60.0
    """Seconds between two kills, more or less; in a short run a third of it."""


def load_here() -> Load:
    """By hand, more watches than one user may have."""
    return Load(unread_watches=220, half_requests=40) if BY_HAND else Load()


@dataclass(frozen=True)
class Limits:
    """What is measured at the process of `stromboli up` and by its clients."""

    bind: float = 3.0
    """Seconds from the acknowledged creation of a probe pod until it has a node."""
    bind_after_kill: float = 10.0
    """Seconds from `kill -9` until a probe pod that was created since has a node; the restart is part of it."""
    ready: float = 1.0
    """Seconds for an answer of `/readyz` to a process that does nothing else, 99 of 100 times."""
    ready_worst: float = 3.0
    memory: int = 1024 * MIB
    """Resident memory."""
    disk: int = (256 + 64) * MIB
    """The data folder beyond the objects that exist: the history that watches may resume from, and 64 MiB."""
    descriptors: int = 600
    answer: float = 30.0
    """Seconds for the answer to any request that is not mutated."""


SHARED_CORES = 3.0
"""The suite may take so many times as long for a bind or an answer: other tests run on the same two cores."""


def limits_here() -> Limits:
    """By hand as they are; in the suite, where other tests take turns on the cores, latencies may be longer."""
    limits = Limits()
    if BY_HAND:
        return limits
    return Limits(
        bind=limits.bind * SHARED_CORES,
        bind_after_kill=limits.bind_after_kill * SHARED_CORES,
        ready=limits.ready * SHARED_CORES,
        ready_worst=limits.ready_worst * SHARED_CORES,
    )
