"""What would happen if a job were submitted: answers that are plain to work out by hand."""

import pytest

from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import priority_class
from stromboli.simulator.runs.simulation_loop import SimulationLoop
from stromboli.simulator.what_if.run_times import Basis
from tests.simulator.what_if.questions import (
    EASY,
    HOUR,
    MINUTE,
    PREEMPTION,
    ask,
    limited,
    only,
    run_time,
    running,
    waiting,
)

TWO_NODES = nodes("n1 cpu=4; n2 cpu=4")
PRIORITIES = [priority_class(value) for value in (1, 100)]


def test_a_job_that_fits_starts_now_and_delays_nobody() -> None:
    answer = ask([*TWO_NODES, *running("a", "n1", 10, "1h", cpu=4)], waiting("mine", "30m", cpu=4))
    job = only(answer)
    assert (job.started, job.ended, job.placement) == (0, 30 * MINUTE, {"default/mine-0": "n2"})
    assert (job.waits, job.after, job.ahead) == ([], {}, 0)
    assert answer.starts
    assert not answer.others.later + answer.others.earlier + answer.others.evictions
    assert answer.assumptions.limited == 1


def test_a_gang_starts_when_the_last_of_the_jobs_has_ended_whose_room_it_needs() -> None:
    cluster = [*TWO_NODES, *running("a", "n1", 10, "1h", cpu=4), *running("b", "n2", 0, "2h", cpu=4)]
    job = only(ask(cluster, waiting("mine", "1h", pods=2, cpu=4)))
    assert (job.started, job.ended) == (2 * HOUR, 3 * HOUR)
    assert job.after == {"default/a": 50 * MINUTE, "default/b": 2 * HOUR}
    assert job.placement == {"default/mine-0": "n1", "default/mine-1": "n2"}
    assert job.waits[0].since == 0
    assert "cpu" in job.waits[0].explanation.message


def test_who_waits_with_a_lower_priority_starts_later_by_the_run_time_of_the_job() -> None:
    cluster = [
        *PRIORITIES,
        *nodes("n1 cpu=4"),
        *running("a", "n1", 0, "1h", cpu=4),
        *waiting("low", "1h", cpu=4, priority=1),
    ]
    answer = ask(cluster, waiting("mine", "2h", cpu=4, priority=100))
    assert only(answer).started == HOUR
    (shift,) = answer.others.later
    assert (shift.job, shift.start_without, shift.start_with) == ("default/low", HOUR, 3 * HOUR)
    assert (shift.start_delay, shift.end_delay) == (2 * HOUR, 2 * HOUR)


def test_who_waits_behind_a_job_without_a_limit_never_starts() -> None:
    cluster = [
        *PRIORITIES,
        *nodes("n1 cpu=4"),
        *running("a", "n1", 0, "1h", cpu=4),
        *waiting("low", "1h", cpu=4, priority=1),
    ]
    answer = ask(cluster, waiting("mine", cpu=4, priority=100))
    job = only(answer)
    assert (job.started, job.ended, job.run_time.basis) == (HOUR, None, Basis.UNKNOWN)
    (shift,) = answer.others.later
    assert (shift.start_without, shift.start_with, shift.start_delay) == (HOUR, None, None)
    assert answer.assumptions.waiting_unlimited == ["default/mine"]


def test_a_job_behind_one_without_a_limit_starts_as_soon_as_that_ends_and_not_before_the_others() -> None:
    cluster = [*TWO_NODES, *running("a", "n1", 10, "1h", cpu=4), *running("web", "n2", 10, cpu=4)]
    answer = ask(cluster, waiting("mine", "1h", pods=2, cpu=4))
    job = only(answer)
    assert not answer.starts
    assert (job.started, job.placement) == (None, {})
    assert (job.not_before, job.blockers) == (50 * MINUTE, ["default/web"])
    assert answer.assumptions.unlimited == ["default/web"]


def test_a_job_over_its_limit_may_run_on_for_ever() -> None:
    cluster = [*nodes("n1 cpu=4"), *running("late", "n1", 90, "1h", cpu=4)]
    answer = ask(cluster, waiting("mine", "1h", cpu=4))
    job = only(answer)
    assert (job.started, job.not_before, job.blockers) == (None, 0, ["default/late"])
    assert answer.assumptions.over_limit == ["default/late"]


def test_what_never_fits_does_not_start_whoever_ends() -> None:
    cluster = [*nodes("n1 cpu=4"), *running("web", "n1", 10, cpu=1)]
    job = only(ask(cluster, waiting("mine", "1h", cpu=8)))
    assert (job.started, job.not_before, job.blockers) == (None, None, [])
    assert "the largest node (n1) has cpu 4" in job.waits[-1].explanation.hint


