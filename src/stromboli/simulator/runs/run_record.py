"""The record of a simulation: what happened to every job and pod, and when. Reports are functions of it.

Times are seconds of virtual time since the simulation began. A record is kept as JSON, so keys may be added and never
changed.
"""

from __future__ import annotations

from msgspec import Struct, field

SCHEMA = 1

SUCCEEDED = "Succeeded"
FAILED = "Failed"
EVICTED = "Evicted"
NODE_FAILED = "NodeFailed"
RUNNING = "Running"
"""The simulation ended before the pod did."""


class JobRecord(Struct, omit_defaults=True):
    """What became of a job."""

    name: str
    submitted: float
    pods: int
    requests: dict[str, float]
    """Of all its pods together, in whole units (CPUs, bytes, cards)."""
    started: float | None = None
    """When its minimum of pods ran at last; None: never."""
    ended: float | None = None
    first_started: float | None = None
    """When its minimum of pods ran for the first time, if it was evicted later."""
    run_time: float = 0.0
    """How long a pod runs; 0: without end."""
    time_limit: float | None = None
    queue: str = ""
    user: str = ""
    evictions: int = 0
    lost_work: float = 0.0
    """Seconds that its pods ran in vain, of all pods together."""
    dropped: bool = False
    """It fitted nowhere and left, where jobs do so."""


class PodRecord(Struct, omit_defaults=True):
    """A pod on a node, from its start to its end."""

    job: int
    """The place of its job in the list of jobs."""
    pod: str
    node: str
    started: float
    ended: float
    outcome: str = SUCCEEDED


class Sample(Struct, omit_defaults=True):
    """The cluster at a moment; it stays so until the next sample."""

    time: float
    used: dict[str, float]
    """By resource, in whole units."""
    waiting: int = 0
    """Jobs that were submitted and have not started."""
    running: int = 0
    used_by_queue: dict[str, dict[str, float]] = {}
    deserved_by_queue: dict[str, dict[str, float]] = {}
    fragmentation: float | None = None
    """The share of GPUs that typical tasks cannot use, where a policy computes it."""


class EvictionRecord(Struct, omit_defaults=True):
    """A pod that had to go, and what was lost with it."""

    time: float
    job: int
    pod: str
    node: str
    lost_work: float
    """Seconds that it had run."""
    reason: str = ""
    beneficiary: str = ""


class RunRecord(Struct, omit_defaults=True):
    """A simulation from its beginning to its end, or as far as it came."""

    name: str
    capacity: dict[str, float]
    """Of all nodes together at the start, in whole units."""
    nodes: dict[str, dict[str, float]]
    jobs: list[JobRecord]
    pods: list[PodRecord] = []
    samples: list[Sample] = []
    evictions: list[EvictionRecord] = []
    schema: int = SCHEMA
    seed: int = 0
    settings: dict[str, str | int | float | bool | None] = {}
    """What the run was asked for: workload, cluster, policy and the options that matter."""
    end: float = 0.0
    """The moment at which it ended."""
    cycles: int = 0
    partial: bool = False
    """It was interrupted."""
    failed: str = ""
    """Why it ended before its time, or what a plugin failed over; empty if nothing went wrong."""
    measures: dict[str, float] = field(default_factory=dict)
    """Figures that the run itself computed, such as `gpu_allocation`."""
    notes: list[str] = []
