"""A job to which a start was promised starts by then, as long as all jobs keep to their time limits."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.manifests.object_defaults import implied_queues
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind
from stromboli.policy.policy import load_policy
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.cluster_notation import nodes as node_manifests
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.policy_text import known_extensions
from tests.properties.strategies import examples

POLICY = """
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: nodeorder
  - name: backfill-reservation
    arguments: {{mode: {mode}}}
"""
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Submission:
    """A gang: when it comes, what it asks for, and how long it runs at most and in truth."""

    at: int
    pods: int
    cpu: int
    gpu: int
    limit: int
    run: int
    priority: int


@st.composite
def submissions(draw: st.DrawFn, priorities: int) -> list[Submission]:
    jobs = []
    for _ in range(draw(st.integers(3, 12))):
        limit = draw(st.integers(1, 12))
        jobs.append(
            Submission(
                draw(st.integers(0, 15)),
                draw(st.integers(1, 4)),
                draw(st.integers(1, 4)),
                draw(st.integers(0, 1)),
                limit,
                draw(st.integers(1, limit)),
                draw(st.integers(0, priorities)),
            )
        )
    return sorted(jobs, key=lambda job: job.at)


@dataclass
class Timeline:
    """A cluster in virtual time, a tick a minute, with what was promised and what came of it."""

    mode: str
    nodes: str
    jobs: list[Submission]
    starts: dict[str, float] = field(default_factory=dict)
    promises: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world = Rehearsal(now=0.0)
        for queue in implied_queues([]):
            self.world.intake.put(queue)
        for manifest in node_manifests(self.nodes):
            self.world.add(manifest)
        catalog = known_extensions()
        self.scheduler = Scheduler(self.world, load_policy(POLICY.format(mode=self.mode), catalog), catalog)
        self.ends: list[tuple[float, str]] = []

    def play(self) -> None:
        """From event to event until all has ended that can."""
        names = {f"job{number:02d}": job for number, job in enumerate(self.jobs)}
        to_come = list(names.items())
        while to_come or self.ends:
            moments = [60.0 * to_come[0][1].at] if to_come else []
            now = min([*moments, *([self.ends[0][0]] if self.ends else [])])
            self.world.sleep(now - self.world.now())
            while self.ends and self.ends[0][0] <= now:
                self.world.finish(self.world.cluster.tasks[heapq.heappop(self.ends)[1]])
            while to_come and 60.0 * to_come[0][1].at <= now:
                self._submit(*to_come.pop(0))
            self._follow(self.scheduler.cycle(), names, now)
            self.world.sync()

    def _submit(self, name: str, job: Submission) -> None:
        resources = {GPU: job.gpu} if job.gpu else {}
        limit = {"stromboli.sh/time-limit": f"{job.limit}m"}
        self.world.add_job(
            name, pods=job.pods, cpu=job.cpu, resources=resources, priority=job.priority, annotations=limit
        )
        if self.mode == "easy":  # who comes before others may take their place, and their promises with it
            for other in list(self.promises):
                if self.jobs[int(other[3:])].priority < job.priority:
                    del self.promises[other]

    def _follow(self, outcome: Outcome, names: dict[str, Submission], now: float) -> None:
        assert outcome.lost is None
        assert not outcome.session.failures
        for decision in outcome.decisions:
            if isinstance(decision, Bind):
                name = decision.job.partition("/")[2]
                self.starts[name] = now
                heapq.heappush(self.ends, (now + 60.0 * names[name].run, decision.uid))
        for job in outcome.session.cluster.backlog:
            promise = outcome.session.rules.promised(job)
            if promise is not None:
                kept = self.promises.get(job.name, promise.start)
                assert promise.start <= kept, f"{job.name}: {kept} was promised, now {promise.start}"
                self.promises[job.name] = promise.start

    def check(self) -> None:
        """Whoever was promised a start has started by then."""
        late = {
            name: (self.starts.get(name), promised)
            for name, promised in self.promises.items()
            if self.starts.get(name, float("inf")) > promised
        }
        assert late == {}


NODES = (
    "n1 cpu=4,memory=9Gi,pods=20,nvidia.com/gpu=1",
    "n1 cpu=4,memory=9Gi,pods=20; n2 cpu=6,memory=9Gi,pods=20,nvidia.com/gpu=2",
    "n1 cpu=3,memory=9Gi,pods=20; n2 cpu=4,memory=9Gi,pods=20,nvidia.com/gpu=1; n3 cpu=5,memory=9Gi,pods=20",
)


ROOM_COMES_WITH_A_JOB = [
    Submission(at=0, pods=2, cpu=1, gpu=1, limit=1, run=1, priority=0),
    Submission(at=0, pods=1, cpu=1, gpu=1, limit=1, run=1, priority=0),
    Submission(at=1, pods=1, cpu=1, gpu=1, limit=1, run=1, priority=0),
]


@pytest.mark.parametrize("mode", ["easy", "conservative"])
@given(nodes=st.sampled_from(NODES), jobs=submissions(priorities=0))
@example(nodes=NODES[0], jobs=ROOM_COMES_WITH_A_JOB)  # what is promised changes though nothing moves
@examples(15)
def test_a_promise_is_kept(mode: str, nodes: str, jobs: list[Submission]) -> None:
    timeline = Timeline(mode, nodes, jobs)
    timeline.play()
    timeline.check()


@pytest.mark.parametrize("mode", ["easy", "conservative"])
@given(nodes=st.sampled_from(NODES), jobs=submissions(priorities=2))
@examples(10)
def test_a_promise_is_kept_unless_a_job_comes_that_goes_before_it(
    mode: str, nodes: str, jobs: list[Submission]
) -> None:
    timeline = Timeline(mode, nodes, jobs)
    timeline.play()
    timeline.check()
