"""The arguments that say which OpenB lists are read, and whose random numbers put the pods into order."""

from __future__ import annotations

from pathlib import Path

from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.authors_sequence import authors_sequence
from stromboli.cli.simulate.simulate_options import Sequence
from stromboli.simulator.workloads.openb_arrivals import ArrivalSequence, SeededSequence
from stromboli.simulator.workloads.openb_workload import OpenbLists, read_openb


def given_lists(nodes: Path | None, pods: Path | None) -> OpenbLists:
    """Both lists; `Usage` if one of them is not given."""
    if nodes is None or pods is None:
        missing = "--openb-nodes" if nodes is None else "--openb-pods"
        raise Usage(f"{missing}: a list of nodes and a list of pods go together; give both")
    return read_openb(str(nodes), str(pods))


def arrival_sequence(sequence: Sequence, seed: int) -> ArrivalSequence:
    """The random numbers of a seed."""
    return authors_sequence(seed) if sequence is Sequence.GO else SeededSequence(seed)
