"""A moment of a cluster as plain data, as `stromboli top -o json` prints it and frames show it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stromboli.api import names
from stromboli.api.node_state import is_gpu
from stromboli.api.resources.quantity import milli
from stromboli.cli.live.cluster_records import (
    LONGEST_NAME,
    Amounts,
    ClusterRecords,
    GroupRecord,
    JobRecord,
    PodSums,
)
from stromboli.cli.live.shares_by_policy import (
    QueueDemand,
    declared_shares,
    queue_shares,
    sharable_amounts,
)

if TYPE_CHECKING:
    from stromboli.cli.status.cluster_policy import PolicyInForce
    from stromboli.engine.catalog import Catalog

Content = dict[str, Any]
WAITING = (names.GROUP_PENDING, names.GROUP_INQUEUE)
GPU = "gpu"
SHARES_SECONDS = 2.0
"""The shortest time between two questions to the policy."""
MOST_LISTS = 50
"""That are kept: one for each filter that is typed."""
log = logging.getLogger(__name__)
_NONE = PodSums()


class ClusterContent:
    """Lists that are computed when they are asked for, and again when something has changed."""

    def __init__(
        self, records: ClusterRecords, policy: PolicyInForce | None, catalog: Catalog | None
    ) -> None:
        self.records = records
        self._policy = policy
        self._catalog = catalog
        self._known: dict[str, tuple[int, list[Content]]] = {}
        self._shares: dict[str, Content] = {}
        self._shares_of = (-1, 0.0)
        self._frozen = False

    def freeze(self, frozen: bool) -> None:
        """Keep what is shown as it is now, or let it change again."""
        if frozen:
            self.snapshot(time.time())
        self._frozen = frozen

    def use_policy(self, policy: PolicyInForce | None) -> None:
        """Ask another policy for shares from now on."""
        if policy is not None and (self._policy is None or self._policy.policy != policy.policy):
            self._shares_of = (-1, 0.0)
            self._known.clear()
        self._policy = policy

    @property
    def policy_origin(self) -> str:
        return self._policy.origin if self._policy is not None else "what queues declare"

    @property
    def resources(self) -> list[str]:
        """CPU and memory, and GPUs where there are any."""
        has_gpus = any(amount for name, amount in self.records.total.items() if is_gpu(name))
        return [names.CPU, names.MEMORY, *([GPU] if has_gpus else [])]

    def snapshot(self, now: float) -> Content:
        """All of it."""
        return {
            "time": now,
            "policy": self.policy_origin,
            "summary": self.summary(),
            "queues": self.queues(),
            "jobs": self.jobs(),
            "nodes": self.nodes(),
            "news": self.news(),
        }

    def summary(self) -> Content:
        """How many nodes, jobs and pods there are, and what they use."""
        return self.cached("summary", self._summary)[0]

    def _summary(self) -> list[Content]:
        records = self.records
        phases = Counter(group.phase for group in records.groups.values())
        pods = records.of_all
        summary = {
            "nodes": dict(Counter(node.state for node in records.nodes.values())),
            "jobs": {
                "running": phases[names.GROUP_RUNNING],
                "waiting": sum(phases[phase] for phase in WAITING),
                "completed": phases[names.GROUP_COMPLETED],
            },
            "pods": {
                "running": pods.running,
                "starting": pods.placed - pods.running,
                "waiting": pods.pending,
            },
            "used": shown_amounts(pods.used),
            "total": shown_amounts(records.total),
        }
        return [summary]

    # -- lists

    def cached(self, name: str, compute: Callable[[], list[Content]]) -> list[Content]:
        """A list that is computed again only once something has changed."""
        if len(self._known) > MOST_LISTS:
            self._known.clear()
        known = self._known.get(name)
        if known is None or (known[0] != self.records.version and not self._frozen):
            known = self._known[name] = self.records.version, compute()
        return known[1]

    def queues(self) -> list[Content]:
        """By name."""
        if not self.is_settled and self._shares_are_due() and not self._frozen:
            self._known.clear()
        return self.cached("queues", self._queues)

    def jobs(self) -> list[Content]:
        """Those that wait and those that run."""
        return self.cached("jobs", self._jobs)

    def nodes(self) -> list[Content]:
        return self.cached("nodes", self._nodes)

    def news(self) -> list[Content]:
        """The latest first."""
        return self.cached("news", self._news)

    def _news(self) -> list[Content]:
        latest = sorted(self.records.news, key=lambda news: -news.time)
        return [
            {
                "time": news.time,
                "what": news.what,
                "subject": news.subject,
                "pods": news.pods,
                "text": news.text,
                "group": news.group,
            }
            for news in latest
        ]

    def all_jobs(self) -> list[Content]:
        """By namespace and name; those that have ended too, and Jobs that have no PodGroup yet.

        `phase` is what the job controller says, `scheduling` that of the PodGroup; `pending` are pods that wait.
        `toCome` are the pods of a gang that is not let in and has none, and `asks` what they will ask for together.
        `created` is when the Job was: it has another PodGroup each time it is resumed.
        """
        return self.cached("all jobs", self._all_jobs)

    def _all_jobs(self) -> list[Content]:
        records = self.records
        rows, grouped = [], set()
        for key, group in records.groups.items():
            sums = records.of_group.get(key, _NONE)
            row = {**_job(group, sums), "group": key, "scheduling": group.phase, "pending": sums.pending}
            row |= _to_come(group, sums)
            if group.kind == "job":
                grouped.add(f"{group.namespace}/{group.name}")
                job = records.jobs.get(f"{group.namespace}/{group.name}")
                if job is not None:
                    row |= {"phase": job.phase, "created": job.created or group.created}
            rows.append(row)
        rows += [_groupless(key, job) for key, job in records.jobs.items() if key not in grouped]
        return sorted(rows, key=lambda row: (row["namespace"], row["name"], row["group"]))

    def _jobs(self) -> list[Content]:
        of_group = self.records.of_group
        return [
            _job(group, of_group.get(key, _NONE))
            for key, group in self.records.groups.items()
            if group.phase != names.GROUP_COMPLETED
        ]

    def _nodes(self) -> list[Content]:
        of_node = self.records.of_node
        return [
            {
                "name": name,
                "state": node.state,
                "pods": of_node.get(name, _NONE).placed,
                "used": shown_amounts(of_node.get(name, _NONE).used),
                "total": shown_amounts(node.allocatable),
            }
            for name, node in self.records.nodes.items()
        ]

    def _queues(self) -> list[Content]:
        demands: dict[str, QueueDemand] = {}
        counts: dict[str, Counter[str]] = {}
        for key, group in self.records.groups.items():
            counts.setdefault(group.queue, Counter())[group.phase] += 1
            if (sums := self.records.of_group.get(key)) is not None:
                demand = demands.setdefault(group.queue, QueueDemand({}, {}))
                _add(demand.used, sums.used)
                _add(demand.waiting, sums.waiting)
        shares = self._current_shares(demands)
        rows = []
        for name, record in sorted(self.records.queues.items()):
            share, count = shares.get(name, {}), counts.get(name, Counter())
            used = share.get("used")
            demand = demands.get(name, QueueDemand({}, {}))
            rows.append(
                {
                    "name": name,
                    "parent": record.object.spec.parent[:LONGEST_NAME],
                    "state": record.state,
                    "running": count[names.GROUP_RUNNING],
                    "waiting": sum(count[phase] for phase in WAITING),
                    "weight": record.object.spec.weight,
                    "used": shown_amounts(demand.used) if used is None else from_quantities(used),
                    "pending": shown_amounts(demand.waiting),
                    "deserved": from_quantities(share.get("deserved") or {}),
                    "guarantee": from_quantities(share.get("guarantee") or {}),
                    "capability": from_quantities(share.get("capability") or {}),
                }
            )
        return rows

    def _current_shares(self, demands: dict[str, QueueDemand]) -> dict[str, Content]:
        """By the policy, at most every few seconds."""
        if not self._shares_are_due():
            return self._without_use(self._shares)
        objects = [record.object for record in self.records.queues.values()]
        self._shares_of = self.records.version, time.monotonic()
        if self._policy is None or self._catalog is None:
            self._shares = declared_shares(objects)
            return self._shares
        try:
            self._shares = queue_shares(
                objects,
                sharable_amounts(self.records),
                demands,
                self._policy.policy,
                self._catalog,
                time.time(),
            )
        except Exception:  # a plugin of the user's, or a queue that no policy can use
            log.debug("shares of queues", exc_info=True)
            self._shares = declared_shares(objects)
        return self._shares

    @property
    def is_settled(self) -> bool:
        """Whether shares are those of the latest change."""
        return self._shares_of[0] == self.records.version

    def _shares_are_due(self) -> bool:
        version, moment = self._shares_of
        return version < 0 or time.monotonic() - moment >= SHARES_SECONDS

    @staticmethod
    def _without_use(shares: dict[str, Content]) -> dict[str, Content]:
        """Shares of a moment ago; what is used has changed since, except in a tree, where it is a sum."""
        parents = {share.get("parent") for share in shares.values()}
        return {
            name: share if name in parents else {key: value for key, value in share.items() if key != "used"}
            for name, share in shares.items()
        }


def _job(group: GroupRecord, sums: PodSums) -> Content:
    return {
        "namespace": group.namespace,
        "name": group.name,
        "kind": group.kind,
        "queue": group.queue,
        "phase": group.phase,
        "running": sums.running,
        "pods": sums.placed + sums.pending,
        "minMember": group.minimum,
        "created": group.created,
        "used": shown_amounts(sums.used),
        "waiting": shown_amounts(sums.waiting),
        "waitsFor": _waits_for(group, sums),
    }


def _groupless(key: str, job: JobRecord) -> Content:
    """A Job that has no PodGroup: it was submitted just now, or has ended."""
    namespace, _, name = key.partition("/")
    return {
        "namespace": namespace,
        "name": name,
        "kind": "job",
        "queue": job.queue,
        "phase": job.phase,
        "running": 0,
        "pods": 0,
        "minMember": job.minimum,
        "created": job.created,
        "used": {},
        "waiting": {},
        "waitsFor": "",
        "group": "",
        "scheduling": "",
        "pending": 0,
        "toCome": 0,
        "asks": {},
    }


def _to_come(group: GroupRecord, sums: PodSums) -> Content:
    """The pods of a gang that is not let in, and has none before it is."""
    if group.phase != names.GROUP_PENDING or not sums.is_empty:
        return {"toCome": 0, "asks": {}}
    return {"toCome": group.minimum, "asks": shown_amounts(group.asks)}


def _waits_for(group: GroupRecord, sums: PodSums) -> str:
    """Why it or some of its pods wait, in a few words; empty if none do."""
    if group.phase not in WAITING:
        return _others_wait_for(group, sums) if sums.pending else ""
    if group.reason:
        return group.reason
    if group.phase == names.GROUP_PENDING:
        return f"not admitted to queue {group.queue} yet"
    exist = sums.placed + sums.pending
    if exist < group.minimum:
        return f"{exist} of {group.minimum} pods exist"
    return "its pods start" if sums.placed >= group.minimum else "let in, not placed yet"


def _others_wait_for(group: GroupRecord, sums: PodSums) -> str:
    """Why pods of a gang that was placed before wait."""
    all_pods = sums.placed + sums.pending
    return (
        group.reason or sums.common_reason or f"runs with {sums.placed} of {all_pods} pods; the others wait"
    )


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def shown_amounts(amounts: Amounts) -> dict[str, float]:
    """Cores, bytes, and GPUs of whatever maker."""
    gpus = sum(amount for name, amount in amounts.items() if is_gpu(name))
    shown = {
        names.CPU: amounts.get(names.CPU, 0) / 1000,
        names.MEMORY: float(amounts.get(names.MEMORY, 0)),
    }
    return {**shown, GPU: gpus / 1000} if gpus else shown


def from_quantities(resources: dict[str, Any]) -> dict[str, float]:
    """The same of a resource list; what is not named is left out."""
    shown = {
        name: milli(str(resources[name])) / 1000 for name in (names.CPU, names.MEMORY) if name in resources
    }
    gpus = [milli(str(amount)) / 1000 for name, amount in resources.items() if is_gpu(name)]
    return {**shown, GPU: sum(gpus)} if gpus else shown
