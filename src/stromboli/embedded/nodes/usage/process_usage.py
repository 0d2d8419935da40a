"""What the processes of containers use, by `/proc`: those of their sessions, and whatever those started."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Reading(NamedTuple):
    """CPU seconds since the start, and bytes of memory now."""

    cpu_seconds: float
    memory: int


class Process(NamedTuple):
    """A line of `/proc/PID/stat`; CPU time with that of children that have ended."""

    parent: int
    session: int
    cpu_seconds: float
    memory: int


def read_processes(leaders: Collection[int]) -> dict[int, Reading]:
    """By the process that leads the session of a container; empty where there is no `/proc`."""
    if not leaders or not PROC.is_dir():
        return {}
    processes = {
        int(name): process
        for name in os.listdir(PROC)
        if name.isdecimal() and (process := _read(name)) is not None
    }
    owners: dict[int, int] = {}
    readings: dict[int, Reading] = {}
    for pid, process in processes.items():
        leader = _owner(pid, processes, frozenset(leaders), owners)
        if leader:
            cpu, memory = readings.get(leader, (0.0, 0))
            readings[leader] = Reading(cpu + process.cpu_seconds, memory + process.memory)
    return readings


def _owner(pid: int, processes: dict[int, Process], leaders: frozenset[int], owners: dict[int, int]) -> int:
    """The leader to which a process belongs by its session or that of a parent; 0 for none."""
    path = []
    owner = 0
    while pid in processes:
        if pid in owners or processes[pid].session in leaders:
            owner = owners.get(pid, processes[pid].session)
            break
        owners[pid] = 0  # also ends a loop, as processes may change while they are read
        path.append(pid)
        pid = processes[pid].parent
    owners.update(dict.fromkeys(path, owner))
    return owner


def _read(pid: str) -> Process | None:
    with suppress(OSError, ValueError, IndexError):  # it has ended
        fields = (PROC / pid / "stat").read_bytes().rpartition(b")")[2].split()
        cpu = sum(int(field) for field in fields[11:15]) / _TICKS
        return Process(int(fields[1]), int(fields[3]), cpu, int(fields[21]) * _PAGE)
    return None
