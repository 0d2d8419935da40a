"""The same command gives the same bytes, in another process and whatever the order of hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = "examples/simulator"
LISTS = ("--openb-nodes", f"{EXAMPLES}/openb/nodes.csv", "--openb-pods", f"{EXAMPLES}/openb/pods.csv")
COMMANDS = {
    "backfill": ("--swf", f"{EXAMPLES}/hpc2n-300.swf", "--jobs", "60", "--backfill", "easy"),
    "gangs and failures": (
        *("--swf", f"{EXAMPLES}/hpc2n-300.swf", "--jobs", "40", "--nodes", "30x8cpu,64Gi"),
        *("--failures", "2d/1h", "--seed", "3"),
    ),
    "packing": (*LISTS, "--score", "fgd", "--load", "1.3", "--seed", "5"),
    "random": (*LISTS, "--score", "random", "--load", "1.6", "--seed", "5"),
}


def files_of(command: tuple[str, ...], hash_seed: str, folder: Path) -> dict[str, bytes]:
    """What a command prints and writes, in a process of its own."""
    folder.mkdir()
    outputs = ("--save", f"{folder}/record.json", "--csv", f"{folder}/csv", "--report", f"{folder}/page.html")
    result = subprocess.run(
        [sys.executable, "-m", "stromboli", "simulate", *command, "-q", "-o", "json", *outputs],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
    )
    files = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {**files, "stdout": result.stdout, "stderr": result.stderr}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_another_process_with_another_hash_seed_writes_the_same_bytes(name, tmp_path):
    first = files_of(COMMANDS[name], "1", tmp_path / "one")
    second = files_of(COMMANDS[name], "2", tmp_path / "two")
    assert {"record.json", "page.html", "stdout"} < first.keys()
    assert [name for name in first if first[name] != second.get(name)] == []
