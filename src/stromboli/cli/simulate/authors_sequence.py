"""`--sequence go`: the random numbers of the FGD paper's authors, from Go's generator in `bench/` of a checkout."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import stromboli
from stromboli.cli.cli_errors import Usage
from stromboli.simulator.workloads.openb_arrivals import ArrivalSequence

_GENERATOR = Path(stromboli.__file__).parents[2] / "bench" / "go_random.py"


def authors_sequence(seed: int) -> ArrivalSequence:
    """The sequence of a seed; the paper's seeds are 42 to 51."""
    spec = importlib.util.spec_from_file_location("go_random", _GENERATOR)
    if spec is None or spec.loader is None or not _GENERATOR.exists():
        raise Usage(
            f"--sequence go: there is no {_GENERATOR}. Go's generator comes with a checkout of the sources, not with "
            "an installed package: run from a checkout, or leave --sequence out"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sequence: ArrivalSequence = module.AuthorsSequence(seed)
    return sequence
