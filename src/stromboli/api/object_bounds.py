"""How large objects may be: admission refuses what is above, and who meets it all the same leaves it out."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from stromboli.api.types.pod import PREFERRED, REQUIRED

MAX_QUEUE_DEPTH = 64
"""Levels of queues below the root, and steps of a `volcano.sh/hierarchy` path."""
MAX_TASKS = 1_000
"""Tasks of a Job."""
MAX_PODS = 100_000
"""Pods of a Job (the replicas of all its tasks), or of another workload."""
MAX_CONTAINERS = 1_000
"""Containers of a pod, init containers included."""
MAX_PLACEMENT_TERMS = 100
"""Topology spread constraints and terms of pod affinity and anti-affinity of a pod: each is a look at all nodes."""
MAX_POLICIES = 256
"""Lifecycle policies of a Job, or of one of its tasks."""
MAX_JOB_VOLUMES = 256
"""Volumes of a Job, each of which is a claim that is looked up."""
MAX_JOB_BYTES = 1024 * 1024
"""The spec of a Job as JSON, so that its status fits beside it into what an API server stores."""
MAX_STEPS = 1_000
"""Steps of a JobFlow."""


class Size(NamedTuple):
    """How much of something an object has, how much it may have, and what to do about too much."""

    what: str
    amount: int
    most: int
    remedy: str

    def __str__(self) -> str:
        return f"has {self.amount} {self.what}, at most {self.most} are allowed"


def job_sizes(tasks: int, pods: int, volumes: int, policies: int) -> Iterator[Size]:
    """What there is too much of in a job; `policies` are those of its longest list."""
    return exceeding(
        (
            Size("tasks", tasks, MAX_TASKS, "use fewer tasks with more replicas, or several jobs"),
            Size("pods", pods, MAX_PODS, "split it into several jobs"),
            Size("volumes", volumes, MAX_JOB_VOLUMES, "mount fewer"),
            Size("policies in one list", policies, MAX_POLICIES, "name fewer events and exit codes"),
        )
    )


def pod_sizes(containers: int, terms: int) -> Iterator[Size]:
    """What there is too much of in a pod; `terms` are its spread constraints and those of pod affinity."""
    what = "topology spread constraints and terms of pod affinity"
    return exceeding(
        (
            Size("containers", containers, MAX_CONTAINERS, "use several pods"),
            Size(what, terms, MAX_PLACEMENT_TERMS, "select other pods by a label that they share"),
        )
    )


def manifest_sizes(spec: Any) -> Iterator[Size]:
    """The same of the spec of a pod as it was sent, which may be of any form."""
    affinity = _part(spec, "affinity")
    terms = _length(spec, "topologySpreadConstraints")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms += _length(_part(affinity, kind), REQUIRED, PREFERRED)
    return pod_sizes(_length(spec, *_CONTAINERS), terms)


_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _length(value: Any, *keys: str) -> int:
    """How many items the lists under these keys have together."""
    lists = (_part(value, key) for key in keys)
    return sum(len(items) for items in lists if isinstance(items, list))


def exceeding(sizes: Iterable[Size]) -> Iterator[Size]:
    return (size for size in sizes if size.amount > size.most)
