"""The answer to what would happen if a job were submitted, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from math import isfinite
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stromboli.api.errors import printable
from stromboli.cli.cli_errors import print_warning
from stromboli.cli.simulate.assumption_text import assumption_sentences
from stromboli.cli.simulate.moment_text import Clock, span_text
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.simulator.count_sentences import counted
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.what_if.run_differences import Eviction, Shift
from stromboli.simulator.what_if.run_times import Basis
from stromboli.simulator.what_if.what_if_answer import Answer, SubmittedJobAnswer

MOST_ROWS = 20
"""Lines of a list, unless it is to be wide; JSON has them all."""
UNKNOWN = "unknown"
Item = TypeVar("Item")


class AnswerText:
    """Prints an answer; wide with every line, node and reason."""

    def __init__(self, out: Console, answer: Answer, wide: bool = False) -> None:
        self._out = out
        self._answer = answer
        self._wide = wide
        self._clock = Clock(answer.now, "never" if answer.tells_never else UNKNOWN)

    def print(self) -> None:
        answer = self._answer
        for warning in answer.warnings:
            print_warning(printable(warning))
        for failure in answer.failures:
            print_warning(printable(failure))
        self._line(f"{answer.cluster}, {self._clock.now}, {answer.policy}")
        if answer.partial:
            self._line("Interrupted: what comes later is unknown.", "bold")
        for job in answer.jobs:
            self._print_job(job)
        self._print_shifts("Delayed", answer.others.later, "Later by")
        self._print_shifts("Earlier", answer.others.earlier, "Earlier by")
        self._print_evictions(answer.others.evictions)
        self._print_the_unaffected()
        self._title("Assumptions")
        for sentence in assumption_sentences(answer.assumptions):
            self._line(f"  {sentence}")

    # -- what is submitted

    def _print_job(self, job: SubmittedJobAnswer) -> None:
        pods = f"{job.pods} pod{'s' if job.pods != 1 else ''}, queue {job.queue}"
        if job.started is None:
            unknown = job.not_before is not None or self._answer.partial
            self._title(f"{job.name}{': start time unknown' if unknown else ' does not start'} ({pods})")
            self._print_bound(job)
        else:
            self._title(f"{job.name} starts at {self._clock.full(job.started)} ({pods})")
            self._line(f"  {self._end_sentence(job)}")
            self._line(f"  on {self._places(job)}")
            self._print_later_pods(job, job.started)
        self._print_waits(job)

    def _end_sentence(self, job: SubmittedJobAnswer) -> str:
        end = self._clock.full(job.ended)
        match job.run_time.basis:
            case _ if job.ended is None and not isfinite(job.run_time.seconds):
                return "end time unknown: it has no time limit"
            case _ if job.ended is None:
                return "end time unknown: not all its pods start"
            case Basis.TIME_LIMIT:
                whose = "its" if job.complete == job.started else "each pod at its"
                return f"ends by {end}, {whose} time limit of {span_text(job.run_time.seconds)}"
            case Basis.ASSUMED:
                return f"ends at {end}, if it runs {span_text(job.run_time.seconds)} as assumed"
            case _:
                return f"ends at {end}"

    def _print_later_pods(self, job: SubmittedJobAnswer, started: float) -> None:
        """When the pods beyond its minimum start, if that is later."""
        if job.complete is None:
            start = "do not start" if self._answer.tells_never else "have no known start time"
            self._line(f"  {job.pods - len(job.placement)} of its {job.pods} pods {start}")
        elif job.complete > started:
            self._line(f"  all its pods have started by {self._clock.full(job.complete)}")

    def _places(self, job: SubmittedJobAnswer) -> str:
        nodes = Counter(job.placement.values())
        parts = [f"{node} ({count})" if count > 1 else node for node, count in nodes.items()]
        return ", ".join(parts) if self._wide else first_few(parts)

    def _print_bound(self, job: SubmittedJobAnswer) -> None:
        """What can be said of a job that does not start as far as limits go."""
        if job.blockers:
            self._line(f"  not before {self._blockers(job.blockers)}")
        if job.not_before is not None:
            self._line(f"  not before {self._clock.full(job.not_before)}, if the others use up their limits")
        elif not job.waits:
            self._line("  it never gets its turn")

    def _blockers(self, jobs: list[str]) -> str:
        """`default/a has ended, which has no time limit`."""
        over = set(self._answer.assumptions.over_limit)
        if len(jobs) == 1:
            why = "is over its time limit" if jobs[0] in over else "has no time limit"
            return f"{jobs[0]} has ended, which {why}"
        why = "have no time limit" if not over.intersection(jobs) else "have no time limit or are over it"
        return (
            f"enough of these have ended, which {why}: {', '.join(jobs) if self._wide else first_few(jobs)}"
        )

    def _print_waits(self, job: SubmittedJobAnswer) -> None:
        untils = [*(wait.since for wait in job.waits[1:]), job.started]
        for wait, until in self._shown(list(zip(job.waits, untils, strict=False))):
            explanation = wait.explanation
            moment = f"until {self._clock.time(until)}" if until is not None else "and then"
            if len(job.waits) == 1 and until is None:
                moment = "it waits"
            self._line(f"  {moment}: {printable(_because(explanation))}")
            if self._wide or until is None:
                self._line(f"      -> {printable(explanation.remedy)}")
        if job.after:
            ends = [f"{name} ({self._clock.time(end)})" for name, end in reversed(job.after.items())]
            self._line(f"  its room comes from {', '.join(ends) if self._wide else first_few(ends)}")
        if job.ahead:
            starts = "starts" if job.ahead == 1 else "start"
            self._line(f"  {counted(job.ahead, 'other job')} of those that wait {starts} before it")

    # -- the others

    def _print_the_unaffected(self) -> None:
        """That nobody is delayed or evicted, and of whom that cannot be told."""
        answer = self._answer
        if not (answer.others.later or answer.others.evictions):
            known = ", as far as is known" if answer.undetermined or answer.partial else ""
            self._line(f"No job is delayed, and no pod is evicted{known}.")
        if answer.undetermined:
            jobs = ", ".join(answer.undetermined) if self._wide else first_few(answer.undetermined)
            self._line(f"Wait for jobs without a time limit to end, and may be delayed: {jobs}")
        if answer.never:
            self._line(f"Never start, with it or without it: {first_few(answer.never)}")

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
        cells = [first, second, self._by(shift)]
        return [*cells, clock.time(shift.end_with), clock.time(shift.end_without)] if self._wide else cells

    def _by(self, shift: Shift) -> str:
        """How much later or earlier it starts, or, if it runs already, ends."""
        never = (shift.start_with is None) != (shift.start_without is None)
        if never or (shift.start_delay == 0 and shift.complete_delay is None):
            if not self._answer.tells_never:
                return UNKNOWN
            return "for ever" if shift.worsening > 0 else "at all"
        moved = shift.end_delay if shift.ran_already else shift.start_delay or shift.complete_delay
        return UNKNOWN if moved is None else span_text(abs(moved))

    def _print_evictions(self, evictions: Sequence[Eviction]) -> None:
        if not evictions:
            return
        self._title("Evicted")
        for eviction in self._shown(evictions):
            whom = f" for {eviction.beneficiary}" if eviction.beneficiary else ""
            again = f"runs again from {self._clock.full(eviction.restart)}"
            if eviction.restart is None:
                tells_never = self._answer.tells_never
                again = "does not run again" if tells_never else "runs again at an unknown time"
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


def _because(explanation: Diagnosis) -> str:
    reason, message = explanation.reason, explanation.message
    return message if message.startswith(reason) else f"{reason}: {message}"
