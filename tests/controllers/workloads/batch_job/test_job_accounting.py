"""Whatever happens to the pods of a Job, and whenever its controller ends: all ends are counted, each once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.controllers.workloads.batch_job.pod_ends import is_tracked
from tests.controllers.workloads.batch_job.simulated_batch_job import SimulatedBatchJob
from tests.number_of_examples import scaled

STEPS = st.one_of(
    st.tuples(st.sampled_from(["succeed", "fail", "delete", "succeed and delete"]), st.integers(0, 5)),
    st.tuples(st.just("sync"), st.just(0)),
    st.tuples(st.just("crash"), st.integers(0, 8)),
)
SPECS = st.one_of(
    st.fixed_dictionaries({"parallelism": st.integers(1, 4), "completions": st.integers(1, 6)}),
    st.fixed_dictionaries(
        {
            "parallelism": st.integers(1, 4),
            "completions": st.integers(1, 6),
            "completionMode": st.just("Indexed"),
            "backoffLimitPerIndex": st.none() | st.integers(0, 2),
        }
    ),
)
Step = tuple[str, int]


def act(world: SimulatedBatchJob, step: Step, ends: Counter[str]) -> None:
    """Do a step, and count how pods end by it."""
    action, number = step
    if action == "crash":
        world.sync_and_crash(number)
    elif action == "sync":
        world.sync()
    elif world.active and world.job.finished is None and not world.conditions:
        pod = world.active[number % len(world.active)]
        ends["succeeded" if action.startswith("succeed") else "failed"] += 1
        if action != "delete":
            world.end(pod, int(action == "fail"))
        if action.endswith("delete"):
            world.delete(pod)


@settings(max_examples=scaled(150), deadline=None)
@given(SPECS, st.lists(STEPS, max_size=40))
@example({"parallelism": 2, "completions": 2}, [("sync", 0), ("succeed", 0), ("crash", 2), ("delete", 0)])
@example(
    {"parallelism": 1, "completions": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 1},
    [("sync", 0), ("fail", 0), ("crash", 1), ("crash", 1), ("delete", 0)],
)
def test_every_end_is_counted_once(spec: dict[str, Any], steps: list[Step]) -> None:
    world, ends = SimulatedBatchJob(backoffLimit=2**31 - 1, **spec), Counter[str]()
    for step in steps:
        act(world, step, ends)
        status = world.status
        assert status.succeeded <= ends["succeeded"]
        assert status.failed <= ends["failed"] or world.conditions
        world.now += 3600
    running = len(world.active)
    world.settle()
    assert world.most_active <= spec["parallelism"]
    assert world.status.succeeded == ends["succeeded"] <= spec["completions"]
    if "FailureTarget" not in world.conditions:
        assert world.status.failed == ends["failed"]
    else:  # pods that were still active fail with the job
        assert ends["failed"] <= world.status.failed <= ends["failed"] + running
    assert not world.status.uncounted_terminated_pods
    assert world.status.active == len(world.active)


@settings(max_examples=scaled(100), deadline=None)
@given(SPECS, st.lists(STEPS, max_size=30), st.integers(0, 30))
def test_every_job_comes_to_an_end_and_leaves_no_finalizer(
    spec: dict[str, Any], steps: list[Step], failures: int
) -> None:
    world = SimulatedBatchJob(backoffLimit=failures, **spec)
    for step in steps:
        act(world, step, Counter())
        world.now += 3600
    for _ in range(100):
        if world.job.finished is not None:
            break
        for pod in world.active:
            world.end(pod)
        world.sync()
    assert world.job.finished is not None
    assert not [pod for pod in world.pods.values() if is_tracked(pod)]
    assert (world.job.finished.type == "Complete") == (world.status.succeeded == spec["completions"])
    assert world.status.succeeded <= spec["completions"]
    assert world.most_active <= spec["parallelism"]
    assert len(set(world.reasons)) == len(world.reasons) == 1
