"""A workload: jobs with the moments at which they are submitted, and the nodes that a trace was recorded on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from stromboli.simulator.cluster_notation import Manifest


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job of a workload: what is submitted, when, and how long it really runs."""

    name: str
    submit_time: float
    """In seconds since the workload began."""
    run_time: float = inf
    """How long each pod runs once it started; a pod that never ends stays."""
    pods: int = 1
    minimum: int | None = None
    """How many pods must start together; None: all of them."""
    requests: Mapping[str, int | str] = field(default_factory=dict)
    """Of each pod, as a resource list."""
    time_limit: float | None = None
    """What the scheduler is told of the run time, in seconds (`stromboli.sh/time-limit`); None: nothing."""
    queue: str = ""
    user: str = ""
    namespace: str = "default"
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of its pods."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of its PodGroup and its pods."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """More fields of every pod's spec, such as a node selector."""
    running_on: tuple[str, ...] = ()
    """The nodes on which its first pods run already when it is submitted."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in the order in which they are submitted, and what they come with."""

    name: str
    jobs: tuple[SubmittedJob, ...]
    nodes: tuple[Manifest, ...] = ()
    """The nodes that a trace was recorded on; a simulation may take others."""
    objects: tuple[Manifest, ...] = ()
    """Queues, priority classes and other objects that exist from the start."""
    notes: tuple[str, ...] = ()
    """What a reader of the trace should know, such as how many records could not be used."""
