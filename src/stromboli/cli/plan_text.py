"""A plan as text: binds, evictions, pending jobs with reasons and hints."""

from collections import Counter
from itertools import islice

from rich.console import Console
from rich.text import Text

from stromboli.api.errors import printable
from stromboli.api.types.kinds import GROUP_OF, WORKLOADS
from stromboli.cli.cli_errors import print_warning
from stromboli.engine.decisions import Evict
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.simulator.count_sentences import counted
from stromboli.simulator.cycle_plan import Plan
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.dangling_references import first_few

_GROUPS = sorted({*((group, kind) for kind, group in GROUP_OF.items()), *WORKLOADS})
"""The API groups and kinds that a plan reads."""
MAX_LINES = 50
"""Lines per section; JSON has them all."""


def print_plan(out: Console, plan: Plan, title: str = "") -> None:
    """Print a plan."""
    for message in plan.warnings:
        print_warning(printable(message))
    for problem in plan.loaded.problems:
        print_warning(f"left out: {problem}")
    _warn_of_hyper_nodes(plan)
    if title:
        out.rule(Text(title))
    for number, cycle in enumerate(plan.cycles, start=1):
        _print_cycle(out, cycle, number if len(plan.cycles) > 1 else 0)
    _print_domains(out, plan)
    _print_waiting(out, plan)
    _print_workloads(out, plan)
    _print_unscheduled(out, plan)
    _print_summary(out, plan)


def _warn_of_hyper_nodes(plan: Plan) -> None:
    """HyperNodes that are left out of the tree, or odd otherwise."""
    hyper_nodes = plan.hyper_nodes
    for name, sentences in islice(hyper_nodes.items(), MAX_LINES):
        print_warning(printable(f"HyperNode {name}: {'; '.join(sentences)}"))
    if len(hyper_nodes) > MAX_LINES:
        print_warning(f"{len(hyper_nodes) - MAX_LINES} more HyperNodes with problems (-o json has them all)")


def _print_cycle(out: Console, cycle: Report, number: int) -> None:
    if cycle.binds:
        out.print(Text("Binds" + (f" of cycle {number}" if number else ""), style="bold"))
        _print_binds(out, dict(islice(cycle.binds.items(), MAX_LINES)))
        _print_rest(out, len(cycle.binds))
    if cycle.evictions:
        out.print(Text("Evictions" + (f" of cycle {number}" if number else ""), style="bold"))
        for eviction in cycle.evictions[:MAX_LINES]:
            out.print(Text(f"  {eviction_sentence(eviction)}"))
        _print_rest(out, len(cycle.evictions))


def _print_binds(out: Console, binds: dict[str, str]) -> None:
    """Pods and nodes in two columns."""
    width = max(map(len, binds))
    out.print(Text(f"  {'Pod':{width}}  Node", "dim"), soft_wrap=True)
    for pod, node in binds.items():
        out.print(Text(f"  {pod:{width}}  {node}"), soft_wrap=True)


def eviction_sentence(eviction: Evict) -> str:
    """Which pod leaves which node, because of which action, for which job and in which domain."""
    why = eviction.action or eviction.reason
    leaves = f"is evicted from {eviction.node}"
    if eviction.destination:
        leaves = f"moves from {eviction.node} to {eviction.destination}"
    text = f"{eviction.key} {leaves}: {why}"
    if eviction.beneficiary:
        text += f" for {eviction.beneficiary}"
    if eviction.domain:
        text += f" in {eviction.domain}"
    if eviction.frees:
        freed = ", ".join(f"{name} {amount}" for name, amount in eviction.frees.items() if amount != "0")
        text += f", frees {freed}" if freed else ""
    return text + (f" (chosen by {eviction.chosen_by})" if eviction.chosen_by else "")


def _print_domains(out: Console, plan: Plan) -> None:
    """In which HyperNode each gang with a topology is."""
    last = plan.cycles[-1]
    if not last.domains:
        return
    out.print(Text("Topology", style="bold"))
    owners = _names_of_owners(plan)
    shown = {owners.get(job, job): domain for job, domain in islice(last.domains.items(), MAX_LINES)}
    width = max(map(len, shown))
    for job, domain in shown.items():
        _print_indented(out, f"  {job:{width}}  ", domain.text)
    _print_rest(out, len(last.domains))


