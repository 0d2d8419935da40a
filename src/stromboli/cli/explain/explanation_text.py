"""An explanation as text: the reason, the shortage, its holders, remedies, the expected start and history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from stromboli.cli.cli_errors import print_warning
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.object_output import table_lines
from stromboli.simulator.explain.explanation_document import (
    Explanation,
    HoldingJob,
    JobExplanation,
    NodeExplanation,
    QueueExplanation,
    Remedy,
    Subject,
    WaitingJob,
)

MOST_LINES = 10
"""Lines of a list; JSON has them all."""
MARKS = {"passed": "✓", "holds": "✗", "unknown": "·"}
CHECKS = {"rules": "policy", "share": "queue share", "room": "capacity"}
"""Checks as they are shown, where that is not the name in the document."""
STYLES = {"passed": "green", "holds": "bold red", "unknown": "dim"}


def print_explanation(out: Console, explanation: Explanation) -> None:
    """Print all subjects, one after the other."""
    for warning in explanation.warnings:
        print_warning(shown(warning))
    for place, subject in enumerate(explanation.subjects):
        if place:
            out.print()
        SubjectText(out).print(subject)


class SubjectText:
    """Prints one subject."""

    def __init__(self, out: Console) -> None:
        self._out = out

    def print(self, subject: Subject) -> None:
        self._line(subject.summary, "bold")
        if isinstance(subject, JobExplanation):
            self._print_job(subject)
        elif isinstance(subject, QueueExplanation):
            self._print_queue(subject)
        else:
            self._print_node(subject)
        for note in subject.notes:
            self._line(note, "dim")
        self._print_remembered(subject)
        self._print_history(subject)

    # -- a job

    def _print_job(self, job: JobExplanation) -> None:
        if job.pod_text:
            self._line(job.pod_text)
        if job.pod_group:
            self._line(f"  {_job_facts(job)}")
        for request in job.requests[:MOST_LINES]:
            role = f" {request.role}" if request.role else ""
            pods = f"{request.pods} pods{role}, each" if request.pods != 1 else f"1 pod{role},"
            selector = ", ".join(f"{key}={value}" for key, value in request.node_selector.items())
            where = f", on nodes with {selector}" if selector else ""
            self._line(f"  {pods} requesting {_amounts(request.requests) or 'no resources'}{where}")
        if job.wait is not None:
            self._print_wait(job)
        if job.places:
            self._title("Placement")
            rows = [[place.node, place.pods, place.since or ""] for place in job.places[:MOST_LINES]]
            self._table(["NODE", "PODS", "SINCE"], rows, len(job.places))
            if job.until:
                self._line(f"  It ends by {job.until} (time limit).")

    def _print_wait(self, job: JobExplanation) -> None:
        wait = job.wait
        assert wait is not None
        if job.gates:
            self._title("Checks")
        for gate in job.gates:
            self._line(
                f"  {MARKS[gate.state]} {CHECKS.get(gate.gate, gate.gate)}: {gate.text}", STYLES[gate.state]
            )
        if wait.remedy:
            self._line(f"  {wait.remedy[:1].upper()}{wait.remedy[1:]}")
        if wait.shortages:
            self._title("Shortage")
            rows = [[each.resource, *each.texts] for each in wait.shortages]
            self._table(["RESOURCE", "REQUESTED", "FREE", "MISSING"], rows)
        self._print_room(job)
        self._print_holders(job)
        self._print_remedies(job)
        if job.starts:
            self._title("Expected start")
        for start in job.starts:
            self._line(f"  {start.text}")
            if start.after:
                verb = "ends" if len(start.after) == 1 else "end"
                self._line(f"  After {_some(start.after)} {verb}, on {_some(start.nodes)}.")

    def _print_room(self, job: JobExplanation) -> None:
        if job.room:
            self._title("Capacity by node group")
            rows = [
                [
                    group.name,
                    f"{group.usable} of {group.nodes}",
                    f"{group.fits} of {job.pods.waiting}",
                    _amounts(group.free),
                    _amounts(group.largest_free),
                    _amounts(group.lacks),
                ]
                for group in job.room[:MOST_LINES]
            ]
            titles = ["NODES", "USABLE", "PODS THAT FIT", "FREE", "LARGEST FREE NODE", "MISSING"]
            self._table(titles, rows, len(job.room))
        if job.hyper_nodes:
            self._title("Capacity by HyperNode")
            rows = [
                [
                    each.title or each.name,
                    str(each.tier),
                    str(each.nodes),
                    f"{each.fits} of {each.needed}",
                    _amounts(each.lacks),
                    ", ".join(each.holders),
                ]
                for each in job.hyper_nodes[:MOST_LINES]
            ]
            titles = ["HYPERNODE", "TIER", "NODES", "PODS THAT FIT", "MISSING", "HELD BY"]
            self._table(titles, rows, len(job.hyper_nodes))

    def _print_holders(self, job: JobExplanation) -> None:
        if not job.holders:
            return
        self._title("Held by")
        rows = [
            [
                each.job,
                each.queue,
                each.pods,
                _amounts(each.holds),
                each.until or ("over its time limit" if each.over_limit else "no time limit"),
                each.not_evicted,
            ]
            for each in job.holders
        ]
        self._table(["JOB", "QUEUE", "PODS", "HOLDS", "UNTIL", "NOT EVICTED BECAUSE"], rows)
        self._line(f"  {job.evicting}")

    def _print_remedies(self, job: JobExplanation) -> None:
        if job.remedies:
            self._title("It would start if")
            for remedy in job.remedies:
                self._line(f"  - {_remedy(remedy)}", "green")
        if job.in_vain:
            self._line(f"  Did not help: {'; '.join(job.in_vain)}.", "dim")
        if job.untried:
            more = "1 more remedy was" if job.untried == 1 else f"{job.untried} more remedies were"
            self._line(f"  {more} not tried to save time.", "dim")

    # -- queues and nodes

    def _print_queue(self, queue: QueueExplanation) -> None:
        parent = f", parent {queue.parent}" if queue.parent else ""
        back = "" if queue.reclaimable else ", not reclaimable"
        self._line(f"  Weight {queue.weight}{parent}{back}")
        rows = [
            [
                each.resource,
                each.used,
                each.deserved or "-",
                each.guarantee or "-",
                each.capability or "-",
                each.waiting or "-",
                each.borrowed or "-",
            ]
            for each in queue.shares
        ]
        self._title("Shares")
        self._table(["RESOURCE", "USED", "DESERVED", "GUARANTEE", "CAPABILITY", "WAITING", "BORROWED"], rows)
        self._print_waiting("Waiting jobs", queue.waiting, queue.waiting_total)
        self._print_holding("Jobs that hold resources", queue.running, queue.running_total)
        if queue.borrowers:
            self._title("Borrowing queues")
            for borrower in queue.borrowers:
                self._line(f"  Queue {borrower}")

    def _print_node(self, node: NodeExplanation) -> None:
        if node.takes_nobody:
            self._title("Unavailable because")
            for reason in node.takes_nobody:
                self._line(f"  {reason[:1].upper()}{reason[1:]}")
        if node.hyper_nodes:
            self._line(f"  In HyperNode {', '.join(node.hyper_nodes)}")
        self._title("Resources")
        rows = [
            [
                each.resource,
                each.allocatable,
                each.used,
                each.free,
                each.coming_free or "-",
                each.promised or "-",
            ]
            for each in node.shares
        ]
        self._table(["RESOURCE", "ALLOCATABLE", "USED", "FREE", "RELEASING", "RESERVED"], rows)
        self._print_holding("Jobs on this node", node.running, node.running_total)
        self._print_waiting("Waiting jobs with a pod that fits", node.could_fit, len(node.could_fit))

    def _print_waiting(self, title: str, jobs: Sequence[WaitingJob], total: int) -> None:
        if jobs:
            self._title(title)
            rows = [[each.job, each.pods, _amounts(each.requests), each.reason] for each in jobs]
            self._table(["JOB", "PODS", "REQUESTS", "REASON"], rows, total)

    def _print_holding(self, title: str, jobs: Sequence[HoldingJob], total: int) -> None:
        if jobs:
            self._title(title)
            rows = [
                [each.job, each.queue, each.pods, _amounts(each.holds), each.until or "-"] for each in jobs
            ]
            self._table(["JOB", "QUEUE", "PODS", "HOLDS", "UNTIL"], rows, total)

    # -- what happened

    def _print_remembered(self, subject: Subject) -> None:
        if subject.remembered:
            self._title("Plugin state")
            for plugin, texts in subject.remembered.items():
                self._line(f"  {plugin}: {'; '.join(f'{key} {text}' for key, text in texts.items())}")

    def _print_history(self, subject: Subject) -> None:
        history = subject.history
        if not history.entries:
            return
        self._title("History")
        if history.dropped:
            self._line(f"  {history.dropped} older entries are omitted.", "dim")
        for entry in history.entries:
            times = f" (x{entry.count})" if entry.count > 1 and entry.source == "events" else ""
            self._line(f"  {entry.time}  {entry.text}{times}")

    # -- lines

    def _title(self, text: str) -> None:
        self._out.print(Text(text, style="bold"))

    def _line(self, text: str, style: str = "") -> None:
        self._out.print(Text(shown(text), style=style), soft_wrap=True)

    def _table(
        self, titles: Sequence[str], rows: Sequence[Sequence[object]], total: int | None = None
    ) -> None:
        """Columns that are empty throughout are left out."""
        kept = [place for place in range(len(titles)) if any(str(row[place]) for row in rows)]
        head = [titles[place] for place in kept]
        for number, line in enumerate(table_lines(head, [[row[place] for place in kept] for row in rows])):
            self._out.print(Text(f"  {line}", style="dim" if not number else ""), soft_wrap=True)
        if total is not None and total > len(rows):
            self._line(f"  and {total - len(rows)} more", "dim")


def _job_facts(job: JobExplanation) -> str:
    parts = [f"queue {job.queue}" if job.queue else "no queue", f"priority {job.priority}"]
    if job.kind != "PodGroup" or job.name != job.pod_group:
        parts.insert(0, f"PodGroup {job.pod_group}")
    counts = job.pods
    together = f" ({counts.minimum} must start together)" if counts.minimum > 1 else ""
    parts.append(f"1 pod{together}" if counts.total == 1 else f"{counts.total} pods{together}")
    done = [("waiting", counts.waiting), ("running", counts.running), ("leaving", counts.leaving)]
    done += [("succeeded", counts.succeeded), ("failed", counts.failed)]
    parts += [f"{count} {word}" for word, count in done if count]
    return ", ".join(parts)


def _remedy(remedy: Remedy) -> str:
    evicted = f"; evicts {_some(remedy.evicts)}" if remedy.evicts else ""
    cycles = f" (after {remedy.cycles} cycles)" if remedy.cycles > 1 else ""
    return f"{remedy.text}{evicted}{cycles}"


def _amounts(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


def _some(names: Iterable[str], most: int = 5) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
