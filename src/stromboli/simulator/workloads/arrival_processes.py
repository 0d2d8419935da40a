"""When jobs are submitted: at fixed intervals, at random, by the hour of the day and the day of the week, in bursts."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from random import Random
from typing import Annotated

from msgspec import Meta, Struct

from stromboli.simulator.workloads.distributions import Amount, Span, Weight, check_amount, sampled
from stromboli.simulator.workloads.time_spans import seconds

_HOUR = 3600.0
_HOURS_OF_A_WEEK = 168
_MOST_IN_A_BURST = 100_000


class _Process(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="process", rename="camel", kw_only=True
):
    interval: Span
    """From one to the next, on average."""

    def moments(self, random: Random) -> Iterator[float]:
        """Without end; in seconds since the process began."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise a `ValueError` for values that a type does not refuse."""
        if seconds(self.interval) <= 0:
            raise ValueError(f"interval {self.interval} is not above 0")

    def _gap(self, random: Random) -> float:
        return -seconds(self.interval) * log(1 - random.random())


class Fixed(_Process, frozen=True, tag="fixed"):
    """One after each interval, the first at 0; an interval of 0 is all at once."""

    def moments(self, random: Random) -> Iterator[float]:
        interval, number = seconds(self.interval), 0
        while True:
            yield number * interval
            number += 1

    def check(self) -> None:
        seconds(self.interval)


class Poisson(_Process, frozen=True, tag="poisson"):
    """At random, independent of each other."""

    def moments(self, random: Random) -> Iterator[float]:
        moment = 0.0
        while True:
            moment += self._gap(random)
            yield moment


class Cycle(_Process, frozen=True, tag="cycle"):
    """At random, at some hours and on some days more often than at others; it begins on a Monday at midnight.

    The interval is the mean over a week.
    """

    day: Annotated[tuple[Weight, ...], Meta(min_length=24, max_length=24)] = (1.0,) * 24
    """How busy each hour is, in relation to the others."""
    week: Annotated[tuple[Weight, ...], Meta(min_length=7, max_length=7)] = (1.0,) * 7
    """The same for each day, Monday first."""

    def moments(self, random: Random) -> Iterator[float]:
        hours = [of_day * of_hour for of_day in self.week for of_hour in self.day]
        busiest, mean = max(hours), sum(hours) / _HOURS_OF_A_WEEK
        moment = 0.0
        while True:
            moment += self._gap(random) * mean / busiest
            if random.random() * busiest < hours[int(moment / _HOUR) % _HOURS_OF_A_WEEK]:
                yield moment

    def check(self) -> None:
        super().check()
        if not any(self.day) or not any(self.week):
            raise ValueError("day or week has no weight above 0")


class Bursts(_Process, frozen=True, tag="bursts"):
    """Several at a time; the interval is from burst to burst, at random."""

    size: Amount
    """Jobs of a burst."""
    gap: Span = 0.0
    """Between the jobs of a burst."""

    def moments(self, random: Random) -> Iterator[float]:
        moment, gap = 0.0, seconds(self.gap)
        while True:
            moment += self._gap(random)
            count = min(max(round(sampled(self.size, random)), 1), _MOST_IN_A_BURST)
            yield from (moment + number * gap for number in range(count))
            moment += (count - 1) * gap

    def check(self) -> None:
        super().check()
        seconds(self.gap)
        check_amount(self.size)


Process = Fixed | Poisson | Cycle | Bursts
