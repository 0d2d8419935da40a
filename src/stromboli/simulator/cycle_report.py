"""What a cycle did, as plain data for people, files and assertions."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from stromboli.api import names
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind, Event, Evict
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.plugin import Promise
from stromboli.engine.topology.allocated_domains import GangDomain, gang_domains


class Report(Struct):
    """The decisions of one cycle, or of several: made by `of` and `together`."""

    binds: dict[str, str]
    """Pod to node."""
    bound_per_job: dict[str, int]
    evicted: list[str]
    pipelined: dict[str, str]
    """Pods held for a node that is still being freed when the cycle ends."""
    phases: dict[str, str]
    """Of every PodGroup, after the cycle."""
    pending: dict[str, Diagnosis]
    """Jobs that wait, each with its reason."""
    evictions: list[Evict]
    seconds: dict[str, float]
    """Open, each action, close."""
    failures: list[str]
    """Plugins that raised, each in a sentence."""
    lost: str = ""
    """Why the cycle came to nothing, if it did."""
    ignored: dict[str, str] = {}
    """What PodGroups and their pods ask for without effect, by PodGroup."""
    promised: dict[str, Promise] = {}
    """When jobs that wait start at the latest, by PodGroup."""
    domains: dict[str, GangDomain] = {}
    """In which HyperNode gangs with a topology are after the cycle, by PodGroup."""

    @classmethod
    def of(cls, outcome: Outcome) -> Report:
        """The report of a cycle that has just run."""
        decided = outcome.decisions
        evictions = [decision for decision in decided if isinstance(decision, Evict)]
        binds = [decision for decision in decided if isinstance(decision, Bind)]
        jobs = outcome.session.cluster.jobs.values()
        return cls(
            binds={bind.key: bind.node for bind in binds},
            bound_per_job=dict(Counter(bind.job for bind in binds)),
            evicted=sorted(eviction.key for eviction in evictions),
            pipelined=dict(outcome.pipelined),
            phases={job.key: job.phase for job in jobs if job.group is not None},
            pending={job.key: waits for job in jobs if (waits := outcome.explain(job))},
            evictions=evictions,
            seconds=outcome.seconds,
            failures=list(dict.fromkeys(failure.message for failure in outcome.session.failures)),
            lost=outcome.lost.message if outcome.lost else "",
            ignored={
                f"{decision.namespace}/{decision.name}": decision.message
                for decision in decided
                if isinstance(decision, Event) and decision.reason == names.EVENT_FIELD_IGNORED
            },
            promised={
                job.key: promise
                for job in jobs
                if (job in outcome.session.cluster.backlog or not job.tasks)
                and (promise := outcome.session.rules.promised(job))
            },
            domains={job.key: domain for job, domain in gang_domains(outcome.session.cluster)},
        )

    @classmethod
    def together(cls, reports: list[Report]) -> Report:
        """All decisions of several cycles, and how things stand after the last."""
        last = reports[-1]
        return cls(
            binds={pod: node for report in reports for pod, node in report.binds.items()},
            bound_per_job=dict(sum((Counter(report.bound_per_job) for report in reports), Counter())),
            evicted=sorted(pod for report in reports for pod in report.evicted),
            pipelined=last.pipelined,
            phases=last.phases,
            pending=last.pending,
            evictions=[eviction for report in reports for eviction in report.evictions],
            seconds=last.seconds,
            failures=list(dict.fromkeys(text for report in reports for text in report.failures)),
            lost=next((report.lost for report in reports if report.lost), ""),
            ignored={job: text for report in reports for job, text in report.ignored.items()},
            promised=last.promised,
            domains=last.domains,
        )
