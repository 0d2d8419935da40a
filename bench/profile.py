"""Where the time of one cycle goes."""

import cProfile
import pstats
import tempfile

from bench.measure import NOW, load
from bench.workload import Workload


def profile(workload: Workload, cycle: int, sort: str, top: int) -> None:
    """Run some cycles and print the functions that the last of them spent its time in."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        workload.write(file)
        file.flush()
        ready = load(file.name)
    for warning in ready.warnings:
        print(f"WARNING: {warning}")
    for number in range(cycle - 1):
        ready.engine.cycle(ready.intake.cluster, NOW + number)
    watch = cProfile.Profile()
    watch.enable()
    ready.engine.cycle(ready.intake.cluster, NOW + cycle - 1)
    watch.disable()
    pstats.Stats(watch).strip_dirs().sort_stats(sort).print_stats(top)
