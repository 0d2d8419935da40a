"""The answer to what would happen if a job were submitted, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from math import isfinite
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stromboli.api.errors import printable
from stromboli.cli.cli_errors import print_warning
from stromboli.engine.explanation.wait_explanation import WaitExplanation
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.what_if.assumptions import Assumptions
from stromboli.simulator.what_if.future_world import GRACE_PERIOD
from stromboli.simulator.what_if.run_differences import Eviction, Shift
from stromboli.simulator.what_if.run_times import Basis
from stromboli.simulator.what_if.what_if_answer import Answer, SubmittedJobAnswer

MOST_ROWS = 20
"""Lines of a list, unless it is to be wide; JSON has them all."""
NEVER = "never"
UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
LEAVING = f"{{is}} being deleted: taken to be gone in {GRACE_PERIOD:.0f}s"
Item = TypeVar("Item")


class Clock:
    """Moments as people read them: clock time, with the date if it is another day, and how long from now."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._today = datetime.fromtimestamp(now, UTC).date()

    def time(self, seconds: float | None) -> str:
        """`14:05:00`, or `2026-11-02 14:05:00`."""
        if seconds is None:
            return NEVER
        try:
            moment = datetime.fromtimestamp(self._now + seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return "a time beyond the year 9999"
        return moment.strftime("%H:%M:%S" if moment.date() == self._today else "%Y-%m-%d %H:%M:%S")

    def full(self, seconds: float | None) -> str:
        """`14:05:00 (in 2h5m)`."""
        if seconds is None:
            return NEVER
        if seconds < 1:
            return f"{self.time(seconds)} (now)"
        return f"{self.time(seconds)} (in {span_text(seconds)})"

    @property
    def now(self) -> str:
        return datetime.fromtimestamp(self._now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class AnswerText:
    """Prints an answer; wide with every line, node and reason."""

    def __init__(self, out: Console, answer: Answer, wide: bool = False) -> None:
        self._out = out
        self._answer = answer
        self._wide = wide
        self._clock = Clock(answer.now)

    def print(self) -> None:
        answer = self._answer
        for warning in answer.warnings:
            print_warning(printable(warning))
        for failure in answer.failures:
            print_warning(printable(failure))
        self._line(f"{answer.cluster}, {self._clock.now}, {answer.policy}")
        if answer.partial:
            self._line("Interrupted: what is not known yet is shown as never.", "bold")
        for job in answer.jobs:
            self._print_job(job)
        self._print_shifts("Delayed", answer.others.later, "Later by")
        self._print_shifts("Earlier", answer.others.earlier, "Earlier by")
        self._print_evictions(answer.others.evictions)
        if not (answer.others.later or answer.others.evictions):
            self._line("Nobody is delayed, and nobody is evicted.")
        if answer.others.never:
            self._line(f"Never start, with it or without it: {first_few(answer.others.never)}")
        self._title("Assumptions")
        for sentence in assumption_sentences(answer.assumptions):
            self._line(f"  {sentence}")

    # -- what is submitted

    def _print_job(self, job: SubmittedJobAnswer) -> None:
        pods = f"{job.pods} pod{'s' if job.pods != 1 else ''}, queue {job.queue}"
        if job.started is None:
            self._title(f"{job.name} does not start ({pods})")
            self._print_bound(job)
        else:
            self._title(f"{job.name} starts at {self._clock.full(job.started)} ({pods})")
            self._line(f"  {self._end_sentence(job)}")
            self._line(f"  on {self._places(job)}")
        self._print_waits(job)

    def _end_sentence(self, job: SubmittedJobAnswer) -> str:
        end = self._clock.full(job.ended)
        match job.run_time.basis:
            case _ if job.ended is None and not isfinite(job.run_time.seconds):
                return "ends nobody knows when: it has no time limit"
            case Basis.TIME_LIMIT:
                return f"ends by {end}, its time limit of {span_text(job.run_time.seconds)}"
            case Basis.ASSUMED:
                return f"ends at {end}, if it runs {span_text(job.run_time.seconds)} as assumed"
            case _:
                return f"ends at {end}"

    def _places(self, job: SubmittedJobAnswer) -> str:
        nodes = Counter(job.placement.values())
        parts = [f"{node} ({count})" if count > 1 else node for node, count in nodes.items()]
        return ", ".join(parts) if self._wide else first_few(parts)

    def _print_bound(self, job: SubmittedJobAnswer) -> None:
        """What can be said of a job that does not start as far as limits go."""
        if job.blockers:
            self._line(f"  it starts as soon as {self._blockers(job.blockers)}")
        if job.not_before is not None:
            self._line(f"  not before {self._clock.full(job.not_before)}, if the others use up their limits")
        elif not job.waits:
            self._line("  it never gets its turn")

    def _blockers(self, jobs: list[str]) -> str:
        """`default/a ends, which has no time limit`."""
        over = set(self._answer.assumptions.over_limit)
        if len(jobs) == 1:
            why = "is over its time limit" if jobs[0] in over else "has no time limit"
            return f"{jobs[0]} ends, which {why}"
        why = "have no time limit" if not over.intersection(jobs) else "have no time limit or are over it"
        return f"enough of these end, which {why}: {', '.join(jobs) if self._wide else first_few(jobs)}"

    def _print_waits(self, job: SubmittedJobAnswer) -> None:
        untils = [*(wait.since for wait in job.waits[1:]), job.started]
        for wait, until in self._shown(list(zip(job.waits, untils, strict=False))):
            explanation = wait.explanation
            moment = f"until {self._clock.time(until)}" if until is not None else "and then"
            if len(job.waits) == 1 and until is None:
                moment = "it waits"
            self._line(f"  {moment}: {printable(_because(explanation))}")
            if self._wide or until is None:
                self._line(f"      -> {printable(explanation.hint)}")
        if job.after:
            ends = [f"{name} ({self._clock.time(end)})" for name, end in reversed(job.after.items())]
            self._line(f"  its room comes from {', '.join(ends) if self._wide else first_few(ends)}")
        if job.ahead:
            starts = "starts" if job.ahead == 1 else "start"
            self._line(f"  {_counted(job.ahead, 'other job')} of those that wait {starts} before it")

    # -- the others

    def _print_shifts(self, title: str, shifts: Sequence[Shift], by: str) -> None:
        if not shifts:
            return
        self._title(title)
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for column in (
            "  Job",
            "Queue",
            "Starts",
            "Without it",
            by,
            *(("Ends", "Without it") if self._wide else ()),
        ):
            table.add_column(column, no_wrap=True)
        for shift in self._shown(shifts):
            table.add_row(f"  {printable(shift.job)}", printable(shift.queue), *self._shift_cells(shift))
        self._out.print(table, soft_wrap=True)
        self._print_rest(shifts)

    def _shift_cells(self, shift: Shift) -> list[str]:
        clock = self._clock
        first, second = clock.time(shift.start_with), clock.time(shift.start_without)
        if shift.ran_already:
            second = "runs now"
        elif shift.start_delay == 0:  # only pods beyond its minimum start otherwise
            first = f"{clock.time(shift.complete_with)} (all pods)"
            second = clock.time(shift.complete_without)
        cells = [first, second, _by(shift)]
        return [*cells, clock.time(shift.end_with), clock.time(shift.end_without)] if self._wide else cells

    def _print_evictions(self, evictions: Sequence[Eviction]) -> None:
        if not evictions:
            return
        self._title("Evicted")
        for eviction in self._shown(evictions):
            whom = f" for {eviction.beneficiary}" if eviction.beneficiary else ""
            again = (
                f"runs again from {self._clock.full(eviction.restart)}"
                if eviction.restart is not None
                else ("does not run again")
            )
            self._line(
                f"  {printable(eviction.pod)} leaves {eviction.node} at {self._clock.time(eviction.time)}{whom}, "
                f"loses {span_text(eviction.lost_work)} of work and {again}"
            )
        self._print_rest(evictions)

    # -- lines

    def _shown(self, items: Sequence[Item]) -> list[Item]:
        return list(items if self._wide else islice(items, MOST_ROWS))

    def _print_rest(self, items: Sequence[object]) -> None:
        if len(items) > MOST_ROWS and not self._wide:
            self._line(f"  and {len(items) - MOST_ROWS} more (-o wide has them all)")

    def _title(self, text: str) -> None:
        self._line(text, "bold")

    def _line(self, text: str, style: str = "") -> None:
        self._out.print(Text(text, style), soft_wrap=True)


def _because(explanation: WaitExplanation) -> str:
    reason, message = explanation.reason, explanation.message
    return message if message.startswith(reason) else f"{reason}: {message}"


def _by(shift: Shift) -> str:
    """How much later or earlier it starts, or, if it runs already, ends."""
    never = (shift.start_with is None) != (shift.start_without is None)
    if never or (shift.start_delay == 0 and shift.complete_delay is None):
        return "for ever" if shift.worsening > 0 else "at all"
    moved = shift.end_delay if shift.ran_already else shift.start_delay or shift.complete_delay
    return "unknown" if moved is None else span_text(abs(moved))


def assumption_sentences(rests_on: Assumptions) -> list[str]:
    """What an answer rests on."""
    sentences = [
        (rests_on.limited, "end{s} at {its} time limit; what ends sooner makes room sooner"),
        (rests_on.known, "run{s} as long as the annotation stromboli.sh/run-time says"),
        (rests_on.unknown_start, "do{es} not say since when: taken to have started now"),
    ]
    unlimited = [
        (rests_on.unlimited, "running job", "{has} no time limit"),
        (rests_on.over_limit, "running job", "{is} over {its} time limit"),
        (rests_on.waiting_unlimited, "waiting job", "{has} no time limit"),
    ]
    others = (
        f"{_counted(rests_on.other_pods, 'pod')} of no job {'stays' if rests_on.other_pods == 1 else 'stay'}"
    )
    return [
        *(f"{_told(count, 'running job', text)}." for count, text in sentences if count),
        *(
            f"{_told(len(jobs), noun, text)}: {_then(rests_on.assumed, len(jobs))} ({first_few(jobs)})."
            for jobs, noun, text in unlimited
            if jobs
        ),
        *(
            [f"{others} where {'it is' if rests_on.other_pods == 1 else 'they are'}."]
            if rests_on.other_pods
            else []
        ),
        *([f"{_told(rests_on.leaving, 'pod', LEAVING)}."] if rests_on.leaving else []),
        "Nothing else is submitted, and no node fails.",
    ]


def _told(count: int, noun: str, text: str) -> str:
    """`2 running jobs have no time limit`."""
    alone = count == 1
    forms = {"s": "s" if alone else "", "es": "es" if alone else "", "its": "its" if alone else "their"}
    forms |= {"has": "has" if alone else "have", "is": "is" if alone else "are"}
    return f"{_counted(count, noun)} {text.format(**forms)}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _then(assumed: float | None, count: int) -> str:
    """What is taken to become of jobs without a limit."""
    if assumed is None:
        return f"taken to run for ever; --assume-run-time 2h lets {'it' if count == 1 else 'them'} end"
    return f"taken to run for {span_text(assumed)} from now, or from {'its' if count == 1 else 'their'} start"


def span_text(seconds: float) -> str:
    """A span of time by its two largest units: `2h`, `1h20m`, `3d4h`, `45s`."""
    rest = max(0, round(seconds))
    parts = []
    for unit, size in UNITS:
        count, rest = divmod(rest, size)
        parts.append((count, unit))
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"
