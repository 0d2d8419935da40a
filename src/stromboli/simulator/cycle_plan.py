"""What would a few cycles decide for a cluster? Nothing outside this process is touched."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from stromboli.engine.catalog import Catalog
from stromboli.engine.decisions import Evict
from stromboli.engine.explanation.closest_domain import ClosestDomain
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.explanation.quantities import time_text
from stromboli.engine.plugin import Promise
from stromboli.engine.topology.allocated_domains import GangDomain
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import PERIOD, Scheduler
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.ephemeral_claims import make_ephemeral_claims
from stromboli.simulator.rehearsal import Rehearsal

SCHEMA = 1
"""Keys may be added to the document, never changed."""


class Plan(Struct):
    """A loaded cluster and what each cycle decided."""

    loaded: Loaded
    policy: Policy
    cycles: list[Report]
    name: str = ""

    @property
    def whole(self) -> Report:
        """All cycles together."""
        return Report.together(self.cycles)

    @property
    def lost(self) -> str:
        return next((report.lost for report in self.cycles if report.lost), "")

    @property
    def failed(self) -> bool:
        """Whether plugins failed, over single jobs or so that a cycle came to nothing."""
        return any(report.lost or report.failures for report in self.cycles)

    @property
    def hyper_nodes(self) -> dict[str, list[str]]:
        """What is wrong with HyperNodes, by name, such as that they are left out."""
        tree = self.loaded.intake.cluster.hyper_nodes
        return {name: list(tree.notices(name).values()) for name in tree.with_notices()}

    @property
    def warnings(self) -> list[str]:
        """What is odd about the policy and the objects, and what these ask for without effect."""
        ignored: dict[str, list[str]] = {}
        for job, text in self.whole.ignored.items():
            ignored.setdefault(text, []).append(job)
        return [
            *self.policy.warnings,
            *self.loaded.warnings,
            *(f"PodGroup {first_few(jobs)}: {text}" for text, jobs in ignored.items()),
        ]


def make_plan(
    loaded: Loaded,
    policy: Policy,
    catalog: Catalog,
    now: float,
    cycles: int = 1,
    period: float = PERIOD,
    name: str = "",
) -> Plan:
    """Run cycles; between them binds become Running, evicted pods vanish, and the clock moves by the period."""
    world = Rehearsal(loaded.intake, now)
    scheduler = Scheduler(world, policy, catalog, period)
    reports = []
    for number in range(cycles):
        if number:
            world.sleep(period)
            world.sync()
            loaded.advance()
        if loaded.expansion is not None:
            world.claims.make_from_templates()
            make_ephemeral_claims(loaded.intake)
        reports.append(Report.of(scheduler.cycle()))
    return Plan(loaded, policy, reports, name)


def document(plan: Plan) -> dict[str, Any]:
    """The plan as JSON has it; see docs/plan.md."""
    loaded, whole = plan.loaded, plan.whole
    result: dict[str, Any] = {"schema": SCHEMA}
    if plan.name:
        result["name"] = plan.name
    result |= _decisions(whole)
    result["timing"] = {"load_s": _rounded(loaded.seconds), **_timing(plan.cycles[-1])}
    if len(plan.cycles) > 1:
        result["cycles"] = [{**_decisions(report), "timing": _timing(report)} for report in plan.cycles]
    if plan.lost:
        result["lost"] = plan.lost
    result["objects"] = loaded.objects
    extras = {
        "promised": {job: _promise(promise) for job, promise in whole.promised.items()},
        "domains": {job: _domain(domain) for job, domain in whole.domains.items()},
        "hyper_nodes": plan.hyper_nodes,
        "failures": whole.failures,
        "warnings": plan.warnings,
        "problems": [_problem(problem) for problem in loaded.problems],
        "ungrouped": loaded.ungrouped,
        "other_schedulers": loaded.foreign,
        "unread_kinds": loaded.unread,
        "made_pods": loaded.made,
        "notes": loaded.notes,
    }
    return result | {key: value for key, value in extras.items() if value}


def _decisions(report: Report) -> dict[str, Any]:
    return {
        "binds": report.binds,
        "bound_per_job": report.bound_per_job,
        "evicted": report.evicted,
        "pipelined": report.pipelined,
        "phases": report.phases,
        "pending": {job: _pending(waiting) for job, waiting in report.pending.items()},
        "evictions": [_eviction(eviction) for eviction in report.evictions],
    }


def _pending(waiting: Diagnosis) -> dict[str, Any]:
    keys = ("reason", "message", "hint", "counts", "pods", "queue")
    closest = {} if waiting.closest is None else {"closest": _closest(waiting.closest)}
    return {key: getattr(waiting, key) for key in keys} | closest


def _closest(closest: ClosestDomain) -> dict[str, Any]:
    """The domain that comes closest, as for `domains`, with what it lacks."""
    tier = {} if closest.tier is None else {"tier": closest.tier}
    return {
        "name": closest.name,
        **tier,
        "fits": closest.fits,
        "needed": closest.needed,
        "lacks": closest.lacks,
        "holders": [holder._asdict() for holder in closest.holders],
    }


def _domain(domain: GangDomain) -> dict[str, Any]:
    tier = {} if domain.tier is None else {"tier": domain.tier}
    parts = {part: each.name for part, each in domain.sub_groups.items()}
    return {"name": domain.name, **tier, **({"sub_groups": parts} if parts else {})}


def _promise(promise: Promise) -> dict[str, Any]:
    return {"start": time_text(promise.start), "nodes": list(promise.nodes), "after": list(promise.after)}


def _eviction(eviction: Evict) -> dict[str, Any]:
    keys = ("node", "job", "reason", "action", "beneficiary", "chosen_by", "frees")
    keys = ("node", "job", "reason", "action", "beneficiary", "chosen_by", "frees")
    more = {key: value for key in ("domain", "destination") if (value := getattr(eviction, key))}
    return {"pod": eviction.key, **{key: getattr(eviction, key) for key in keys}, **more}


def _timing(report: Report) -> dict[str, Any]:
    """From open to close, and each part alone."""
    actions = {
        part: _rounded(spent) for part, spent in report.seconds.items() if part not in ("open", "close")
    }
    return {
        "cycle_s": _rounded(sum(report.seconds.values())),
        "open_s": _rounded(report.seconds.get("open", 0.0)),
        "actions": actions,
        "close_s": _rounded(report.seconds.get("close", 0.0)),
    }


def _problem(problem: Any) -> dict[str, str]:
    return {"file": problem.file, "object": problem.subject, "field": problem.field, "problem": problem.text}


def _rounded(seconds: float) -> float:
    return round(seconds, 6)