def test_jobs_without_a_limit_run_as_long_as_is_assumed() -> None:
    cluster = [*nodes("n1 cpu=4"), *running("web", "n1", 600, cpu=4)]
    answer = ask(cluster, waiting("mine", cpu=4), assumed=2 * HOUR)
    job = only(answer)
    assert (job.started, job.ended, job.run_time.basis) == (2 * HOUR, 4 * HOUR, Basis.ASSUMED)


def test_the_run_time_of_simulated_nodes_counts_more_than_a_limit() -> None:
    known = running("a", "n1", 10, "5h", cpu=4)
    known[1]["metadata"]["annotations"] |= run_time("30m")
    answer = ask([*nodes("n1 cpu=4"), *known], waiting("mine", "1h", cpu=4))
    assert only(answer).started == 20 * MINUTE
    assert (answer.assumptions.known, answer.assumptions.limited) == (1, 0)


def test_a_preemptor_names_its_victim_the_work_it_loses_and_when_it_runs_again() -> None:
    cluster = [*PRIORITIES, *nodes("n1 cpu=4"), *running("low", "n1", 40, "2h", cpu=4, priority=1)]
    answer = ask(cluster, waiting("mine", "1h", cpu=4, priority=100), PREEMPTION)
    job = only(answer)
    assert (job.started, job.waits) == (0, [])
    (eviction,) = answer.others.evictions
    assert (eviction.pod, eviction.node, eviction.time) == ("default/low-0", "n1", 0)
    assert (eviction.lost_work, eviction.beneficiary) == (40 * MINUTE, "default/mine")
    assert eviction.restart == HOUR
    (shift,) = answer.others.later
    assert (shift.job, shift.end_without, shift.end_with) == ("default/low", 80 * MINUTE, 3 * HOUR)


def test_who_never_starts_either_way_is_told_and_not_counted_as_delayed() -> None:
    cluster = [*nodes("n1 cpu=4"), *waiting("huge", "1h", cpu=64)]
    answer = ask(cluster, waiting("mine", "1h", cpu=4))
    assert (answer.never, answer.undetermined) == (["default/huge"], [])
    assert answer.others.later == []


def test_a_job_that_has_ended_already_is_not_said_to_start_never() -> None:
    ended, failed = running("ended", "n1", 90, "1h", cpu=4), running("failed", "n1", 90, cpu=4)
    ended[1]["status"]["phase"], failed[1]["status"]["phase"] = "Succeeded", "Failed"
    answer = ask([*nodes("n1 cpu=4"), *ended, *failed], waiting("mine", "1h", cpu=4))
    assert only(answer).started == 0
    assert (answer.never, answer.undetermined) == ([], [])


def test_of_who_waits_for_a_job_without_a_limit_nobody_knows_whether_it_is_delayed() -> None:
    cluster = [
        *nodes("n1 cpu=4"),
        *running("web", "n1", 10, cpu=2),
        *waiting("next", "1h", cpu=4),
        *waiting("huge", "1h", cpu=64),
    ]
    answer = ask(cluster, waiting("mine", "1h", cpu=2))
    assert only(answer).started == 0
    assert (answer.others.later, answer.undetermined, answer.never) == (
        [],
        ["default/next"],
        ["default/huge"],
    )
    assert not answer.tells_never
    known = ask(cluster, waiting("mine", "1h", cpu=2), assumed=HOUR)
    assert (known.undetermined, known.tells_never) == ([], True)


def test_pods_beyond_the_minimum_start_as_room_comes_free() -> None:
    cluster = [*nodes("n1 cpu=4"), *running("a", "n1", 0, "1h", cpu=2)]
    job = only(ask(cluster, waiting("mine", "2h", pods=2, minimum=1, cpu=2)))
    assert (job.started, job.complete, job.ended) == (0, HOUR, 3 * HOUR)
    job = only(ask(cluster, waiting("mine", pods=4, minimum=1, cpu=2)))
    assert (job.started, job.complete, len(job.placement)) == (0, None, 2)


def test_several_files_are_submitted_together_with_the_queue_that_they_name() -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "new"},
        "spec": {"weight": 1},
    }
    submitted = [*waiting("one", "1h", cpu=4, queue="new"), *waiting("two", "1h", cpu=4, queue="new"), queue]
    answer = ask(nodes("n1 cpu=4"), submitted)
    assert {job.name: job.started for job in answer.jobs} == {"default/one": 0, "default/two": HOUR}


