"""The lists of nodes and pods of the OpenB traces (Alibaba's GPU cluster of 2023): comma-separated, with a header.

Columns may stand in any order and others may stand beside them. GPUs are in thousandths.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeVar

from stromboli.simulator.workloads.trace_lines import trace_lines
from stromboli.simulator.workloads.workload_errors import WorkloadError

MAX_ROWS = 1_000_000
"""Rows of a list."""
MAX_AMOUNT = 10**12
"""Of CPU in thousandths, of memory in MiB, and of seconds."""
MAX_GPUS = 1024
"""GPUs of a node or a pod: as many as a node may register."""
GPU = 1000
"""A whole GPU."""

T = TypeVar("T", "OpenbNode", "OpenbPod")


@dataclass(frozen=True, slots=True)
class OpenbNode:
    """A row of a list of nodes."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class OpenbPod:
    """A row of a list of pods."""

    name: str
    cpu_milli: int
    memory_mib: int = 0
    gpus: int = 0
    gpu_milli: int = 0
    """Of each of its GPUs."""
    models: tuple[str, ...] = ()
    """Of the GPUs that it may have, as listed: one that stands there twice makes it another kind of pod; empty: any."""
    created: float | None = None
    scheduled: float | None = None
    deleted: float | None = None

    @property
    def gpu_demand(self) -> int:
        return self.gpus * self.gpu_milli


def read_openb_nodes(path: str) -> list[OpenbNode]:
    """The nodes of a list: `sn,cpu_milli,memory_mib,gpu,model`, of which the last two may be missing."""
    return _rows(path, ("sn", "cpu_milli", "memory_mib"), _node)


def read_openb_pods(path: str) -> list[OpenbPod]:
    """The pods of a list: `name,cpu_milli,num_gpu`; amounts of memory and GPUs, models and times where it has them."""
    return _rows(path, ("name", "cpu_milli", "num_gpu"), _pod)


class _Row:
    """A row by column, with the errors of its values."""

    def __init__(self, path: str, line: int, values: Mapping[str, str]) -> None:
        self._path = path
        self._line = line
        self._values = values

    def text(self, column: str) -> str:
        return self._values.get(column, "").strip()

    def count(self, column: str, most: int = MAX_AMOUNT, default: int = 0) -> int:
        text = self.text(column)
        if not text:
            return default
        number = _number(text)
        if not 0 <= number <= most or not number.is_integer():
            raise self.error(f"{column}: {text[:40]!r} is no whole number from 0 to {most}")
        return int(number)

    def time(self, column: str) -> float | None:
        text = self.text(column)
        if not text:
            return None
        number = _number(text)
        if not 0 <= number <= MAX_AMOUNT:
            raise self.error(f"{column}: {text[:40]!r} is no time from 0 to {MAX_AMOUNT}")
        return number

    def name(self, column: str) -> str:
        if not (name := self.text(column)):
            raise self.error(f"{column}: a name is missing")
        return name

    def error(self, problem: str) -> WorkloadError:
        return WorkloadError(self._path, problem, self._line)


def _node(row: _Row) -> OpenbNode:
    gpus = row.count("gpu", MAX_GPUS)
    cpu, memory = row.count("cpu_milli"), row.count("memory_mib")
    return OpenbNode(row.name("sn"), cpu, memory, gpus, row.text("model") if gpus else "")


def _pod(row: _Row) -> OpenbPod:
    gpus = row.count("num_gpu", MAX_GPUS)
    part = row.count("gpu_milli", GPU, default=GPU if gpus else 0)
    if gpus and not part:
        raise row.error("gpu_milli: 0 of a GPU; expected 1 to 1000, or num_gpu 0")
    models = tuple(model for text in row.text("gpu_spec").split("|") if (model := text.strip()))
    return OpenbPod(
        row.name("name"),
        row.count("cpu_milli"),
        row.count("memory_mib"),
        gpus,
        part if gpus else 0,
        models,
        row.time("creation_time"),
        row.time("scheduled_time"),
        row.time("deletion_time"),
    )


def _rows(path: str, needed: tuple[str, ...], read: Callable[[_Row], T]) -> list[T]:
    rows: list[T] = []
    for line, values in _records(path, needed):
        if len(rows) == MAX_ROWS:
            raise WorkloadError(path, f"more than {MAX_ROWS} rows", line)
        rows.append(read(_Row(path, line, values)))
    if not rows:
        raise WorkloadError(path, "there is no row below the header")
    return rows


def _records(path: str, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader((line for _, line in trace_lines(path)), strict=True)
    header: list[str] | None = None
    try:
        for fields in reader:
            if not any(fields):
                continue
            if header is None:
                header = _header(path, fields, needed)
                continue
            if len(fields) > len(header):
                raise WorkloadError(
                    path, f"{len(fields)} fields below a header of {len(header)}", reader.line_num
                )
            yield reader.line_num, dict(zip(header, fields, strict=False))
    except csv.Error as error:
        raise WorkloadError(path, str(error), reader.line_num) from None


def _header(path: str, fields: list[str], needed: tuple[str, ...]) -> list[str]:
    header = [field.strip().lower() for field in fields]
    missing = [column for column in needed if column not in header]
    if missing:
        found = ", ".join(header)[:200]
        raise WorkloadError(path, f"there is no column {', '.join(missing)}; its header has {found}", 1)
    if twice := next((column for column in header if column and header.count(column) > 1), ""):
        raise WorkloadError(path, f"there are two columns {twice[:40]!r}", 1)
    return header


def _number(text: str) -> float:
    """A finite number; what is none is minus infinity, which no bound lets through."""
    try:
        number = float(text)
    except ValueError:
        return -inf
    return number if isfinite(number) else -inf
