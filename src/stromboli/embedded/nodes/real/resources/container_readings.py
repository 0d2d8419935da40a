"""What containers have used: by their cgroups where they have any, else by their processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stromboli.embedded.nodes.real.resources.cgroups import ContainerCgroup
from stromboli.embedded.nodes.usage.process_usage import Reading, read_processes


class ProcessPlace(NamedTuple):
    """Where the processes of a run of a container are."""

    leader: int
    cgroup: ContainerCgroup | None = None


def read_containers(places: Mapping[str, ProcessPlace]) -> dict[str, Reading]:
    """By the key of the run; what has ended is missing."""
    readings = {
        key: reading
        for key, place in places.items()
        if place.cgroup is not None and (reading := place.cgroup.reading()) is not None
    }
    others = {place.leader: key for key, place in places.items() if place.cgroup is None}
    return readings | {others[leader]: reading for leader, reading in read_processes(others.keys()).items()}
