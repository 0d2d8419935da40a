"""Checks of arguments beyond their type, for `arg`, each with its sentence."""

from collections.abc import Callable

from stromboli.api.go_scalars import duration


def at_least(least: float) -> Callable[[float], str | None]:
    problem = f"must be at least {least}" if least else "must not be negative"
    return lambda value: None if value >= least else problem


def between(least: float, most: float) -> Callable[[float], str | None]:
    return lambda value: None if least <= value <= most else f"must be from {least} to {most}"


def duration_like(example: str, above_zero: bool = False) -> Callable[[str], str | None]:
    """A duration that is not negative; the sentence gives an example."""
    problem = f"must be a duration {'above zero ' if above_zero else ''}such as {example}"

    def check(text: str) -> str | None:
        seconds = duration(text)
        return None if seconds is not None and (seconds > 0 or (seconds == 0 and not above_zero)) else problem

    return check
