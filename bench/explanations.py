"""How long an explanation takes at 5,000 nodes and 50,000 pods: from objects in memory to the whole document.

`python -m bench explanations` prints processor time of each part. The objects are decoded already, as an API server's
lists are while the next page is on its way. Some jobs have time limits, so that the start can be foreseen. Of several
repetitions the quickest counts.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bench.run import table
from bench.worlds import Sizes, full
from stromboli.api.decoding import decode
from stromboli.api.types.meta import Object
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import preset
from stromboli.simulator.cluster_loading import load_objects
from stromboli.simulator.explain.cluster_explanation import ClusterExplainer
from stromboli.simulator.explain.explanation_document import JobExplanation
from stromboli.simulator.explain.subject_lookup import look_up

SEED = 20261101
NOW = 1793534400.0
STARTED = "2026-11-01T11:59:00Z"
SUBJECTS = ("job-0", "running-0", "queue/default", "node/node-00000")
BACKFILL = Path("examples/backfill/policy.yaml").read_text(encoding="utf-8")
TARGET = 1.0
"""Seconds for one explanation, loading included."""


class Case(Struct):
    """A cluster and a policy."""

    name: str
    waiting: int
    """Gangs of twenty."""
    limits: bool
    policy: str = preset("default")
    subjects: tuple[str, ...] = ("job-0",)


class Figures(Struct):
    """Seconds of processor time."""

    case: str
    subject: str
    load: float
    explain: float
    remedies: int
    untried: int


CASES = (
    Case("no limits", 25, False),
    Case("time limits", 25, True, subjects=SUBJECTS),
    Case("500 gangs wait", 500, True, subjects=("job-0", "job-99")),
    Case("evicting", 25, False, preset("full")),
    Case("backfill", 25, True, BACKFILL),
)


def objects_of(sizes: Sizes, limits: bool) -> list[Object]:
    """A full cluster; with limits, of ten minutes to a day, of all jobs."""
    chance = random.Random(SEED)
    objects = []
    for manifest in full(sizes, SEED):
        if limits and manifest["kind"] == "PodGroup":
            limit = {"stromboli.sh/time-limit": f"{chance.randint(600, 86400)}s"}
            manifest["metadata"]["annotations"] = {**manifest["metadata"].get("annotations", {}), **limit}
        if manifest["kind"] == "Pod" and manifest["spec"].get("nodeName"):
            manifest["status"]["startTime"] = STARTED
        objects.append(decode(manifest))
    return [each for each in objects if each is not None]


def measure(case: Case, objects: Sequence[Object], subject: str, repetitions: int = 3) -> Figures:
    """Load the objects and explain one subject, several times."""
    return min((_measure_once(case, objects, subject) for _ in range(repetitions)), key=_together)


def _together(figures: Figures) -> float:
    return figures.load + figures.explain


def _measure_once(case: Case, objects: Sequence[Object], subject: str) -> Figures:
    catalog = load_catalog(None)
    policy = load_policy(case.policy, catalog, case.name)
    gc.collect()
    begin = time.process_time()
    loaded = load_objects(objects)
    stands = time.process_time()
    found, _ = look_up(loaded.intake.cluster, subject)
    (explained,) = ClusterExplainer(loaded, policy, catalog, NOW).explain([found]).subjects
    end = time.process_time()
    counts = (len(explained.remedies), explained.untried) if isinstance(explained, JobExplanation) else (0, 0)
    return Figures(case.name, subject, stands - begin, end - stands, *counts)


def report(figures: list[Figures], markdown: bool = False) -> str:
    head = ["cluster", "subject", "load s", "explain s", "together s", "remedies", "untried"]
    rows = [
        [
            each.case,
            each.subject,
            f"{each.load:.2f}",
            f"{each.explain:.2f}",
            f"{_together(each):.2f}",
            str(each.remedies),
            str(each.untried),
        ]
        for each in figures
    ]
    return "\n".join(table([head, *rows], markdown))


def run(nodes: int = 5000, jobs: int = 2500) -> list[Figures]:
    """Measure all cases, with so many running jobs of twenty pods."""
    figures = []
    for case in CASES:
        sizes = Sizes(nodes=nodes, gangs=case.waiting, members=20, running=jobs)
        objects = objects_of(sizes, case.limits)
        figures += [measure(case, objects, subject) for subject in case.subjects]
    return figures


def title(nodes: int, jobs: int) -> str:
    """What is measured, so that it can be repeated."""
    return f"seed {SEED}, {nodes} nodes, {jobs * 20} running pods; processor time, at most {TARGET:g} s is wanted"
