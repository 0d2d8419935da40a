"""All parts together: which runs are needed, their results, and what must hold of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.run import machine, table
from bench.simulator import gpu_packing, month_of_jobs, trace_backfill
from bench.simulator.checks import Check, Findings
from bench.simulator.simulator_runs import RunFailed, RunResult, SimulatorRun, run_all
from bench.simulator.trace_backfill import TraceRun

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("STROMBOLI_DATA") or ROOT.parent / "shared" / "data")
KEPT = ROOT / "build" / "bench-simulator"
PARTS = ("packing", "backfill", "month")
LONGEST_MONTH_S = 300.0
QUICK_MONTH = 2_000
"""Jobs."""


def run(parts: Sequence[str], quick: bool, kept: Path, cores: int) -> list[Findings]:
    """Do all runs that the parts need, and say what came of them."""
    series = gpu_packing.all_series(DATA, gpu_packing.QUICK if quick else gpu_packing.PackingSizes())
    traces = trace_backfill.trace_runs(DATA, quick)
    month = month_run(kept, QUICK_MONTH if quick else month_of_jobs.JOBS)
    wanted: list[SimulatorRun] = []
    if "backfill" in parts:
        wanted += [each.run for each in traces]
    if "month" in parts:
        wanted.append(month.run)
    if "packing" in parts:
        wanted += [each for of_it in series for each in of_it.runs.values()]
    results = run_all(wanted, kept, cores)
    findings: list[Findings] = []
    if "packing" in parts:
        findings += gpu_packing.findings(series, DATA, results)
    if "backfill" in parts:
        findings.append(trace_backfill.findings("Backfill on traces", traces, results))
    if "month" in parts:
        title = f"A month of jobs on {month_of_jobs.PROCESSORS} processors, seed {month_of_jobs.SEED}"
        findings.append(trace_backfill.findings(title, [month], results))
        findings.append(month_speed(month, results))
    return findings


def month_run(kept: Path, jobs: int) -> TraceRun:
    """A month of jobs, which is generated if it is not there yet."""
    path = kept / f"month-{jobs}-seed-{month_of_jobs.SEED}.swf"
    if not path.exists():
        kept.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        month_of_jobs.write_month(partial, jobs)
        partial.replace(path)
    command = SimulatorRun(path.stem, ("--swf", str(path), "--backfill", "easy"), (path,))
    return TraceRun(path, "easy", command)


def month_speed(month: TraceRun, results: Mapping[SimulatorRun, RunResult]) -> Findings:
    seconds = results[month.run].cpu_s
    speed = Check(
        "month: processor seconds",
        f"{seconds:.0f}",
        f"at most {LONGEST_MONTH_S:g}",
        seconds <= LONGEST_MONTH_S,
    )
    return Findings("", (), [speed])


def report(findings: Sequence[Findings], markdown: bool) -> str:
    """The tables, and below them what does not hold."""
    lines = [machine()]
    for each in findings:
        lines += ["", each.title, "", *table(each.rows, markdown)] if each.rows else []
    checks = [check for each in findings for check in each.checks]
    missed = [check for check in checks if not check.holds]
    lines += ["", f"{len(checks) - len(missed)} of {len(checks)} checks hold"]
    lines += [f"MISSED: {check.what}: {check.figure}, must be {check.must_be}" for check in missed]
    return "\n".join(lines)


def main(parts: Sequence[str], quick: bool, kept: Path | None, cores: int | None, markdown: bool) -> int:
    """Run, print, and say by the exit status whether everything holds."""
    needs_data = "packing" in parts or ("backfill" in parts and not quick)
    if needs_data and not DATA.is_dir():
        print(
            f"no traces in {DATA}; set STROMBOLI_DATA to the folder that has swf/ and openb/", file=sys.stderr
        )
        return 2
    try:
        findings = run(parts, quick, kept or KEPT, cores or os.cpu_count() or 1)
    except RunFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(report(findings, markdown))
    return int(any(not check.holds for each in findings for check in each.checks))
