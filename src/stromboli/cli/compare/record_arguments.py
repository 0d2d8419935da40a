"""Arguments to files: records, folders of them, sweeps, patterns, and several under a name."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

from stromboli.cli.cli_errors import Usage
from stromboli.simulator.reports.comparison.record_groups import RecordFile
from stromboli.simulator.sweeps.grid import BadGrid
from stromboli.simulator.sweeps.results_folder import PLAN
from stromboli.simulator.sweeps.sweep_summary import sweep_records

MOST_RECORDS = 10_000


def record_files(arguments: list[str]) -> list[RecordFile]:
    """Every file that is meant, in order."""
    files = [file for argument in arguments for file in _files_of(argument)]
    if len(files) > MOST_RECORDS:
        raise Usage(f"{len(files):,} records are more than {MOST_RECORDS:,}: compare fewer at a time")
    return files


def _files_of(argument: str) -> Iterator[RecordFile]:
    if (Path(argument) / PLAN).is_file():
        yield from _records_of_sweep(Path(argument))
        return
    name, has_name, rest = argument.partition("=")
    if not has_name or Path(argument).exists():
        yield from (RecordFile(path) for path in _paths(argument))
        return
    if not name or not rest:
        raise Usage(f"{argument}: write NAME=RECORD, or several as NAME=RECORD,RECORD")
    for part in [rest] if Path(rest).exists() else rest.split(","):
        yield from (RecordFile(path, name) for path in _paths(part))


def _records_of_sweep(results: Path) -> Iterator[RecordFile]:
    """The records in the folder of a sweep, named as its grid names them."""
    try:
        files = [RecordFile(path, name) for name, path in sweep_records(results)]
    except BadGrid as error:
        raise Usage(str(error)) from None
    if not files:
        raise Usage(f"{results}: no run of this sweep has a record yet; `stromboli sweep` goes on with it")
    yield from files


def _paths(text: str) -> list[Path]:
    """A file, the records in a folder, or what a pattern matches; a file that is missing is told when it is read."""
    path = Path(text)
    if path.is_dir():
        inside = sorted(path.glob("*.json"))
        if not inside:
            raise Usage(f"{text}: no record in this folder; `stromboli simulate --save FILE` writes them")
        return inside
    if not path.exists() and glob.has_magic(text):
        matching = sorted(glob.glob(text))
        if not matching:
            raise Usage(f"{text}: no file matches")
        return [Path(match) for match in matching]
    return [path]
