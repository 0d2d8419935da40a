"""Why a job waits and what would let it start, as `stromboli explain` says it, with links to what it names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Sequence

from stromboli.cli.cluster.cluster_kinds import HYPER_NODES, JOBS, NODES, POD_GROUPS, PODS, QUEUES
from stromboli.cli.dashboard.pages.job_links import job_link
from stromboli.cli.dashboard.pages.object_elements import command_line, kubectl_kind
from stromboli.cli.dashboard.pages.page_content import (
    ViewRequest,
    hyper_node_address,
    node_address,
    queue_address,
)
from stromboli.cli.dashboard.pages.page_elements import age, card, link, notes, plain_table, short_text
from stromboli.cli.dashboard.reading.kept_explanations import (
    KnownExplanation,
    full_explanation,
    leaders_explanation,
)
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.simulator.explain.explanation_document import (
    JobExplanation,
    ObjectChange,
    Remedy,
    Resources,
)
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

LINES_SHOWN = 30
"""Of each list; `stromboli explain -o json` has them all."""
NAMES_SHOWN = 20
LARGEST_COMMAND = 4000
"""Characters of a command that is offered to be copied."""
REASON_SECONDS = 10.0
"""For which what the leader says is shown before it is asked again."""
MARKS = {"passed": "✓", "holds": "✗", "unknown": "·"}
CLASSES = {"passed": "good", "holds": "bad", "unknown": "none"}
KINDS = {each.kind: kubectl_kind(each) for each in (JOBS, POD_GROUPS, PODS, QUEUES, NODES, HYPER_NODES)}
Regions = dict[str, Markup]


# -- in a few words, on the overview


async def wait_card(request: ViewRequest, namespace: str, group: str, known: str) -> Markup:
    """Why it waits: as the leader says it if it answers at once, else in the words of its PodGroup."""
    session = request.session_in(namespace)
    said = await request.cluster.reads.read(
        (request.viewer.key, "reasons", namespace, group),
        REASON_SECONDS,
        known,
        lambda: leaders_explanation(session, namespace, group),
    )
    more = link(request.address(tab="explanation"), "what would let it start")
    return card("Why it waits", notes(_reasons(said, known), "reason"), note=more, wide=True)


def _reasons(said: Diagnosis | None, known: str) -> list[Markup | str]:
    if said is None:
        return [short_text(known)]
    texts = [said.message, said.remedy]
    return [short_text(text, 600) for text in texts if text]


# -- in full


async def explanation_regions(request: ViewRequest, namespace: str, subject: str) -> Regions:
    """The whole document."""
    session = request.session_in(namespace)
    known = await full_explanation(request.cluster, session, request.viewer.key, subject)
    command = f"stromboli explain {shlex.quote(subject)} -n {shlex.quote(namespace)}"
    regions = {"explanation-source": source_note(request, known, command)}
    if known is not None and known.document is not None:
        for explained in known.document.subjects:
            if isinstance(explained, JobExplanation):
                regions |= ExplanationMarkup(request).regions(explained)
        if known.document.warnings:
            regions["explanation-warnings"] = notes(
                (short_text(text, 600) for text in known.document.warnings), "note"
            )
    return regions


def source_note(request: ViewRequest, known: KnownExplanation | None, command: str) -> Markup:
    """How old it is, by which policy, and the command that says the same."""
    if known is None:
        state: object = (
            "It is being computed: what would help is tried on a copy of the cluster. It appears here."
        )
    elif known.document is None:
        state = element("span", "There is no explanation: ", short_text(known.problem, 600), class_="warn")
    else:
        policy = known.document.policy
        by = [", by policy ", short_text(policy, 120)] if policy else []
        state = element("span", "Computed ", age(known.computed, request.now), " ago", *by, ".")
    return joined([element("p", state, class_="note", role="status"), command_line(command)])


class ExplanationMarkup:
    """The explanation of one job as HTML."""

    def __init__(self, request: ViewRequest) -> None:
        self._records = request.records

    def regions(self, job: JobExplanation) -> Regions:
        """Parts that have nothing to say are left out."""
        parts = {
            "explained": self._summary(job),
            "explained-gates": self._gates(job),
            "explained-shortages": self._shortages(job),
            "explained-remedies": self._remedies(job),
            "explained-when": self._when(job),
            "explained-holders": self._holders(job),
            "explained-room": self._room(job),
            "explained-places": self._places(job),
            "explained-history": self._history(job),
        }
        return {name: part for name, part in parts.items() if part}

    # -- why

    def _summary(self, job: JobExplanation) -> Markup:
        counts = job.pods
        done = [("waiting", counts.waiting), ("running", counts.running), ("leaving", counts.leaving)]
        done += [("succeeded", counts.succeeded), ("failed", counts.failed)]
        pods = ", ".join(f"{count:,} {word}" for word, count in done if count)
        said = [f"{counts.total:,} pods, of which {counts.minimum:,} must start together", pods]
        asked = [
            f"{request.pods:,} {request.role or 'pods'}, each asking for {_amounts(request.requests) or 'nothing'}"
            for request in job.requests[:LINES_SHOWN]
        ]
        texts = [job.pod_text, *said, *asked, *job.notes]
        return card(
            short_text(job.summary, 600),
            notes(shortened(text, 600) for text in texts[: 2 * LINES_SHOWN] if text),
            wide=True,
        )

    def _gates(self, job: JobExplanation) -> Markup:
        if not job.gates or job.wait is None:
            return Markup("")
        gates = (
            element(
                "li",
                element("span", f"{MARKS[gate.state]} {gate.gate}", class_=f"gate {CLASSES[gate.state]}"),
                ": ",
                shortened(gate.text, 400),
                f" ({gate.state})",
            )
            for gate in job.gates
        )
        remedy = notes([short_text(job.wait.remedy, 600)]) if job.wait.remedy else Markup("")
        return card("Gates that it has to pass", element("ol", *gates, class_="gates"), remedy, wide=True)

    def _shortages(self, job: JobExplanation) -> Markup:
        if job.wait is None or not (job.wait.shortages or job.wait.counts):
            return Markup("")
        rows = [
            [shortened(cell, 80) for cell in (each.resource, *each.texts)]
            for each in job.wait.shortages[:LINES_SHOWN]
        ]
        table = (
            plain_table("shortages", ("Resource", "Asked", "Available", "Missing"), rows)
            if rows
            else Markup("")
        )
        reasons = [
            f"{count:,} nodes: {reason}" for reason, count in list(job.wait.counts.items())[:LINES_SHOWN]
        ]
        return card("What is short", table, notes(shortened(text, 300) for text in reasons), wide=True)

    # -- what would help, and when

    def _remedies(self, job: JobExplanation) -> Markup:
        if not (job.remedies or job.in_vain or job.untried):
            return Markup("")
        entries = (
            element(
                "li",
                element("p", self._remedy(remedy)),
                *(_commands(job, change) for change in remedy.changes),
            )
            for remedy in job.remedies[:LINES_SHOWN]
        )
        said = []
        if job.in_vain:
            head = "It would still wait with" if job.remedies else "Tried in vain"
            said.append(short_text(f"{head}: {'; '.join(job.in_vain)}.", 1000))
        if job.untried:
            said.append(f"{job.untried:,} more were not tried: that would take too long.")
        listed = element("ul", *entries, class_="remedies") if job.remedies else Markup("")
        return card("It would start if", listed, notes(said), wide=True)

    def _remedy(self, remedy: Remedy) -> Markup:
        parts: list[object] = [shortened(remedy.text, 400)]
        if remedy.evicts:
            parts += ["; evicts ", _some(remedy.evicts, lambda name: shortened(name, 120))]
        if remedy.cycles > 1:
            parts.append(f" (after {remedy.cycles} cycles)")
        return element("span", *parts)

    def _when(self, job: JobExplanation) -> Markup:
        said = []
        for start in job.starts:
            said.append(element("span", short_text(start.text, 600)))
            if start.after:
                said.append(
                    element(
                        "span",
                        "After the end of ",
                        _some(start.after, self._job),
                        ", on ",
                        _some(start.nodes, _node),
                        ".",
                    )
                )
        return card("When", notes(said, "reason"), wide=True) if said else Markup("")

    # -- who and where

    def _holders(self, job: JobExplanation) -> Markup:
        if not job.holders:
            return Markup("")
        rows = [
            [
                self._job(each.job),
                link(queue_address(each.queue), shortened(each.queue, 80)) if each.queue else "",
                each.pods,
                _amounts(each.holds),
                shortened(each.until or ("over its time limit" if each.over_limit else "no time limit"), 40),
                shortened(each.not_evicted, 200),
            ]
            for each in job.holders[:LINES_SHOWN]
        ]
        titles = ("Job", "Queue", "Pods", "Holds", "Until", "Why it is not evicted")
        return card(
            "Who holds it",
            plain_table("holders", titles, rows, text=titles[-1:]),
            notes([short_text(job.evicting, 400)]),
            wide=True,
        )

    def _room(self, job: JobExplanation) -> Markup:
        parts, rows = [], list[list[object]]()
        if job.room:
            rows = [
                [
                    shortened(each.name, 80),
                    f"{each.usable:,} of {each.nodes:,}",
                    f"{each.fits:,} of {job.pods.waiting:,}",
                    _amounts(each.free),
                    _amounts(each.largest_free),
                    _amounts(each.lacks),
                ]
                for each in job.room[:LINES_SHOWN]
            ]
            parts.append(
                plain_table(
                    "room by nodes",
                    ("Nodes", "Usable", "Pods with room", "Free", "Most on one", "Lacks"),
                    rows,
                )
            )
        if job.hyper_nodes:
            rows = [
                [
                    link(hyper_node_address(each.name), shortened(each.title or each.name, 80)),
                    "-" if each.tier is None else each.tier,
                    each.nodes,
                    f"{each.fits:,} of {each.needed:,}",
                    _amounts(each.lacks),
                    _some(each.holders, self._job),
                ]
                for each in job.hyper_nodes[:LINES_SHOWN]
            ]
            parts.append(
                plain_table(
                    "room by HyperNode",
                    ("HyperNode", "Tier", "Nodes", "Pods with room", "Lacks", "Held by"),
                    rows,
                )
            )
        return card("Room", *parts, wide=True) if parts else Markup("")

    def _places(self, job: JobExplanation) -> Markup:
        if not job.places:
            return Markup("")
        rows = [
            [_node(each.node), each.pods, shortened(each.since or "", 40)]
            for each in job.places[:LINES_SHOWN]
        ]
        until = notes([f"It ends by {job.until}, its time limit."] if job.until else [])
        return card("Where it runs", plain_table("places", ("Node", "Pods", "Since"), rows), until, wide=True)

    def _history(self, job: JobExplanation) -> Markup:
        entries = [
            element("li", element("time", shortened(entry.time or "-", 40)), " ", shortened(entry.text, 400))
            for entry in job.history.entries[-LINES_SHOWN:]
        ]
        remembered = [
            f"{plugin}: {'; '.join(f'{key} {text}' for key, text in texts.items())}"
            for plugin, texts in job.remembered.items()
        ]
        if not entries and not remembered:
            return Markup("")
        told = notes((shortened(text, 600) for text in remembered[:LINES_SHOWN]), "note")
        return card("So far", element("ol", *entries, class_="moments"), told, wide=True)

    def _job(self, key: str) -> Markup | str:
        """A job by its PodGroup, as explanations name it, with what it holds behind it."""
        group, _, holds = key.partition(" ")
        job = job_link(self._records, group)
        return element("span", job, " ", shortened(holds, 80)) if holds else job


def _node(name: str) -> Markup:
    return link(node_address(name), shortened(name, 120))


def _some(names: Sequence[str], shown: Callable[[str], object]) -> Markup:
    """The first of some names, with how many more there are."""
    parts: list[object] = [shown(name) for name in names[:NAMES_SHOWN]]
    if len(names) > NAMES_SHOWN:
        parts.append(f"{len(names) - NAMES_SHOWN:,} more")
    return joined(parts, ", ")


def _amounts(amounts: Resources) -> str:
    return shortened(", ".join(f"{name} {amount}" for name, amount in amounts.items()), 200)


# -- commands


def _commands(job: JobExplanation, change: ObjectChange) -> Markup:
    """The command of a change; nothing if there is none, or it is too long to be copied."""
    command = change_command(job, change)
    return command_line(command) if 0 < len(command) <= LARGEST_COMMAND else Markup("")


def change_command(job: JobExplanation, change: ObjectChange) -> str:
    """A change as a user can make it; empty for what no command does, such as other requests of pods, or more nodes.

    A PodGroup of a Job follows its Job, so that is changed.
    """
    if change.operation == "create" or (change.operation == "patch" and change.kind == PODS.kind):
        return ""
    if change.kind == QUEUES.kind and change.patch == {"status": {"state": "Open"}}:
        return f"stromboli queue open {_words(change.names)}"
    namespace = f" -n {shlex.quote(change.namespace)}" if change.namespace else ""
    if change.operation == "delete":
        return f"kubectl delete {shlex.quote(_kind(change.kind))} {_words(change.names)}{namespace}"
    kind, names, patch = change.kind, change.names, change.patch
    if kind == POD_GROUPS.kind and job.kind == JOBS.kind:
        if "minMember" not in (patch.get("spec") or {}):
            return ""
        kind, names, patch = JOBS.kind, [job.name], {"spec": {"minAvailable": patch["spec"]["minMember"]}}
    objects = f"{shlex.quote(_kind(kind))} {_words(names)}{namespace}"
    return f"kubectl patch {objects} --type=merge -p {shlex.quote(json.dumps(patch))}"


def _kind(kind: str) -> str:
    return KINDS.get(kind, kind.lower())


def _words(names: Iterable[str]) -> str:
    return " ".join(map(shlex.quote, names))
