"""Means and differences as people read them."""

from __future__ import annotations

from stromboli.simulator.reports.comparison.run_comparison import Entry
from stromboli.simulator.reports.measure_titles import NONE, Measure, Unit, spread_text, value_text


def mean_text(entry: Entry, measure: Measure) -> str:
    """The mean over runs, with the standard deviation where there are several."""
    if entry.mean is None or not entry.deviation:
        return value_text(entry.mean, measure.unit)
    return spread_text(entry.mean, entry.deviation, measure.unit)


def difference_text(base: Entry, entry: Entry, measure: Measure, confidence: float) -> str:
    """Relative to the first, in points where both are shares, plain where the first is 0."""
    difference = entry.difference
    if difference is None:
        return NONE
    if difference.mean == 0 and not difference.low and not difference.high:
        return "the same"
    if measure.unit is Unit.SHARE:
        scale, unit = 100.0, " points"
    elif base.mean:
        scale, unit = 100.0 / abs(base.mean), " %"
    else:
        return f"{'+' if difference.mean > 0 else ''}{value_text(difference.mean, measure.unit)}"
    words = f"{difference.mean * scale:+.1f}{unit}"
    if difference.low is not None and difference.high is not None:
        words += f" [{difference.low * scale:+.1f}, {difference.high * scale:+.1f}]"
    return f"{words} *" if entry.is_significant(confidence) else words


def p_text(entry: Entry) -> str:
    """The corrected p value."""
    if entry.corrected_p is None:
        return NONE
    return "<0.001" if entry.corrected_p < 0.001 else f"{entry.corrected_p:.3f}"
