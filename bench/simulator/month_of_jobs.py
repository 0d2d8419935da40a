"""A month of 100,000 jobs in Standard Workload Format: days and nights, powers of two, users' round estimates."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

JOBS = 100_000
PROCESSORS = 1024
LOAD = 0.85
"""Share of the machine that the jobs ask for, so that a queue forms by day and is worked off by night."""
SEED = 1
MONTH = 30 * 86_400
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_SIZE_WEIGHTS = (30, 10, 12, 14, 14, 10, 6, 3, 1)
_ESTIMATES = (300, 900, 3600, 4 * 3600, 12 * 3600, 86_400)
"""What users ask for, in seconds."""


def write_month(path: Path, jobs: int = JOBS, seed: int = SEED) -> None:
    """Write a month's jobs; fewer of them are as many on a part of the month."""
    random = Random(seed)
    length = MONTH * jobs / JOBS
    submits = sorted(_moment(random, length) for _ in range(jobs))
    sizes = random.choices(_SIZES, _SIZE_WEIGHTS, k=jobs)
    runs = [min(math.exp(random.gauss(5.5, 1.8)), 86_400) for _ in range(jobs)]
    area = sum(run * size for run, size in zip(runs, sizes, strict=True))
    stretch = LOAD * PROCESSORS * length / area
    with path.open("w") as file:
        file.write(f"; Version: 2.2\n; MaxJobs: {jobs}\n; MaxNodes: {PROCESSORS}\n; MaxProcs: {PROCESSORS}\n")
        file.write(f"; Note: generated, seed {seed}\n")
        for number, (submit, size, run) in enumerate(zip(submits, sizes, runs, strict=True), 1):
            seconds = min(max(1, round(run * stretch)), 86_400)
            estimate = _estimate(random, seconds)
            user = 1 + random.randrange(50)
            file.write(
                f"{number} {submit} -1 {seconds} {size} -1 -1 {size} {estimate} -1 1 {user} 1 -1 1 1 -1 -1\n"
            )


def _moment(random: Random, length: float) -> int:
    """More jobs come by day than by night."""
    while True:
        moment = random.random() * length
        if random.random() < 0.6 - 0.4 * math.cos(2 * math.pi * moment / 86_400):
            return int(moment)


def _estimate(random: Random, seconds: int) -> int:
    """A round time in which the job ends for certain, often a generous one."""
    enough = [estimate for estimate in _ESTIMATES if estimate >= seconds]
    return random.choice(enough[:3])
