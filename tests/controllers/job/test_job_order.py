"""Jobs that wait for other jobs: their pods are held at a gate that is lifted when the others have ended as asked."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, JobState
from stromboli.controllers.job.observed_state import LiftGate
from tests.controllers.in_memory_api import InMemoryApi
from tests.controllers.job.simulated_job import SimulatedJob, job_manifest, make_job, task
from tests.controllers.job.submitted_jobs import admit, at_work, run
from tests.controllers.running import wait_until, wait_until_idle


def other(name: str, phase: str = "Running", after: str = "", uid: str = "") -> Job:
    annotations = {names.AFTER: after} if after else {}
    job = make_job(name=name, metadata={"annotations": annotations, "uid": uid or f"u-{name}"})
    job.status.state = JobState(phase=phase)
    return job


def waiting(after: str, *others: Job, **spec: Any) -> SimulatedJob:
    job = make_job(task(replicas=2), metadata={"annotations": {names.AFTER: after}}, **spec)
    return SimulatedJob(job, others={each.name: each for each in others}).settle()


def has_phase(simulated: SimulatedJob, name: str, phase: str) -> SimulatedJob:
    simulated.others[name].status.state = JobState(phase=phase)
    return simulated.settle()


def held(simulated: SimulatedJob) -> list[str]:
    return [name for name, pod in simulated.pods.items() if names.AFTER in pod.metadata.annotations]


def reasons(simulated: SimulatedJob) -> list[str]:
    return [reason for reason, _ in simulated.recorded]


def test_pods_are_held_until_the_other_job_has_completed() -> None:
    simulated = waiting("prepare", other("prepare"))
    gates = [pod["spec"]["schedulingGates"] for pod in simulated.manifests.values()]
    assert gates == [[{"name": "stromboli.sh/after"}]] * 2
    assert simulated.job.status.state.reason == "WaitsForJobs"
    assert "the completion of job prepare" in simulated.job.status.state.message
    has_phase(simulated, "prepare", "Completed")
    assert (held(simulated), simulated.phase) == ([], "Pending")
    assert simulated.job.status.state.reason == ""
    assert reasons(simulated)[-1] == "AfterMet"


@pytest.mark.parametrize("phase", ["Failed", "Terminated"])
def test_a_job_that_did_not_complete_fails_the_one_that_waits_for_it(phase: str) -> None:
    simulated = has_phase(waiting("prepare", other("prepare")), "prepare", phase)
    assert (simulated.phase, simulated.alive) == ("Failed", [])
    assert simulated.job.status.state.reason == "AfterFailed"
    assert f"job prepare, and that is {phase}" in simulated.job.status.state.message
    assert "AfterFailed" in reasons(simulated)
    assert simulated.group is None


@pytest.mark.parametrize("condition", ["afterok", "afterany", "afternotok", "after"])
def test_a_job_that_is_suspended_is_waited_for_until_it_is_resumed(condition: str) -> None:
    simulated = has_phase(waiting(f"{condition}:prepare", other("prepare", "Pending")), "prepare", "Aborted")
    assert (len(held(simulated)), simulated.phase) == (2, "Pending")
    assert "job prepare, which is suspended" in simulated.job.status.state.message
    has_phase(simulated, "prepare", "Running")
    assert "suspended" not in simulated.job.status.state.message


def test_any_end_will_do_if_the_job_says_so() -> None:
    for phase in ("Completed", "Failed", "Terminated"):
        assert held(has_phase(waiting("afterany:clean", other("clean")), "clean", phase)) == []


def test_a_job_may_wait_for_a_failure_or_for_a_start() -> None:
    assert held(has_phase(waiting("afternotok:a", other("a")), "a", "Failed")) == []
    assert has_phase(waiting("afternotok:a", other("a")), "a", "Completed").phase == "Failed"
    assert held(has_phase(waiting("after:a", other("a", "Pending")), "a", "Running")) == []


def test_all_jobs_must_have_ended_and_those_that_have_may_be_deleted_meanwhile() -> None:
    simulated = waiting("a,afterany:b", other("a"), other("b"))
    has_phase(simulated, "a", "Completed")
    assert len(held(simulated)) == 2
    del simulated.others["a"]
    simulated.restart().settle()
    assert simulated.phase == "Pending"
    has_phase(simulated, "b", "Failed")
    assert held(simulated) == []


def test_a_job_that_is_deleted_before_it_completed_fails_those_that_wait_for_it() -> None:
    simulated = waiting("a", other("a"))
    del simulated.others["a"]
    assert simulated.restart().settle().phase == "Failed"
    assert "that was deleted" in simulated.job.status.state.message


def test_another_job_of_the_same_name_is_not_taken_for_the_one_that_was_seen() -> None:
    simulated = waiting("a", other("a"))
    simulated.others["a"] = other("a", "Completed", uid="later")
    assert simulated.settle().phase == "Failed"


def test_a_job_that_does_not_exist_yet_is_waited_for_and_told() -> None:
    simulated = waiting("late")
    assert (len(held(simulated)), simulated.job.status.state.reason) == (2, "AfterMissing")
    assert reasons(simulated).count("AfterMissing") == 1
    simulated.others["late"] = other("late", "Completed")
    assert held(simulated.settle()) == []


def test_jobs_that_wait_for_each_other_are_told_so() -> None:
    simulated = waiting("a", other("a", "Pending", after="b"), other("b", "Pending", after="j"))
    assert simulated.job.status.state.reason == "AfterCycle"
    assert "j -> a -> b -> j" in simulated.job.status.state.message
    assert len(held(simulated)) == 2


def test_an_annotation_that_cannot_be_read_holds_the_pods() -> None:
    simulated = waiting("soon:a,", other("a", "Completed"))
    assert (len(held(simulated)), simulated.job.status.state.reason) == (2, "AfterInvalid")


def test_pods_that_are_made_later_are_not_held() -> None:
    simulated = has_phase(waiting("a", other("a")), "a", "Completed")
    del simulated.others["a"]
    simulated.set_all("Running").settle()
    simulated.ask("RestartJob").settle()
    simulated.remove_deleted().settle()
    assert (len(simulated.alive), held(simulated)) == (2, [])
    assert not simulated.manifests["j-worker-0"]["spec"].get("schedulingGates")


def test_a_job_that_is_told_to_wait_no_more_goes_on() -> None:
    job = make_job(
        task(replicas=2, spec={"schedulingGates": [{"name": names.AFTER}]}),
        metadata={"annotations": {names.AFTER: "a"}},
    )
    simulated = SimulatedJob(job, others={"a": other("a")}).settle()
    assert len(held(simulated)) == 2
    del simulated.job.metadata.annotations[names.AFTER]
    simulated.settle().set_all("Running").settle()
    assert (held(simulated), simulated.phase) == ([], "Running")
    simulated.ask("RestartJob").settle()
    simulated.remove_deleted().settle()
    assert simulated.manifests["j-worker-0"]["spec"]["schedulingGates"] == []


def test_other_gates_of_a_pod_stay() -> None:
    gates = [{"name": "mine/gate"}, {"name": names.AFTER}]
    job = make_job(
        task(replicas=1, spec={"schedulingGates": gates}), metadata={"annotations": {names.AFTER: "a"}}
    )
    simulated = SimulatedJob(job, others={"a": other("a", "Completed")}).settle()
    assert simulated.manifests["j-worker-0"]["spec"]["schedulingGates"] == [{"name": "mine/gate"}]


def test_a_job_that_waits_can_be_suspended_and_deleted_like_any() -> None:
    simulated = waiting("a", other("a")).ask("AbortJob").settle()
    assert simulated.remove_deleted().settle().phase == "Aborted"


def test_a_gate_is_lifted_once() -> None:
    simulated = waiting("a", other("a"))
    simulated.others["a"] = other("a", "Completed")
    lifted = [write for _ in range(4) for write in simulated.step().writes if isinstance(write, LiftGate)]
    assert len(lifted) == 2


def test_a_job_says_how_many_of_its_pods_run_at_a_time() -> None:
    annotations = {names.PARALLELISM: "2"}
    job = make_job(task(replicas=5, minAvailable=1), minAvailable=1, metadata={"annotations": annotations})
    simulated = SimulatedJob(job).settle()
    assert simulated.alive == ["worker-0", "worker-1"]
    simulated.set_all("Running").settle()
    simulated.set_pod("worker-0", "Succeeded").settle()
    assert simulated.alive == ["worker-0", "worker-1", "worker-2"]
    for index in (1, 2, 3, 4):
        simulated.set_pod(f"worker-{index}", "Succeeded").settle()
    assert (simulated.phase, len(simulated.alive)) == ("Completed", 5)


def test_a_job_goes_on_as_soon_as_the_controller_sees_the_end_of_the_other() -> None:
    async def story() -> None:
        api = InMemoryApi()
        api.put("queues", {"metadata": {"name": "default"}})
        api.put("jobs", job_manifest(task(replicas=1), name="first"))
        api.put("jobs", job_manifest(task(replicas=1), metadata={"annotations": {names.AFTER: "first"}}))

        def is_held() -> bool:
            return names.AFTER in api.find("pods", "j-worker-0", "team")["metadata"]["annotations"]

        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            assert is_held()
            first = api.find("pods", "first-worker-0", "team")
            api.put("pods", {**first, "status": {"phase": "Running"}})
            await wait_until_idle(api, runner)
            assert is_held()
            first = api.find("pods", "first-worker-0", "team")
            api.put("pods", {**first, "status": {"phase": "Succeeded"}})
            await wait_until(lambda: not is_held())

    run(story())