def _print_waiting(out: Console, plan: Plan) -> None:
    last = plan.cycles[-1]
    if not last.pending:
        return
    out.print(Text("Pending", style="bold"))
    owners = _names_of_owners(plan)
    for job, waiting in islice(last.pending.items(), MAX_LINES):
        out.print(
            Text(f"  {owners.get(job, job)}")
            .append(f"  {_pods(waiting)}", style="dim")
            .append(f"  {waiting.reason}", "yellow")
        )
        if waiting.message != waiting.reason:
            _print_indented(out, "      ", waiting.message, "dim")
        if waiting.remedy:
            _print_indented(out, "      -> ", waiting.remedy)
    _print_rest(out, len(last.pending))


def _names_of_owners(plan: Plan) -> dict[str, str]:
    """Jobs by the names that their users gave them: that of the owner, where a controller named the PodGroup."""
    groups = {job.key: job.group for job in plan.loaded.intake.cluster.jobs.values() if job.group is not None}
    return {
        key: f"{group.namespace}/{owner.name}"
        for key, group in groups.items()
        for owner in group.metadata.owner_references
        if owner.controller and owner.uid and owner.uid in group.name
    }


def _print_indented(out: Console, begin: str, text: str, style: str = "") -> None:
    """A line that stays indented where it has to be broken."""
    for line in Text(text, style).wrap(out, max(20, out.width - len(begin))):
        line.rstrip()
        out.print(Text(begin, style).append_text(line))
        begin = " " * len(begin)


def _pods(waiting: Diagnosis) -> str:
    count = _count(waiting.pods)
    return f"({count}, queue {waiting.queue})" if waiting.queue else f"({count})"


def _print_workloads(out: Console, plan: Plan) -> None:
    """What the plan made of workloads, and what it did not."""
    made = [f"{name} ({_count(pods)})" for name, pods in plan.loaded.made.items()]
    notes = [
        *([f"pods created for {first_few(made)}"] if made else []),
        *plan.loaded.notes,
    ]
    if notes:
        out.print(Text("Workloads", style="bold"))
    for note in notes[:MAX_LINES]:
        _print_indented(out, "  ", printable(note), "dim")
    _print_rest(out, len(notes))


def _count(pods: int) -> str:
    return "1 pod" if pods == 1 else f"{pods} pods"


def _print_unscheduled(out: Console, plan: Plan) -> None:
    """Pods that no cycle schedules, and objects that were not read, with the remedy."""
    loaded = plan.loaded
    if loaded.ungrouped:
        out.print(Text(f"Not scheduled (no PodGroup): {first_few(loaded.ungrouped)}", "yellow"))
        out.print(Text("  -> add the annotation scheduling.k8s.io/group-name and create that PodGroup"))
    for scheduler, count in sorted(loaded.foreign.items()):
        out.print(Text(f"Pending pods of another scheduler ({scheduler}): {count}", "yellow"))
        out.print(Text("  -> set spec.schedulerName: volcano"))
    if loaded.unread:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(loaded.unread.items()))
        out.print(Text(f"Ignored (not used by the scheduler): {kinds}", "dim"))
        for hint in filter(None, map(_unread_hint, sorted(loaded.unread))):
            out.print(Text(f"  -> {hint}"))


def _unread_hint(kind: str) -> str:
    """A hint for a kind that was probably meant to be read."""
    intended = next((known for _, known in _GROUPS if known.lower() == kind.lower()), None)
    if intended is None:
        return ""
    if intended != kind:
        return f"{kind} is spelled {intended}"
    versions = [f"{group}/..." if group else "v1" for group, known in _GROUPS if known == kind]
    return f"a {kind} is read if its apiVersion is {' or '.join(sorted(versions))}"


def _print_summary(out: Console, plan: Plan) -> None:
    whole = plan.whole
    phases = Counter(phase or "Pending" for phase in whole.phases.values())
    groups = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    parts = [
        f"{len(whole.binds)} bound",
        f"{len(whole.evicted)} evicted",
        f"{len(whole.pending)} {'job' if len(whole.pending) == 1 else 'jobs'} waiting",
    ]
    if whole.pipelined:
        parts.append(f"{len(whole.pipelined)} waiting for capacity being freed")
    out.print(Text(", ".join(parts), "bold").append(f"; PodGroups: {groups}" if groups else "", "not bold"))
    seconds = sum(plan.cycles[-1].seconds.values())
    out.print(
        Text(
            f"{counted(plan.loaded.objects, 'object')} in {plan.loaded.seconds:.2f} s, cycle {1000 * seconds:.1f} ms",
            "dim",
        )
    )


def _print_rest(out: Console, count: int) -> None:
    if count > MAX_LINES:
        out.print(Text(f"  ... and {count - MAX_LINES} more (-o json has them all)", style="dim"))
