"""The metrics that a scheduler shows, with Volcano's names, labels and buckets (spec 05 13), and a few of our own."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from stromboli.daemon.metric_types import OWN_PREFIX, PREFIX, MetricSet, exponential, forget

Counts = NDArray[np.int64]
JOB = ("job_name", "queue", "job_namespace")
QUEUE = ("queue_name",)
TIER_UNIT = ("tier", "unit")
QUEUE_FAMILIES = ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")


class StageHistogram(Collector):
    """Durations by stage, many at once: they are measured task by task. From any thread."""

    def __init__(self, name: str, documentation: str, buckets: Sequence[float], registry: CollectorRegistry):
        self._name = name
        self._documentation = documentation
        self._bounds = tuple(buckets)
        self._stages: dict[str, tuple[Counts, float]] = {}
        """How many values each bucket has, the last one those beyond all bounds, and their sum."""
        self._lock = Lock()
        registry.register(self)

    def observe(self, stage: str, *values: float) -> None:
        if len(values) == 1:
            self._observe_one(stage, values[0])
        elif values:
            places = np.searchsorted(self._bounds, values)
            self._add(stage, np.bincount(places, minlength=len(self._bounds) + 1), sum(values))

    def _observe_one(self, stage: str, value: float) -> None:
        place = bisect_left(self._bounds, value)
        with self._lock:
            entry = self._stages.get(stage)
            if entry is not None:
                entry[0][place] += 1
                self._stages[stage] = entry[0], entry[1] + value
                return
        self._add(stage, np.bincount([place], minlength=len(self._bounds) + 1), value)

    def _add(self, stage: str, added: Counts, total: float) -> None:
        with self._lock:
            before = self._stages.get(stage)
            self._stages[stage] = (added, total) if before is None else (before[0] + added, before[1] + total)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=("stage",))
        names = [floatToGoString(bound) for bound in (*self._bounds, math.inf)]  # type: ignore[no-untyped-call]
        with self._lock:
            stages = {
                stage: (np.cumsum(counts).tolist(), total) for stage, (counts, total) in self._stages.items()
            }
        for stage, (counts, total) in stages.items():
            family.add_metric((stage,), list(zip(names, counts, strict=True)), total)
        yield family


class CyclesLacking(Collector):
    """In how many cycles jobs lacked members, by the name of the job: a cycle counts for all without a look at any."""

    def __init__(self, name: str, documentation: str, registry: CollectorRegistry):
        self._name = name
        self._documentation = documentation
        self._cycles = 0
        self._known: dict[str, tuple[int, int, int]] = {}
        """How many jobs of a name lack members, since which cycle, and what they had counted before."""
        self._lock = Lock()
        registry.register(self)

    def count_cycle(self) -> None:
        """A cycle counts for each job that lacks members now."""
        with self._lock:
            self._cycles += 1

    def shift(self, name: str, jobs: int) -> None:
        """So many jobs of a name more, or less, lack members from now on."""
        with self._lock:
            lacking, _, counted = known = self._known.get(name, (0, self._cycles, 0))
            self._known[name] = lacking + jobs, self._cycles, counted + self._since(known)

    def remove(self, name: str) -> None:
        """Forget what was counted for a name."""
        with self._lock:
            lacking, _, _ = self._known.pop(name, (0, 0, 0))
            if lacking:
                self._known[name] = lacking, self._cycles, 0

    def _since(self, known: tuple[int, int, int]) -> int:
        lacking, begin, _ = known
        return lacking * (self._cycles - begin)

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(self._name, self._documentation, labels=("job_id",))
        with self._lock:
            counts = {name: known[2] + self._since(known) for name, known in self._known.items()}
        for name, count in counts.items():
            family.add_metric((name,), count)
        yield family


class QueueAmounts:
    """The gauges of one family of amounts of a queue: CPU, memory, other resources."""

    def __init__(self, family: str, registry: CollectorRegistry):
        name = f"{PREFIX}queue_{family}"
        text = f"What a queue has: {family.replace('_', ' ')}"
        self._cpu = Gauge(f"{name}_milli_cpu", f"{text}, in thousandths of a core", QUEUE, registry=registry)
        self._memory = Gauge(f"{name}_memory_bytes", f"{text}, in bytes", QUEUE, registry=registry)
        self._others = Gauge(
            f"{name}_scalar_resources", f"{text}, other resources", (*QUEUE, "resource"), registry=registry
        )
        self._seen: dict[str, set[str]] = {}

    def set(self, queue: str, amounts: dict[str, float]) -> None:
        """Show these amounts; a resource once seen and now absent is zero."""
        self._cpu.labels(queue).set(amounts.get("cpu", 0.0))
        self._memory.labels(queue).set(amounts.get("memory", 0.0))
        seen = self._seen.setdefault(queue, set())
        seen |= amounts.keys() - {"cpu", "memory"}
        for resource in seen:
            self._others.labels(queue, resource).set(amounts.get(resource, 0.0))

    def remove(self, queue: str) -> None:
        """The queue is gone, or has no such amounts any more."""
        if queue not in self._seen:
            return
        for gauge in (self._cpu, self._memory):
            forget(gauge, queue)
        for resource in self._seen.pop(queue):
            forget(self._others, queue, resource)


class Metrics(MetricSet):
    """All metrics of a scheduler."""

    def __init__(self) -> None:
        super().__init__()
        ms = exponential(1, 5000, 20)
        self.cycle = self._histogram("e2e_scheduling_latency_milliseconds", "A whole cycle", ms)
        self.open = self._histogram("open_session_duration_milliseconds", "Opening a session", ms)
        self.plugin = self._histogram(
            "plugin_scheduling_latency_milliseconds",
            "A plugin opening or closing a session",
            exponential(0.1, 100, 15),
            ("plugin", "OnSession"),
        )
        self.action = self._histogram(
            "action_scheduling_latency_milliseconds", "An action", exponential(1, 2000, 20), ("action",)
        )
        self.task = self._histogram(
            "task_scheduling_latency_milliseconds",
            "From the creation of a pod to a stage",
            exponential(50, 60_000, 30),
            ("stage",),
        )
        self.stage = StageHistogram(
            PREFIX + "scheduling_stage_duration_milliseconds",
            "A stage, task by task",
            exponential(0.1, 500, 20),
            self.registry,
        )
        self.job = self._histogram(
            "e2e_job_scheduling_latency_milliseconds",
            "From the creation of a PodGroup to its binding",
            exponential(100, 120_000, 30),
        )
        self.job_duration = self._gauge("e2e_job_scheduling_duration", "The same for each job, in ms", JOB)
        self.job_start = self._gauge("e2e_job_scheduling_start_time", "When a PodGroup was created", JOB)
        self.job_last = self._gauge("e2e_job_scheduling_last_time", "When a job was last given room", JOB)
        self.attempts = self._counter("schedule_attempts_total", "Tasks tried, by result", ("result",))
        self.victims = self._gauge("pod_preemption_victims", "Victims of the last preemption")
        self.preemptions = self._counter("total_preemption_attempts", "Preemptions tried")
        self.evictions = self._counter("eviction_transactions_total", "Batches of evictions", ("action",))
        self.short_tasks = self._gauge("unschedule_task_count", "Tasks short of minMember", ("job_id",))
        self.short_jobs = self._gauge("unschedule_job_count", "Jobs short of minMember")
        self._bare_counters.append(f"{PREFIX}job_retry_counts")
        self.retries = CyclesLacking(
            f"{PREFIX}job_retry_counts", "Cycles in which a job was not ready", self.registry
        )
        self.job_share = self._gauge("job_share", "A job's dominant share", ("job_ns", "job_id"))
        self.amounts = {family: QueueAmounts(family, self.registry) for family in QUEUE_FAMILIES}
        self.queue_share = self._gauge("queue_share", "What a queue has of what it deserves", QUEUE)
        self.queue_weight = self._gauge("queue_weight", "A queue's weight", QUEUE)
        self.queue_overused = self._gauge(
            "queue_overused", "Whether a queue has more than it deserves", QUEUE
        )
        for name in ("namespace_share", "namespace_weight", "namespace_weighted_share"):
            self._gauge(name, "Declared for dashboards, never set, as in Volcano", ("namespace_name",))
        self._add_devices()
        self._add_own()
        self.requests = self._counter(
            "rest_client_requests_total", "Requests by answer", ("code", "method", "host"), prefix=""
        )
        ProcessCollector(registry=self.registry)

    def _add_devices(self) -> None:
        """Of GPUs that `deviceshare` shares out."""
        device = ("devID", "NodeName")
        self.card_sharers = self._gauge("vgpu_device_shared_number", "Shares given out of a card", device)
        self.card_memory = self._gauge("vgpu_device_allocated_memory", "Memory given out of a card", device)
        self.card_cores = self._gauge(
            "vgpu_device_allocated_cores", "Cores given out of a card, in percent", device
        )
        self.card_size = self._gauge("vgpu_device_memory_limit", "Memory of a card", device)
        of_pod = "vgpu_device_{}_allocation_for_a_certain_pod"
        self.pod_card_memory = self._gauge(
            of_pod.format("memory"), "Memory of a card that a pod has", (*device, "podName")
        )
        self.pod_card_cores = self._gauge(
            of_pod.format("core"), "Cores of a card that a pod has, in percent", (*device, "podName")
        )

    def _add_own(self) -> None:
        own = OWN_PREFIX
        self.pending_jobs = self._gauge(
            "queue_pending_jobs", "Jobs that wait to be let in or to be placed", QUEUE, own
        )
        self.pending_tasks = self._gauge("queue_pending_tasks", "Pending tasks", QUEUE, own)
        self.oldest = self._gauge("queue_oldest_pending_seconds", "Age of the oldest pending job", QUEUE, own)
        self.decisions = self._counter("decisions_total", "Decisions, by kind", ("decision",), own)
        self.failures = self._counter(
            "write_failures_total", "Binds and evictions that failed", ("decision",), own
        )
        self.young_evictions = self._counter(
            "young_evictions_total",
            "Pods evicted within five minutes of their start, by action",
            ("action",),
            own,
        )
        self.lost = self._counter("lost_cycles_total", "Cycles that came to nothing", (), own)
        plugin = ("plugin", "point")
        self.plugin_running = self._gauge(
            "plugin_running_seconds", "A call of a plugin that has not returned for long", plugin, own
        )
        self.slow_plugin_calls = self._counter(
            "slow_plugin_calls_total", "Calls of plugins that did not return for long", plugin, own
        )
        self.set_aside = self._gauge(
            "plugin_set_aside", "1 for an order or a score that failed for all jobs", plugin, own
        )
        self.tier_hyper_nodes = self._gauge(
            "topology_hyper_nodes", "HyperNodes by how many of their nodes are free", ("tier", "state"), own
        )
        self.tier_occupancy = self._gauge(
            "topology_occupancy_ratio", "Part of a tier that is in use", ("tier", "resource"), own
        )
        self.largest_gang = self._gauge(
            "topology_largest_gang", "What is free below one HyperNode of a tier at most", TIER_UNIT, own
        )
        self.fragmentation = self._gauge(
            "topology_fragmentation_ratio",
            "How much smaller the largest gang is than it could be",
            TIER_UNIT,
            own,
        )
        self.left_out = self._gauge("topology_left_out_hyper_nodes", "HyperNodes that are left out", (), own)
        self.mirror_lag = self._gauge("mirror_lag_seconds", "Age of the oldest unapplied change", (), own)
        self.waiting_writes = self._gauge("waiting_writes", "Objects with something to be written", (), own)
        self.waiting_binds = self._gauge(
            "waiting_binds", "Binds that wait for volumes, devices or others of their gang", (), own
        )
        self.dropped_events = self._gauge(
            "dropped_events", "Events left out because there were too many", (), own
        )
        self.leader = self._gauge("leader", "1 if this one leads", (), own)
