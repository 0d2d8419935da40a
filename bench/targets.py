"""What to compare with: a real Volcano's seconds, and what we want to reach.

Volcano's were measured in process (no API server) on two cores of the same kind as ours; they are constants here.
"""

from typing import NamedTuple

MIXED = 3.0
MIXED_SINGLES = 2.0
"""So many times its uniform one a mixed workload may cost."""
CORNER = 2.0
"""So many times its plain workload a corner of the policy may cost."""
GUARANTEED = 1.1
"""So many times its plain workload one with Guaranteed pods may cost."""


class Target(NamedTuple):
    """Seconds of a whole cycle with the state loaded, and MiB of memory; None where nobody says."""

    volcano: str = ""
    """As published; a range where it varied."""
    reach: float | None = None
    aim: float | None = None
    memory_reach: float | None = None
    memory_aim: float | None = None
    load_reach: float | None = None
    """Seconds from the file to the standing model."""
    factor: float | None = None
    """Times the processor time of the workload that it is compared with; of later cycles, times their wall time."""

    @property
    def volcano_seconds(self) -> float | None:
        """The lower end: a comparison should not flatter us."""
        return float(self.volcano.split("-")[0]) if self.volcano else None


TARGETS = {
    "W1-1x10000-1000n": Target("37", 1.0, 0.3),
    "W2-500x20-1000n": Target("31", 1.2, 0.5),
    "W2-500x20-5000n": Target("42", 1.5, 0.6),
    "W3-10000x1-1000n": Target("32", 2.0, 1.0),
    "W3-10000x1-5000n": Target("44", 2.5, 1.0),
    "W4-idle-5000n-50000p": Target("0.8-1.5", 0.010, 0.001, 512, 307),
    "W5-full-5000n-500x20": Target("1.7", 0.2, 0.05, 512, 307),
    "W5f-fragmented-5000n-500x20": Target("6.0", 0.3, 0.1, 512, 307),
    "W5-full-5000n-500x20-evict": Target("168", 2.0, 0.3, 512, 307),
    "W5f-fragmented-5000n-500x20-evict": Target("198", 3.0, 0.5, 512, 307),
    "W6-preempt-1000n-50x20": Target("2.7", 0.5, 0.2),
    "W6-preempt-1000n-50x20-gentle": Target("2.7", 0.15),
    "W7-reclaim-1000n-50x20": Target("1.0", 0.3, 0.1),
    "W7-reclaim-1000n-50x20-gentle": Target("1.0", 0.15),
    "W8-gpu-topology-1000n-60x16": Target("8.5", 0.2, 0.1),
    "W9-gpu-tiers-5000n": Target("129-154", 2.0, 0.5),
    "W9f-gpu-tiers-5000n-300-gangs": Target(reach=2.0, aim=0.5),
    "W11-local-claims-5000n-50x20": Target(reach=2.0, aim=0.5),
    "W11-provisioned-claims-5000n-50x20": Target(reach=2.0, aim=0.5),
    "M-5000n-100000p": Target(memory_reach=600),
    "L-2000x20-20000n": Target(reach=1.2),
    "L-2000x20-20000n-mixed": Target(reach=3.5),
    "U-2000x20-20000n": Target(reach=0.005),
    "U-2000x20-20000n-evict": Target(reach=0.005),
    "M-20000n-200000p": Target(reach=0.0002, memory_reach=400, load_reach=4.0),
    "W1-1x10000-1000n-mixed": Target(factor=MIXED),
    "W2-500x20-1000n-mixed": Target(factor=MIXED),
    "W2-500x20-5000n-mixed": Target(factor=MIXED),
    "W3-10000x1-1000n-mixed": Target(factor=MIXED_SINGLES),
    "W3-10000x1-5000n-mixed": Target(factor=MIXED_SINGLES),
    "E-gangpreempt-4000n-200-gangs": Target(reach=0.5),
    "E-gangpreempt-4000n-200-gangs-fewest": Target(reach=0.5),
    "E-reclaim-2000-queues-50-gangs": Target(reach=0.3),
    "E-reclaim-200-queues-of-one": Target(reach=0.5),
    "E-reclaim-200-queues-of-one-fewest": Target(reach=1.0),
    "E-gangreclaim-2000-queues-50-gangs": Target(reach=2.0),
    "C-capacity-500-queues-500x20-1000n": Target(factor=CORNER),
    "C-drf-preemptable-1000n-50x20": Target(factor=CORNER),
    "C-shuffle-5000n-50000p": Target(factor=CORNER),
    "C-gate-5000n-500x20-urgent": Target(factor=CORNER),
    "W1-1x10000-1000n-guaranteed": Target(factor=GUARANTEED),
    "W2-500x20-1000n-guaranteed": Target(factor=GUARANTEED),
    "W3-10000x1-1000n-guaranteed": Target(factor=GUARANTEED),
    "W6-preempt-1000n-50x20-guaranteed": Target(factor=GUARANTEED),
    "W7-reclaim-1000n-50x20-guaranteed": Target(factor=GUARANTEED),
    "L-2000x20-20000n-guaranteed": Target(factor=GUARANTEED),
    "U-2000x20-20000n-arriving-guaranteed": Target(factor=GUARANTEED),
    "U-2000x20-20000n-evict-arriving-guaranteed": Target(factor=GUARANTEED),
    "U-2000x20-20000n-arriving-guaranteed-numa": Target(factor=GUARANTEED),
    "U-2000x20-20000n-evict-arriving-guaranteed-numa": Target(factor=GUARANTEED),
}


def mark(value: float, reach: float | None, aim: float | None) -> str:
    """Where a figure stands: at the aim, within reach, or how far it misses."""
    if aim is not None and value <= aim:
        return "aim"
    if reach is None:
        return ""
    return "reach" if value <= reach else f"MISSED by {value / reach - 1:.0%}"
