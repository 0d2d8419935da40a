"""The peer in plain Python binds the same pods to the same nodes."""

from pathlib import Path

import pytest

from bench import naive
from bench.measure import measure
from bench.workloads import WORKLOADS


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name.startswith(("W1", "W2", "W3"))])
def test_the_naive_peer_makes_the_same_binds(name: str, tmp_path: Path) -> None:
    workload = WORKLOADS[name].scaled(0.02)
    path = tmp_path / "case.json"
    path.write_bytes(workload.encoded())
    assert measure(str(path), placed=True).placed == naive.cycle(*naive.read(workload))
