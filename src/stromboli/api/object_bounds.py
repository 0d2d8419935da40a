"""How large objects may be: admission refuses what is above, and who meets it all the same leaves it out."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_QUEUE_DEPTH = 64
"""Levels of queues below the root, and steps of a `volcano.sh/hierarchy` path."""
MAX_TASKS = 1_000
"""Tasks of a Job."""
MAX_PODS = 100_000
"""Pods of a Job: the replicas of all its tasks."""
MAX_CONTAINERS = 1_000
"""Containers of a pod, init containers included."""
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
    way_out: str

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


def container_size(containers: int) -> Size:
    """How large a pod is."""
    return Size("containers", containers, MAX_CONTAINERS, "use several pods")


def exceeding(sizes: Iterable[Size]) -> Iterator[Size]:
    return (size for size in sizes if size.amount > size.most)
