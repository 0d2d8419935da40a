"""Where a workload comes from: a file, the lists of the OpenB traces, or a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.cluster_workload import cluster_workload
from stromboli.cli.simulate.openb_arguments import arrival_sequence, given_lists
from stromboli.cli.simulate.progress_bar import reading_bar
from stromboli.cli.simulate.simulate_options import Sequence
from stromboli.simulator.workloads.openb_workload import arriving_workload, recorded_workload
from stromboli.simulator.workloads.submitted_jobs import Workload
from stromboli.simulator.workloads.swf_reader import SwfOptions
from stromboli.simulator.workloads.workload_files import read_workload


@dataclass(frozen=True, slots=True)
class WorkloadSource:
    """The options of a command that takes a workload, as given."""

    file: Path | None
    openb_nodes: Path | None
    openb_pods: Path | None
    files: list[str]
    seed: int | None
    load: float
    sequence: Sequence
    recorded_times: bool
    cpus_per_pod: int | None
    queues: bool
    overrun: bool
    jobs: int | None

    def read(self) -> Workload:
        """The workload, or `Usage` if none or several are named."""
        lists = (self.openb_nodes, self.openb_pods)
        if sum((self.file is not None, any(lists), bool(self.files))) != 1:
            raise Usage("which workload? Give one of FILE, --openb-nodes with --openb-pods, or -f")
        if any(lists):
            workload = self._read_lists()
        elif self.files:
            workload = cluster_workload(self.files)
        else:
            workload = self._read_file()
        return replace(workload, jobs=workload.jobs[: self.jobs])

    def _read_file(self) -> Workload:
        swf = SwfOptions(cpus_per_pod=self.cpus_per_pod, overrun=self.overrun, queues=self.queues)
        with reading_bar() as progress:
            return read_workload(str(self.file), self.seed, swf, progress)

    def _read_lists(self) -> Workload:
        lists = given_lists(self.openb_nodes, self.openb_pods)
        if self.recorded_times:
            return recorded_workload(lists)
        return arriving_workload(lists, self.load, arrival_sequence(self.sequence, self.seed or 0))
