"""Records of runs to configurations: what was named together, or has settings that differ by the seed alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stromboli.api.errors import printable
from stromboli.simulator.reports.comparison.configurations import Configuration, Run
from stromboli.simulator.reports.measure_titles import NONE
from stromboli.simulator.reports.measures import summary
from stromboli.simulator.reports.record_columns import Floats, RecordColumns
from stromboli.simulator.reports.record_files import read_record
from stromboli.simulator.runs.run_record import RunRecord

QUANTILES = 401
SEED = "seed"


class RecordFile(NamedTuple):
    """A file, and the name of the configuration that it belongs to, if one was given."""

    path: Path
    name: str = ""


class _LoadedRun(NamedTuple):
    file: RecordFile
    run: Run
    settings: dict[str, Any]


def configurations_of(files: Sequence[RecordFile]) -> list[Configuration]:
    """Read all records, one after the other, and put together what belongs together, in the order given."""
    groups: dict[object, list[_LoadedRun]] = {}
    for file in files:
        record = read_record(file.path)
        settings = {key: value for key, value in record.settings.items() if key != SEED}
        key = file.name or (record.name, tuple(sorted((key, str(value)) for key, value in settings.items())))
        groups.setdefault(key, []).append(_LoadedRun(file, run_of(record), {"run": record.name, **settings}))
    names = _names(list(groups.values()))
    return [
        Configuration(name, tuple(loaded.run for loaded in group), *_settings(group))
        for name, group in zip(names, groups.values(), strict=True)
    ]


@np.errstate(all="ignore")
def run_of(record: RunRecord) -> Run:
    """What is kept of a record."""
    columns = RecordColumns(record)
    return Run(
        record.seed,
        summary(record),
        _quantiles(columns.wait),
        _quantiles(columns.bounded_slowdown),
        record.partial,
        bool(record.failed),
    )


def _quantiles(values: Floats) -> Floats:
    known = values[np.isfinite(values)]
    if not known.size:
        return np.zeros(0)
    return np.percentile(known, np.linspace(0, 100, QUANTILES)).astype(np.float64)


def _settings(group: list[_LoadedRun]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The settings of a configuration, and which of them its runs do not share."""
    merged: dict[str, Any] = {}
    mixed: list[str] = []
    for key in dict.fromkeys(key for loaded in group for key in loaded.settings):
        values = list(dict.fromkeys(str(loaded.settings.get(key, NONE)) for loaded in group))
        merged[key] = group[0].settings.get(key, NONE) if len(values) == 1 else ", ".join(values)
        mixed += [key] if len(values) > 1 else []
    return merged, tuple(mixed)


def _names(groups: list[list[_LoadedRun]]) -> list[str]:
    """The name that was given; of a single file its own; else the settings by which it differs from the others."""
    shared = _shared([group[0].settings for group in groups])
    names: list[str] = []
    for group in groups:
        first = group[0]
        name = first.file.name
        if not name and len(group) == 1:
            name = first.file.path.stem
        if not name:
            different = {
                key: value for key, value in first.settings.items() if (key, str(value)) not in shared
            }
            name = " ".join(f"{key}={value}" for key, value in different.items()) or first.file.path.stem
        names.append(_unique(printable(name), names))
    return names


def _shared(settings: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """What all of them say."""
    sets = [{(key, str(value)) for key, value in table.items()} for table in settings]
    return set.intersection(*sets) if sets else set()


def _unique(name: str, taken: list[str]) -> str:
    return next(
        text for n in range(1, len(taken) + 2) if (text := name if n == 1 else f"{name} ({n})") not in taken
    )
