"""A comparison as a table."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from stromboli.api.errors import printable
from stromboli.cli.simulate.run_text import plain_table, print_table
from stromboli.simulator.reports.comparison.difference_texts import difference_text, mean_text, p_text
from stromboli.simulator.reports.comparison.run_comparison import Comparison, Entry
from stromboli.simulator.reports.measure_titles import Measure


def print_comparison(out: Console, comparison: Comparison, wide: bool = False) -> None:
    """A row for each measure: the mean of each configuration, and its difference from the first; `wide` shows all."""
    names = [configuration.name for configuration in comparison.configurations]
    titles = [
        _title(name, len(config.runs)) for name, config in zip(names, comparison.configurations, strict=True)
    ]
    with_p = wide and comparison.is_tested
    columns: list[str] = [titles[0]]
    for title in titles[1:]:
        columns += [
            title,
            f"against {names[0]}" if len(names) == 2 else "difference",
            *(["p"] if with_p else []),
        ]
    table = plain_table(("",), (printable(column).replace("[", "\\[") for column in columns))
    for measure, row in comparison.entries.items():
        if wide or (measure.main and _is_worth_showing(row)):
            cells = [Text(mean_text(row[0], measure))]
            for entry in row[1:]:
                cells += [
                    Text(mean_text(entry, measure)),
                    _difference(row[0], entry, measure, comparison.confidence),
                ]
                cells += [Text(p_text(entry))] if with_p else []
            table.add_row(measure.title, *cells)
    print_table(out, table)
    if comparison.is_tested:
        percent = f"{100 * comparison.confidence:g} %"
        kind = "paired by seed" if _any_paired(comparison) else "not paired"
        out.print()
        legend = f"* significant at {percent}, corrected for the number of measures (Holm); {kind}, "
        legend += f"{comparison.test.value} test; in brackets the {percent} confidence interval."
        out.print(legend, markup=False, soft_wrap=True)
    for note in comparison.notes:
        out.print(printable(note), markup=False, soft_wrap=True)


def _title(name: str, runs: int) -> str:
    return name if runs == 1 else f"{name} (n={runs})"


def _is_worth_showing(row: list[Entry]) -> bool:
    """A measure that is 0 or unknown everywhere, such as evictions where nobody evicts, is left to -o wide."""
    return any(entry.mean for entry in row)


def _any_paired(comparison: Comparison) -> bool:
    differences = (entry.difference for row in comparison.entries.values() for entry in row)
    return any(difference is not None and difference.paired for difference in differences)


def _difference(base: Entry, entry: Entry, measure: Measure, confidence: float) -> Text:
    """Green where it is significantly better, red where it is worse."""
    words = difference_text(base, entry, measure, confidence)
    if entry.difference is None or not entry.is_significant(confidence):
        return Text(words + "  ")
    return Text(words, "green" if entry.difference.mean * measure.better > 0 else "red")
