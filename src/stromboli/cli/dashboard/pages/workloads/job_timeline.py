"""What happened to a job and when: a line from its creation to its end, and the moments in words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.api.predecessors import ENDED
from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.cluster.object_events import Happening
from stromboli.cli.dashboard.pages.page_elements import age
from stromboli.cli.dashboard.reading.gang_reading import GangReading, PodSummary
from stromboli.cli.following.job_wait import phase_of
from stromboli.cli.job.job_orders import SUSPENDED
from stromboli.cli.live.cluster_records import EVICTED_BECAUSE, ONE_EVICTION_SECONDS
from stromboli.embedded.tables.age_text import duration_text, instant
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

WIDTH, HEIGHT = 600.0, 16.0
MOMENTS_SHOWN = 40
COURSE = (
    "created",
    "phase Pending",
    "let in",
    "its first pod was given a node",
    "its gang",
    "PodGroup: Scheduled",
    "its first pod started",
    "phase Running",
    "its last pod ended",
)
"""How moments begin, in the order in which they follow each other within a second; all others come after them."""
RUNNING, ABORTED, RESTARTING = "Running", "Aborted", "Restarting"
_EVICTED_POD = re.compile(r"[a-z0-9][-a-z0-9.]*: ")
"""The name of a pod at the beginning of what an event of its PodGroup says."""


class Moment(NamedTuple):
    """Something that happened."""

    time: float
    text: str
    kind: str = ""
    """`evicted` if pods were."""


class Beginning(NamedTuple):
    """From when on it is known what a job did."""

    time: float
    text: str = ""
    """What happened then, if it was not created."""


class Span(NamedTuple):
    """What a job did from one moment to another."""

    begin: float
    end: float
    kind: str
    """`wait`, `start` or `run`."""


def timeline(reading: GangReading, now: float) -> Markup:
    """The line and the moments."""
    moments = moments_of(reading)
    if not moments:
        return element("p", "Nothing is known of when what happened.", class_="note")
    return joined([_line(reading, moments, now), _list(moments, now)])


# -- moments


def moments_of(reading: GangReading) -> list[Moment]:
    """In the order of time; those of one second, as times of conditions are whole seconds, as a job goes its way."""
    known = [
        *_of_pods(reading.pods or [], _minimum(reading)),
        *_of_conditions(reading),
        *_evictions(reading),
    ]
    created = _moment((reading.subject.get("metadata") or {}).get("creationTimestamp"))
    moments = [Moment(created, "created"), *known]
    return sorted((each for each in moments if each.time), key=lambda each: (int(each.time), _step(each)))


def _step(moment: Moment) -> int:
    return next((step for step, text in enumerate(COURSE) if moment.text.startswith(text)), len(COURSE))


def _minimum(reading: GangReading) -> int:
    spec = (reading.group or {}).get("spec") or {}
    least = spec.get("minMember")
    return least if isinstance(least, int) else 0


def _of_pods(pods: list[PodSummary], minimum: int) -> Iterable[Moment]:
    scheduled = sorted(pod.scheduled for pod in pods if pod.scheduled)
    started = sorted(pod.started for pod in pods if pod.started)
    ended = sorted(pod.ended for pod in pods if pod.ended)
    if pods:
        yield Moment(min(pod.created for pod in pods), "let in: its first pod was made")
    if scheduled:
        yield Moment(scheduled[0], "its first pod was given a node")
    if 1 < minimum <= len(scheduled):
        yield Moment(scheduled[minimum - 1], f"its gang of {minimum:,} had nodes")
    if started:
        yield Moment(started[0], "its first pod started")
    if ended and len(ended) == len(pods):
        yield Moment(ended[-1], "its last pod ended")


def _of_conditions(reading: GangReading) -> Iterable[Moment]:
    for condition in _conditions(reading.job):
        yield Moment(_moment(condition.get("lastTransitionTime")), f"phase {_word(condition.get('status'))}")
    for condition in _conditions(reading.group):
        if condition.get("status") == "True":
            text = f"PodGroup: {_word(condition.get('type'))}, {_word(condition.get('reason'))}"
            yield Moment(_moment(condition.get("lastTransitionTime")), text)


def _conditions(manifest: Manifest | None) -> list[dict[str, Any]]:
    listed = ((manifest or {}).get("status") or {}).get("conditions")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _evictions(reading: GangReading) -> Iterable[Moment]:
    """Those of pods for the same reason at about the same time as one."""
    told = [event for event in reading.events or () if event.reason == names.EVENT_EVICT]
    by_reason: dict[str, list[Happening]] = {}
    for event in told:
        by_reason.setdefault(_reason(event), []).append(event)
    for reason, events in by_reason.items():
        of_group = [event for event in events if not _is_of_pod(event)]  # the same as events of its pods
        for together in _at_once(of_group or events):
            yield Moment(together[-1].last, f"{_pods_text(together)}: {reason}", "evicted")


def _is_of_pod(event: Happening) -> bool:
    return event.object.partition("/")[0] == "pod"


def _reason(event: Happening) -> str:
    """Without the name of the pod, which events of PodGroups begin with."""
    if _is_of_pod(event):
        return event.message.removeprefix(EVICTED_BECAUSE)
    return _EVICTED_POD.sub("", event.message)


def _at_once(events: list[Happening]) -> Iterable[list[Happening]]:
    """In the order of time, those that follow each other closely together."""
    together: list[Happening] = []
    for event in sorted(events, key=lambda event: event.last):
        if together and event.last - together[-1].last > ONE_EVICTION_SECONDS:
            yield together
            together = []
        together.append(event)
    if together:
        yield together


def _pods_text(events: list[Happening]) -> str:
    """`8 pods evicted`; events that name no pod count as often as they were seen."""
    times = sum(event.times for event in events)
    named = {match[0] for event in events if (match := _EVICTED_POD.match(event.message))}
    pods = len(named) or times
    again = f" ({times:,} times)" if times > pods else ""
    return f"{pods:,} pod{'' if pods == 1 else 's'} evicted{again}"


def _word(text: object) -> str:
    return str(text or "-")[:80]


def _moment(text: object) -> float:
    return instant(text) or 0.0


def _list(moments: list[Moment], now: float) -> Markup:
    left_out = len(moments) - MOMENTS_SHOWN
    earlier = [element("li", f"{left_out:,} more before", class_="note")] if left_out > 0 else []
    entries = (
        element("li", age(each.time, now), " ago: ", shortened(each.text, 200), class_=each.kind or None)
        for each in moments[-MOMENTS_SHOWN:]
    )
    return element("ol", *earlier, *entries, class_="moments")


# -- the line


def spans_of(reading: GangReading, moments: list[Moment], end: float) -> list[Span]:
    """Waiting, starting and running, as far as they are known to have begun; pods may be gone."""
    pods = reading.pods or []
    begin = _beginning(reading, moments).time
    known = [each for each in moments if each.time >= begin]
    entered = next((each.time for each in known if each.text == f"phase {RUNNING}"), 0.0)
    placed = min((pod.scheduled for pod in pods if pod.scheduled >= begin), default=entered or end)
    running = entered or min((pod.started for pod in pods if pod.started >= begin), default=end)
    edges = [(begin, "wait"), (max(begin, placed), "start"), (max(begin, placed, running), "run")]
    ends = [edge for edge, _ in edges[1:]] + [end]
    spans = [Span(start, min(stop, end), kind) for (start, kind), stop in zip(edges, ends, strict=True)]
    return [span for span in spans if span.end > span.begin]


def _beginning(reading: GangReading, moments: list[Moment]) -> Beginning:
    """Its creation; of a job that began anew since, that: conditions keep only when it last entered each phase."""
    phases = [str(each.get("status") or "") for each in _conditions(reading.job)]
    times = [_moment(each.get("lastTransitionTime")) for each in _conditions(reading.job)]
    for place in range(len(phases) - 2, -1, -1):
        after = times[place + 1]
        if phases[place] == ABORTED and phases[place + 1] not in SUSPENDED and after:
            return Beginning(after, "since it was resumed")
        if phases[place] == RESTARTING and phases[place - 1 : place] != [ABORTED] and after:
            return Beginning(after, "since it was restarted")
    return Beginning(moments[0].time)


def _end(reading: GangReading, moments: list[Moment], begin: float, now: float) -> float:
    """When it ended; if it has not, the present rounded up, so that the line does not change all the time."""
    if _has_ended(reading):
        return moments[-1].time
    passed = max(1.0, now - begin)
    step = max(1.0, 10.0 ** math.floor(math.log10(passed)) / 10)
    return float(begin + math.ceil(passed / step) * step)


def _has_ended(reading: GangReading) -> bool:
    """By the phase of the job; of another gang by that of its PodGroup, or as all its pods have."""
    if reading.job is not None:
        return phase_of(reading.job) in ENDED
    if ((reading.group or {}).get("status") or {}).get("phase") == names.GROUP_COMPLETED:
        return True
    return bool(reading.pods) and all(pod.ended for pod in reading.pods or ())


def _line(reading: GangReading, moments: list[Moment], now: float) -> Markup:
    begin, since = _beginning(reading, moments)
    end = _end(reading, moments, begin, now)
    scale = WIDTH / max(1.0, end - begin)
    spans = spans_of(reading, moments, end)
    names_of_kinds = {"wait": "waited", "start": "started its pods", "run": "ran"}
    parts = [
        element(
            "rect",
            element("title", f"{names_of_kinds[span.kind]} {duration_text(span.end - span.begin)}"),
            x=(span.begin - begin) * scale,
            width=max(1.0, (span.end - span.begin) * scale),
            height=HEIGHT,
            class_=f"span-{span.kind}",
        )
        for span in spans
    ]
    parts += [
        element(
            "rect",
            element("title", "evicted"),
            x=min(max((each.time - begin) * scale - 1.0, 0.0), WIDTH - 2.0),
            width=2.0,
            height=HEIGHT,
            class_="mark-evicted",
        )
        for each in moments[-MOMENTS_SHOWN:]
        if each.kind == "evicted" and each.time >= begin
    ]
    done = (f"{names_of_kinds[span.kind]} {duration_text(span.end - span.begin)}" for span in spans)
    said = (f"{since}: " if since else "") + ", ".join(done)
    return joined(
        [
            element(
                "svg",
                element("title", said),
                *parts,
                viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
                preserveAspectRatio="none",
                class_="timeline",
                role="img",
            ),
            element("p", said.capitalize() + ".", class_="note"),
        ]
    )
