"""Workloads drawn from a generator, the same for the same seed on every machine.

Each quantity of each class has random numbers of its own, so that another distribution of one leaves the others as
they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice, takewhile
from math import ceil, inf
from random import Random

from stromboli.api import names
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.workloads.distributions import Amount, Choice, sampled, weighted_index
from stromboli.simulator.workloads.generator_schema import (
    MAX_GENERATED,
    Generator,
    JobClass,
    NodeGroup,
    TimeLimit,
    Users,
    WeightedName,
)
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.simulator.workloads.time_spans import LONGEST_SPAN, seconds

MOST_PODS = 100_000
"""Pods of a generated job."""
_ASKED_FOR = (300, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200)
_DAY = 86_400


def generate(generator: Generator, seed: int | None = None) -> Workload:
    """The workload of a generator that was checked; another seed than its own draws another one of the same kind."""
    chosen = generator.seed if seed is None else seed
    makers = [_JobMaker(each, chosen) for each in generator.classes]
    span = inf if generator.span is None else seconds(generator.span)
    streams = [_own(place, maker) for place, maker in enumerate(makers)]
    streams.append(_common(generator, makers, chosen))
    merged = takewhile(
        lambda arrival: arrival[0] <= min(span, LONGEST_SPAN), merge(*streams, key=lambda each: each[:2])
    )
    most = MAX_GENERATED if generator.count is None else generator.count
    jobs = tuple(maker.job(round(moment, 3)) for moment, _, maker in islice(merged, most))
    notes = [f"generated with seed {chosen}"]
    if len(jobs) == MAX_GENERATED:
        notes.append(f"cut after {MAX_GENERATED} jobs")
    return Workload(
        generator.name, jobs, tuple(_nodes(generator)), tuple(_queues(generator, jobs)), tuple(notes)
    )


_Arrivals = Iterator[tuple[float, int, "_JobMaker"]]


def _own(place: int, maker: _JobMaker) -> _Arrivals:
    """The arrivals of a class that has its own, until it has its count."""
    own = maker.job_class
    if own.arrivals is not None:
        start = seconds(own.start)
        for moment in islice(own.arrivals.moments(maker.random("arrivals")), own.count):
            yield start + moment, place, maker


def _common(generator: Generator, makers: list[_JobMaker], seed: int) -> _Arrivals:
    """The arrivals of classes without their own, until every class has its count."""
    sharing = [(place, maker) for place, maker in enumerate(makers) if maker.job_class.arrivals is None]
    if generator.arrivals is None or not sharing:
        return
    choice = Random(f"{seed}/class")
    left = [inf if maker.job_class.count is None else maker.job_class.count for _, maker in sharing]
    weights = [maker.job_class.share for _, maker in sharing]
    for moment in generator.arrivals.moments(Random(f"{seed}/arrivals")):
        open_weights = [weight if count > 0 else 0.0 for weight, count in zip(weights, left, strict=True)]
        if not any(open_weights):
            return
        chosen = weighted_index(choice, open_weights)
        left[chosen] -= 1
        yield moment, *sharing[chosen]


class _JobMaker:
    """Makes the jobs of a class, one after the other."""

    def __init__(self, job_class: JobClass, seed: int) -> None:
        self.job_class = job_class
        self._seed = seed
        self._streams: dict[str, Random] = {}
        self._made = 0
        self._shares: dict[int, tuple[float, ...]] = {}

    def job(self, moment: float) -> SubmittedJob:
        own = self.job_class
        pods = min(max(round(sampled(own.pods, self.random("pods"))), 1), MOST_PODS)
        run_time = inf if own.run_time is None else self._run_time(own.run_time, pods)
        name = f"{own.name}-{self._made}"
        self._made += 1
        return SubmittedJob(
            name,
            moment,
            run_time,
            pods,
            self._minimum(pods),
            self._requests(pods),
            None if own.time_limit is None else self._time_limit(own.time_limit, run_time, pods),
            self._name("queue", own.queue),
            self._name("user", own.user),
            own.namespace,
            own.priority
            if isinstance(own.priority, int)
            else round(sampled(own.priority, self.random("priority"), pods)),
            own.labels,
            own.annotations,
            own.spec,
        )

    def _run_time(self, amount: Amount, pods: int) -> float:
        """Within what can be saved and read back, however long the tail of its distribution is."""
        return min(sampled(amount, self.random("runTime"), pods), LONGEST_SPAN)

    def random(self, quantity: str) -> Random:
        """The random numbers of a quantity."""
        if quantity not in self._streams:
            self._streams[quantity] = Random(f"{self._seed}/{self.job_class.name}/{quantity}")
        return self._streams[quantity]

    def _minimum(self, pods: int) -> int | None:
        elastic = self.job_class.elastic
        if elastic is None or self.random("elastic").random() >= elastic.share:
            return None
        return min(max(ceil(elastic.minimum * pods), 1), pods)

    def _requests(self, pods: int) -> dict[str, int | str]:
        requests: dict[str, int | str] = {}
        for name, amount in self.job_class.requests.items():
            if isinstance(amount, Choice):
                picked = amount.pick(self.random(name))
                requests[name] = picked if isinstance(picked, str) else _quantity(picked)
            elif isinstance(amount, int | str):
                requests[name] = amount
            elif isinstance(amount, float):
                requests[name] = _quantity(amount)
            else:
                requests[name] = round(amount.sample(self.random(name), pods))
        return requests

    def _time_limit(self, limit: TimeLimit, run_time: float, pods: int) -> float:
        told = run_time * sampled(limit.factor, self.random("timeLimit"), pods)
        if limit.round:
            told = float(next((step for step in _ASKED_FOR if step >= told), ceil(told / _DAY) * _DAY))
        if limit.max is not None:
            told = min(told, seconds(limit.max))
        return round(min(told, LONGEST_SPAN), 3)

    def _name(self, field: str, choice: str | Users | tuple[WeightedName, ...]) -> str:
        if isinstance(choice, str):
            return choice
        if isinstance(choice, Users):
            if choice.count not in self._shares:
                self._shares[choice.count] = tuple(n**-choice.zipf for n in range(1, choice.count + 1))
            return f"{choice.prefix}{weighted_index(self.random(field), self._shares[choice.count]) + 1}"
        return choice[weighted_index(self.random(field), [each.weight for each in choice])].name


def _quantity(number: float) -> int | str:
    return int(number) if number == int(number) else f"{round(number * 1000)}m"


def _nodes(generator: Generator) -> Iterator[Manifest]:
    for group in generator.nodes:
        yield from (_node(group, f"{group.name}-{number}") for number in range(group.count))


def _node(group: NodeGroup, name: str) -> Manifest:
    sizes = {names.PODS: "110", names.MEMORY: "256Gi"} | {
        key: str(size) for key, size in group.allocatable.items()
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {names.HOSTNAME: name, **group.labels}},
        "status": {"allocatable": sizes, "capacity": sizes},
    }


def _queues(generator: Generator, jobs: tuple[SubmittedJob, ...]) -> Iterator[Manifest]:
    """The queues that are described, and those that jobs only name."""
    described = {queue.name: queue.spec for queue in generator.queues}
    named = sorted({job.queue for job in jobs} - {"", names.DEFAULT_QUEUE} - described.keys())
    for name, spec in [*described.items(), *((name, {}) for name in named)]:
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, **spec},
            "status": {"state": "Open"},
        }
