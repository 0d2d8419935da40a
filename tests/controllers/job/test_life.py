"""Any life of a job: pods fail and vanish, users scale and command, controllers crash half-way and forget everything.

Whatever happened, once all is quiet the counts are those of the pods that exist, nothing hangs, what ended stays ended.
No pod was made twice for one index and version, or asked for while it was seen to be there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stromboli.api import names
from stromboli.controllers.job.job_phases import FINISHED, INACTIVE, Phase
from stromboli.controllers.job.observed_state import CreatePod, Outcome
from stromboli.controllers.job.succeeded_pods import indexes_in, recorded_indexes
from tests.controllers.job.simulated_job import SimulatedJob, make_job, policy, task
from tests.number_of_examples import scaled

EVENTS = ["PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "*"]
ACTIONS = [
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
]
TRANSIENT = {Phase.ABORTING, Phase.COMPLETING, Phase.TERMINATING, Phase.RESTARTING}

policies = st.lists(
    st.one_of(
        st.builds(policy, st.sampled_from(ACTIONS), st.sampled_from(EVENTS)),
        st.builds(policy, st.sampled_from(ACTIONS), st.sampled_from(EVENTS), timeout=st.just("30s")),
        st.builds(policy, st.sampled_from(ACTIONS), exitCode=st.integers(1, 3)),
    ),
    max_size=2,
)


@st.composite
def jobs(draw: st.DrawFn) -> Any:
    tasks = []
    for name in draw(st.sampled_from([["a"], ["a", "b"]])):
        more: dict[str, Any] = {"policies": draw(policies)}
        replicas = draw(st.integers(0, 3))
        if draw(st.booleans()):
            more["minAvailable"] = draw(st.integers(0, replicas))
        if draw(st.booleans()):
            more["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 2}
        if name == "b" and draw(st.booleans()):
            more["dependsOn"] = {"name": ["a"]}
        tasks.append(task(name, replicas, **more))
    total = sum(task["replicas"] for task in tasks)
    spec: dict[str, Any] = {"maxRetry": draw(st.integers(0, 2)), "policies": draw(policies)}
    spec["minAvailable"] = draw(st.integers(0, total))
    if total and draw(st.booleans()):
        spec["minSuccess"] = draw(st.integers(1, total))
    spec["plugins"] = draw(st.sampled_from([{}, {"svc": []}]))
    return make_job(*tasks, **spec)


@dataclass
class Ledger(SimulatedJob):
    """A simulated job that records how pods left, and writes that should not have been made."""

    left: dict[tuple[str, str], str] = field(default_factory=dict)
    """How the last pod of a name (task and index) and a version left."""
    needless: list[str] = field(default_factory=list)

    def reconcile(self) -> Outcome:
        outcome = super().reconcile()
        asked = [
            write.manifest["metadata"]["name"] for write in outcome.writes if isinstance(write, CreatePod)
        ]
        self.needless += [f"{name} was seen" for name in asked if name in self.pods]
        self.needless += [f"{name} asked for twice" for name in set(asked) if asked.count(name) > 1]
        return outcome

    def _create(self, manifest: dict[str, Any]) -> None:
        """A pod comes again in one version if it was taken away, or marked: its part is restarted, or smaller."""
        name, marks = manifest["metadata"]["name"], manifest["metadata"]["annotations"]
        if name not in self.pods:
            which = (name, marks[names.JOB_VERSION])
            if self.left.get(which, "taken") not in ("taken", "marked"):
                self.needless.append(f"{name} made again in version {which[1]}, the first was deleted")
            self.left[which] = "there"
        super()._create(manifest)

    def evict(self, name: str) -> SimulatedJob:
        self._leaves(f"{self.job.name}-{name}", "taken")
        return super().evict(name)

    def remove_deleted(self) -> SimulatedJob:
        for name, pod in self.pods.items():
            if pod.metadata.deletion_timestamp is not None:
                self._leaves(name, "deleted")
        return super().remove_deleted()

    def _leaves(self, name: str, how: str) -> None:
        pod = self.pods[name]
        marks = pod.metadata.annotations
        if pod.metadata.deletion_timestamp is not None:
            how = "marked" if names.OUT_OF_SYNC in marks else "deleted"
        self.left[name, marks[names.JOB_VERSION]] = how


class Life(RuleBasedStateMachine):
    """The simulated job is the cluster; its reconciles are the controller's."""

    @initialize(job=jobs())
    def submit(self, job: Any) -> None:
        self.simulated = Ledger(job)
        self.past: list[dict[str, Any]] = [{}]
        self.ended = ""
        self.version = 0

    # -- the controller

    @rule()
    def reconcile(self) -> None:
        self.simulated.step()

    @rule(done=st.integers(0, 3), forgets=st.booleans())
    def crash(self, done: int, forgets: bool) -> None:
        """Only the first writes of a reconcile are executed."""
        simulated = self.simulated
        for write in simulated.reconcile().writes[:done]:
            simulated.write(write)
        if forgets:
            simulated.restart()

    @rule(age=st.integers(1, 4))
    def look_at_old_pods(self, age: int) -> None:
        """The watch of pods is behind."""
        simulated = self.simulated
        now, simulated.pods = simulated.pods, dict(self.past[-min(age, len(self.past))])
        outcome = simulated.reconcile()
        simulated.pods = now
        for write in outcome.writes:
            simulated.write(write)
        simulated.cache = outcome.cache

    @rule()
    def restart(self) -> None:
        self.simulated.restart()

    @rule()
    def settle(self) -> None:
        """Nothing more happens to pods but that deleted ones go."""
        simulated = self.simulated
        simulated.admits = True
        for _ in range(20):
            simulated.settle()
            if not any(pod.metadata.deletion_timestamp for pod in simulated.pods.values()):
                break
            simulated.remove_deleted()
        self.check_quiet()

    def check_quiet(self) -> None:
        simulated, status = self.simulated, self.simulated.job.status
        by_phase = [pod.status.phase for pod in simulated.pods.values()] + ["Succeeded" for _ in self._lost()]
        assert status.terminating == 0
        assert (status.pending, status.running) == (by_phase.count("Pending"), by_phase.count("Running"))
        assert (status.succeeded, status.failed) == (by_phase.count("Succeeded"), by_phase.count("Failed"))
        counted = sum(count for task in status.task_status_count.values() for count in task.phase.values())
        assert counted == len(by_phase)
        assert status.state.phase not in TRANSIENT
        assert status.min_available == simulated.job.spec.min_available
        assert not simulated.commands
        if status.state.phase in INACTIVE:
            assert simulated.group is None
            assert not simulated.attached
            assert status.pending == status.running == 0
        else:
            assert simulated.group is not None
            for pod in simulated.pods.values():
                old = int(pod.metadata.annotations[names.JOB_VERSION]) < status.version
                assert not old or pod.status.phase in ("Succeeded", "Failed")
                assert names.OUT_OF_SYNC not in pod.metadata.annotations
        assert simulated.requeue_at is None or simulated.requeue_at > simulated.now
        before = simulated.status_writes
        simulated.settle()
        assert simulated.status_writes == before

    def _lost(self) -> list[str]:
        """Pods that succeeded and were deleted."""
        job = self.simulated.job
        tasks = zip(job.spec.tasks, recorded_indexes(job), strict=True)
        succeeded = [f"{job.name}-{task.name}-{index}" for task, bits in tasks for index in indexes_in(bits)]
        return [name for name in succeeded if name not in self.simulated.pods]

    # -- pods

    def _pods(self, *phases: str) -> list[str]:
        pods = self.simulated.pods
        return sorted(name for name in pods if pods[name].status.phase in phases)

    def _remember(self) -> None:
        self.past = [*self.past[-4:], dict(self.simulated.pods)]

    def _short(self, name: str) -> str:
        return name.removeprefix("j-")

    @precondition(lambda self: self._pods("Pending"))
    @rule(data=st.data())
    def run(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._pods("Pending")))
        self.simulated.set_pod(self._short(name), "Running")
        self._remember()

    @rule()
    def run_all(self) -> None:
        for name in self._pods("Pending"):
            self.simulated.set_pod(self._short(name), "Running")
        self._remember()

    @precondition(lambda self: self._pods("Running", "Pending"))
    @rule(data=st.data(), phase=st.sampled_from(["Succeeded", "Failed"]), code=st.integers(0, 3))
    def end(self, data: st.DataObject, phase: str, code: int) -> None:
        name = data.draw(st.sampled_from(self._pods("Running", "Pending")))
        self.simulated.set_pod(self._short(name), phase, code)
        self._remember()

    @rule(phase=st.sampled_from(["Succeeded", "Failed"]))
    def end_all(self, phase: str) -> None:
        for name in self._pods("Running"):
            self.simulated.set_pod(self._short(name), phase)
        self._remember()

    @precondition(lambda self: self._pods("Running"))
    @rule(data=st.data())
    def restart_container(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self._pods("Running")))
        self.simulated.set_pod(self._short(name), "Running", containerStatuses=[{"restartCount": 3}])
        self._remember()

    @precondition(lambda self: self.simulated.pods)
    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.simulated.pods)))
        self.simulated.evict(self._short(name))
        self._remember()

    @rule()
    def remove_deleted(self) -> None:
        self.simulated.remove_deleted()
        self._remember()

    # -- users and the scheduler

    @rule(action=st.sampled_from([*ACTIONS, "Nonsense"]), uid=st.sampled_from(["u1", "u1", "u0"]))
    def command(self, action: str, uid: str) -> None:
        self.simulated.ask(action, uid=uid)

    @rule()
    def restart_in_vain(self) -> None:
        """The controller crashes when it has written that the job is restarted."""
        self.simulated.ask("RestartJob")
        self.crash(1, True)

    @rule(a=st.integers(0, 3), b=st.integers(0, 3))
    def scale(self, a: int, b: int) -> None:
        if self.simulated.phase not in INACTIVE:  # finished jobs ignore it
            self.simulated.scale(a=a, b=b)

    @rule(phase=st.sampled_from(["Pending", "Inqueue", "Running", "Unknown"]))
    def schedule(self, phase: str) -> None:
        if self.simulated.group is not None:
            self.simulated.group.status.phase = phase

    @rule(admits=st.booleans())
    def admit(self, admits: bool) -> None:
        self.simulated.admits = admits

    @rule(seconds=st.sampled_from([1, 31]))
    def wait(self, seconds: int) -> None:
        self.simulated.wait(seconds)

    # -- at any time

    @invariant()
    def what_ended_stays_ended(self) -> None:
        if not hasattr(self, "stage"):
            return
        if self.ended:
            assert self.simulated.phase == self.ended
        elif self.simulated.phase in FINISHED:
            self.ended = self.simulated.phase
        status = self.simulated.job.status
        assert status.retry_count <= self.simulated.job.spec.max_retry
        assert status.version >= self.version
        self.version = status.version

    @invariant()
    def no_pod_is_made_twice_and_none_belongs_to_the_future(self) -> None:
        if not hasattr(self, "stage"):
            return
        assert self.simulated.needless == []
        for name, pod in self.simulated.pods.items():
            marks = pod.metadata.annotations
            assert name == f"j-{marks[names.TASK_SPEC]}-{marks[names.TASK_INDEX]}"
            assert int(marks[names.JOB_VERSION]) <= self.simulated.job.status.version


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=scaled(30), stateful_step_count=30, deadline=None)
