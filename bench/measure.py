"""One workload in one process: load it through the real decoding, run cycles, tell what they took."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct, convert, field, json

from bench.workload import Workload
from bench.worlds import arrival
from stromboli.api.manifests.case_files import read_case
from stromboli.api.manifests.manifest_reader import Manifests
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, Evict
from stromboli.extensions import load_catalog
from stromboli.model.intake.object_intake import Intake
from stromboli.policy.policy import load_policy
from stromboli.simulator import cluster_loading

NOW = 1_793_534_400.0
"""The clock of the first cycle: 2026-11-01T12:00:00Z."""


class Measurement(Struct):
    """What was seen: seconds, counts, MiB."""

    load: float
    """Reading, decoding and the standing model."""
    cycle: float
    """The first cycle, from open to close."""
    cpu: float
    """The same in seconds of processor time: what it would take on a machine with nothing else to do."""
    phases: dict[str, float]
    """Its parts: open, each action, close."""
    later: list[float]
    """The cycles after it: with nothing new, or with one new pod each."""
    decisions: int
    binds: int
    evictions: int
    held: int
    """Pods held for room that is being freed when the first cycle ends."""
    loaded_mib: float
    """Memory in use once loaded."""
    peak_mib: float
    digest: str
    """What all cycles bound, evicted and nominated, in order, as a short hash."""
    placed: dict[str, str] = field(default_factory=dict)
    """Pod to node, where that was asked for."""
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """What plugins got wrong, each message once; a lost cycle first."""


class Loaded(Struct):
    """A cluster and its engine, ready to run."""

    intake: Intake
    engine: Engine
    warnings: list[str]
    seconds: float

    def arrive(self, number: int) -> None:
        """Let the pod come that comes before a cycle."""
        for manifest in arrival(number):
            self.intake.put(convert(manifest, Pod if manifest["kind"] == "Pod" else PodGroup))


def load(path: str) -> Loaded:
    """A case file as a cluster, loaded the way `stromboli plan` does it, ready for a cycle."""
    config = ""

    def open_manifests() -> Manifests:
        nonlocal config
        case = read_case(path)
        config = case.config or ""
        return case.objects

    loaded = cluster_loading.load(open_manifests)
    catalog = load_catalog()
    policy = load_policy(config, catalog)
    return Loaded(
        loaded.intake, Engine(policy, catalog, time.perf_counter), list(policy.warnings), loaded.seconds
    )


def measure(path: str, cycles: int = 1, placed: bool = False, arriving: bool = False) -> Measurement:
    """Load a case file and run some cycles; nobody carries decisions out, and between cycles at most one pod comes."""
    ready = load(path)
    loaded_mib = memory_now()
    outcomes: list[Outcome] = []
    spent: list[float] = []
    cpu: list[float] = []
    for number in range(cycles):
        if arriving and number:
            ready.arrive(number)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        outcomes.append(ready.engine.cycle(ready.intake.cluster, NOW + number))
        spent.append(time.perf_counter() - begin)
        cpu.append(time.process_time() - cpu_begin)
    first = outcomes[0]
    binds = [decision for decision in first.decisions if isinstance(decision, Bind)]
    return Measurement(
        load=ready.seconds,
        cycle=spent[0],
        cpu=cpu[0],
        phases=first.seconds,
        later=spent[1:],
        decisions=len(first.decisions),
        binds=len(binds),
        evictions=sum(isinstance(decision, Evict) for decision in first.decisions),
        held=len(first.pipelined),
        loaded_mib=loaded_mib,
        peak_mib=memory_peak(),
        digest=_digest(outcomes),
        placed={decision.key: decision.node for decision in binds} if placed else {},
        warnings=ready.warnings,
        failures=_failures(outcomes) + (_not_bound(outcomes[1:]) if arriving else []),
    )


def _digest(outcomes: list[Outcome]) -> str:
    digest = hashlib.sha256()
    for number, outcome in enumerate(outcomes):
        moves = [
            (type(decision).__name__, decision.key, decision.node)
            for decision in outcome.decisions
            if isinstance(decision, Bind | Evict)
        ]
        digest.update(repr((number, moves, sorted(outcome.pipelined.items()))).encode())
    return digest.hexdigest()[:16]


def _not_bound(outcomes: list[Outcome]) -> list[str]:
    """The cycles that did not bind the pod that came before them."""
    binds = [sum(isinstance(each, Bind) for each in outcome.decisions) for outcome in outcomes]
    return [
        f"cycle {number} bound {count} pods instead of 1"
        for number, count in enumerate(binds, 2)
        if count != 1
    ]


def _failures(outcomes: list[Outcome]) -> list[str]:
    lost = [f"the cycle is lost: {outcome.lost.message}" for outcome in outcomes if outcome.lost]
    return list(
        dict.fromkeys(
            lost + [failure.message for outcome in outcomes for failure in outcome.session.failures]
        )
    )


def measure_apart(workload: Workload, repeat: int = 1, placed: bool = False) -> list[Measurement]:
    """The same in fresh processes, one after the other, so that memory is the workload's own."""
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as folder:
        path = Path(folder) / "case.json"
        with path.open("wb") as stream:
            workload.write(stream)
        command = [sys.executable, "-m", "bench", "measure", str(path), "--cycles", str(workload.cycles)]
        if placed:
            command.append("--placed")
        if workload.arriving:
            command.append("--arriving")
        root = Path(__file__).parents[1]
        return [
            json.decode(
                subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout,
                type=Measurement,
            )
            for _ in range(repeat)
        ]


def memory_peak() -> float:
    """The most memory this program ever held, in MiB; not what its parent held before it began."""
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory_now() -> float:
    return _status("VmRSS")


def _status(name: str) -> float:
    if not os.path.exists("/proc/self/status"):
        return 0.0
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name + ":"))