def test_the_same_question_has_the_same_answer() -> None:
    cluster = [
        *TWO_NODES,
        *running("a", "n1", 10, "1h", cpu=4),
        *running("b", "n2", 0, "2h", cpu=3),
        *waiting("c", "1h", cpu=2, pods=3),
        *waiting("d", "10m", cpu=1),
    ]
    first, second = (ask(cluster, waiting("mine", "1h", pods=2, cpu=3)) for _ in range(2))
    assert (first.jobs, first.others) == (second.jobs, second.others)


def test_a_backfilled_job_does_not_delay_the_first_and_a_longer_one_waits_behind_it() -> None:
    cluster = [
        *nodes("n1 cpu=4; n2 cpu=2"),
        *running("a", "n1", 0, "2h", cpu=4),
        *waiting("head", "1h", cpu=4),
    ]
    short = ask(cluster, waiting("mine", "1h", cpu=2), EASY)
    assert (only(short).started, short.others.later) == (0, [])
    cluster = [*nodes("n1 cpu=4"), *running("a", "n1", 0, "2h", cpu=2), *waiting("head", "1h", cpu=4)]
    fits = ask(cluster, waiting("mine", "2h", cpu=2), EASY)
    assert (only(fits).started, fits.others.later) == (0, [])
    longer = ask(cluster, waiting("mine", "150m", cpu=2), EASY)
    assert (only(longer).started, longer.others.later) == (3 * HOUR, [])
    overtaking = ask(cluster, waiting("mine", "150m", cpu=2))
    assert only(overtaking).started == 0
    (shift,) = overtaking.others.later
    assert (shift.job, shift.start_delay) == ("default/head", 30 * MINUTE)


def test_the_limit_of_a_queue_holds_for_its_jobs_that_say_nothing() -> None:
    batch = queues("batch")
    batch[0]["metadata"]["annotations"] = limited("3h")
    cluster = [*batch, *nodes("n1 cpu=4"), *running("a", "n1", 60, cpu=4, queue="batch")]
    answer = ask(cluster, waiting("mine", cpu=4, queue="batch"))
    job = only(answer)
    assert (job.started, job.ended, job.run_time.basis) == (2 * HOUR, 5 * HOUR, Basis.TIME_LIMIT)
    assert answer.assumptions.limited == 1


def test_a_node_ends_a_pod_at_its_active_deadline() -> None:
    cluster = [*nodes("n1 cpu=4"), *running("a", "n1", 10, cpu=4, spec={"activeDeadlineSeconds": 3600})]
    assert only(ask(cluster, waiting("mine", "1h", cpu=4))).started == 50 * MINUTE


def test_a_gang_that_loses_a_pod_starts_again_as_a_whole() -> None:
    cluster = [*PRIORITIES, *TWO_NODES, *running("low", "n1 n2", 30, "2h", cpu=4, priority=1)]
    answer = ask(cluster, waiting("mine", "1h", cpu=4, priority=100), PREEMPTION)
    assert sorted(eviction.pod for eviction in answer.others.evictions) == ["default/low-0", "default/low-1"]
    assert {eviction.restart for eviction in answer.others.evictions} == {HOUR}


def test_pods_of_no_job_stay_where_they_are() -> None:
    agent = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {
            "nodeName": "n1",
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Running"},
    }
    cluster = [*nodes("n1 cpu=4"), agent]
    answer = ask(cluster, waiting("mine", "1h", cpu=4), assumed=HOUR)
    assert (only(answer).started, answer.assumptions.other_pods) == (None, 1)
    assert only(ask(cluster, waiting("mine", "1h", cpu=3))).started == 0


def test_an_interrupt_leaves_what_is_known_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(SimulationLoop, "step", interrupt)
    answer = ask([*nodes("n1 cpu=4")], waiting("mine", "1h", cpu=4))
    assert answer.partial
    assert only(answer).started is None


def test_a_job_whose_pods_beyond_its_minimum_get_no_room_is_delayed() -> None:
    cluster = [*PRIORITIES, *nodes("n1 cpu=4"), *waiting("wide", "1h", pods=4, minimum=1, cpu=1)]
    answer = ask(cluster, waiting("mine", "2h", cpu=2, priority=100))
    (shift,) = answer.others.later
    assert (shift.job, shift.start_delay, shift.complete_delay) == ("default/wide", 0, HOUR)


def test_a_pod_that_is_being_deleted_is_soon_gone() -> None:
    leaving = running("old", "n1", 10, cpu=4)
    leaving[1]["metadata"]["deletionTimestamp"] = "2026-11-01T11:59:50Z"
    answer = ask([*nodes("n1 cpu=4"), *leaving], waiting("mine", "1h", cpu=4))
    assert (only(answer).started, answer.assumptions.leaving) == (30, 1)
    assert answer.others.evictions == []
