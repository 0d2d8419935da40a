"""What a process has cost so far, from `/proc`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Processor time of a process with all its threads, in user and in kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory(pid: int, what: str = "VmRSS") -> float:
    """Resident MiB: `VmRSS` now, `VmHWM` at most; 0 if the process has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(what + ":")), 0.0)
    return 0.0


class Costs:
    """Processor time of some processes from now on."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._begin = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        self._samples: list[tuple[float, dict[str, float]]] = []

    def spent(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) - self._begin[name] for name, pid in self._pids.items()}

    def sample(self) -> None:
        """Remember what was spent up to now."""
        self._samples.append((time.time(), self.spent()))

    def between(self, begin: float, end: float) -> dict[str, float]:
        """Seconds spent by each between two moments, as far as the samples tell."""
        before, after = self.until(begin), self.until(end)
        return {name: after[name] - before[name] for name in after}

    def until(self, moment: float) -> dict[str, float]:
        """Seconds spent by each up to a moment."""
        last, total = 0.0, dict.fromkeys(self._pids, 0.0)
        for at, spent in self._samples:
            if at >= moment:
                share = (moment - last) / (at - last) if last else 1.0
                return {name: total[name] + share * (spent[name] - total[name]) for name in total}
            last, total = at, spent
        return total
