"""What a reader of a comparison has to know before trusting it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stromboli.simulator.reports.comparison.configurations import Configuration


def comparison_notes(configurations: Sequence[Configuration], is_sampled: bool) -> list[str]:
    """Runs that are too few, not alike, or did not end well."""
    notes = [*_numbers_of_runs(configurations)]
    if not notes and not is_sampled:
        notes.append(
            "Seeds make no difference to these runs: differences are exact, and there is nothing to test."
        )
    workloads = {
        str(each.settings.get("workload")) for each in configurations if "workload" not in each.mixed
    }
    if len(workloads) > 1:
        notes.append(f"The runs are of different workloads: {', '.join(sorted(workloads))}.")
    for configuration in configurations:
        notes += _notes_of(configurations[0], configuration)
    return notes


def _numbers_of_runs(configurations: Sequence[Configuration]) -> Iterator[str]:
    alone = [configuration.name for configuration in configurations if len(configuration.runs) < 2]
    if len(alone) == len(configurations):
        yield "One run each: nothing can be tested. Give runs with several seeds of each configuration."
    elif alone:
        yield f"One run only, so it cannot be tested: {', '.join(alone)}."


def _notes_of(base: Configuration, configuration: Configuration) -> Iterator[str]:
    name, runs = configuration.name, len(configuration.runs)
    if configuration.mixed:
        yield f"{name}: its runs differ by more than the seed: {', '.join(configuration.mixed)}."
    shared = base.seeds & configuration.seeds
    if 1 < len(shared) < max(runs, len(base.runs)):
        both = f"the {len(shared)} seeds that it shares with {base.name}"
        yield f"{name}: differences are of {both}, means of all runs."
    if interrupted := sum(run.partial for run in configuration.runs):
        yield f"{name}: {interrupted} of {runs} runs were interrupted."
    if failed := sum(run.failed for run in configuration.runs):
        yield f"{name}: something failed in {failed} of {runs} runs."
