"""The workload of a cluster in files, at the time at which it was so."""

from __future__ import annotations

import time

from stromboli.api.manifests.case_files import case_head
from stromboli.cli.plan import clock_of
from stromboli.simulator.workloads.dump_workload import read_dump
from stromboli.simulator.workloads.submitted_jobs import Workload


def cluster_workload(paths: list[str], now: str | None = None, assumed: float | None = None) -> Workload:
    """What a cluster runs and has waiting, at the time of its dump unless another is given.

    `assumed`: seconds that jobs run of which nothing else is known.
    """
    heads = [head for path in paths if (head := case_head(path)) is not None]
    moment = now or next((head.time for head in heads if head.time), None)
    return read_dump(paths, time.time() if moment is None else clock_of(moment), assumed)
