"""Stories on a real API server: what users do with kubectl, and what becomes of it."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.kubernetes.faults import between
from tests.kubernetes.stage import NAMESPACE, POLICY, Stage

PREEMPT = POLICY.replace("backfill", "preempt, backfill")


@pytest.mark.everywhere
def test_a_gang_submitted_with_kubectl_binds_together_and_runs(stage: Stage) -> None:
    stage.add_nodes(3, cpu=4)
    stage.start_scheduler()
    stage.submit("train", pods=6)
    stage.wait_for_running("train", 6)
    stage.wait(lambda: stage.group("train")["status"]["phase"] == "Running", "the group to be Running")
    stage.wait(
        lambda: (
            ("Scheduled", f"Successfully assigned {NAMESPACE}/train-0 to ")
            in [(reason, text[: text.rfind(" ") + 1]) for reason, text in stage.events("train-0")]
        ),
        "the event",
    )
    types = {one["type"] for one in stage.group("train")["status"]["conditions"]}
    assert "Scheduled" in types
    assert "Successfully assigned" in stage.plane.kubectl("describe", "pod", "train-0", "-n", NAMESPACE)
    stage.check()


def test_a_gang_that_has_finished_is_completed_and_leaves_its_room_to_the_next(stage: Stage) -> None:
    stage.add_nodes(1, cpu=2)
    scheduler = stage.start_scheduler()
    stage.submit("first", pods=2)
    stage.wait_for_running("first", 2)
    stage.submit("second", pods=2)
    assert stage.steady(1.0, lambda: not stage.bound("second"))
    for pod in stage.pods("first"):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status"
        stage.plane.request("PATCH", path, {"status": {"phase": "Succeeded"}}, "application/merge-patch+json")
    stage.wait(lambda: stage.group("first")["status"]["phase"] == "Completed", "the group to be Completed")
    assert stage.group("first")["status"]["succeeded"] == 2
    stage.wait_for_running("second", 2)
    stage.check()
    assert json.loads(scheduler.get("/debug/consistency")[1])["consistent"]


def test_a_gang_that_does_not_fit_waits_as_a_whole_and_says_why(stage: Stage) -> None:
    stage.add_nodes(2, cpu=2)
    scheduler = stage.start_scheduler()
    stage.submit("big", pods=5)
    stage.submit("small", pods=2)
    stage.wait_for_running("small", 2)
    stage.wait(
        lambda: any(
            one["type"] == "PodScheduled" and one["status"] == "False"
            for one in stage.pods("big")[0]["status"].get("conditions", ())
        ),
        "the pod to say why",
    )
    assert not stage.bound("big")
    assert "FailedScheduling" in dict(stage.events("big-0"))
    assert "Unschedulable" in dict(stage.events("big"))
    assert any(_is_quiet(stage) for _ in range(5))
    text = scheduler.get("/metrics")[1]
    assert 'volcano_unschedule_task_count{job_id="big"} ' in text
    assert 'stromboli_queue_pending_jobs{queue_name="default"} 1.0' in text
    assert 'rest_client_requests_total{code="201",' in text
    assert 'volcano_task_scheduling_latency_milliseconds_count{stage="Watched"} 7.0' in text
    stage.add_nodes(1, cpu=8, prefix="more")
    stage.wait_for_running("big", 5)


def _is_quiet(stage: Stage) -> bool:
    """Whether nothing is said for two seconds, that is ten cycles."""
    before = stage.read(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    return stage.steady(
        2.0, lambda: bool(stage.read(f"/api/v1/namespaces/{NAMESPACE}/events")["items"] == before)
    )


@pytest.mark.everywhere
def test_an_urgent_gang_takes_the_place_of_another(stage: Stage) -> None:
    stage.policy.write_text(PREEMPT)
    for name, value in (("low", 1), ("high", 100)):
        stage.plane.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    stage.add_nodes(2, cpu=2)
    stage.start_scheduler()
    stage.submit("old", pods=4, minimum=1, priority="low")
    stage.wait_for_running("old", 4)
    stage.submit("urgent", pods=2, priority="high")
    stage.wait_for_running("urgent", 2)
    assert len(stage.pods("old")) == 2
    told = [stage.events(f"old-{number}") for number in range(4)]
    evicted = [dict(one)["Evict"] for one in told if "Evict" in dict(one)]
    assert len(evicted) == 2
    assert all("preempt for stories/urgent" in one for one in evicted)
    stage.check()


def test_a_queue_reclaims_its_share(stage: Stage) -> None:
    stage.policy.write_text(POLICY.replace("backfill", "reclaim, backfill"))
    stage.add_nodes(2, cpu=2)
    for queue in ("hungry", "late"):
        stage.add_queue(queue, reclaimable=True)
    stage.start_scheduler()
    stage.submit("greedy", pods=4, minimum=1, queue="hungry")
    stage.wait_for_running("greedy", 4)
    stage.submit("owed", pods=2, minimum=1, queue="late")
    stage.wait(lambda: stage.running("owed") >= 1, "the other queue to get its share")
    evicted = {"greedy-0", "greedy-1", "greedy-2", "greedy-3"} - {
        pod["metadata"]["name"] for pod in stage.pods("greedy")
    }
    assert evicted
    assert all("reclaim" in dict(stage.events(name))["Evict"] for name in evicted)
    stage.check()


def test_a_bad_object_gets_one_clear_event_and_the_others_are_scheduled(stage: Stage) -> None:
    stage.add_nodes(2, cpu=2)
    stage.start_scheduler()
    bad = stage.pod("bad", 0)
    bad["spec"]["containers"][0]["resources"]["requests"]["example.com/huge"] = "9223372036854775807"
    bad["spec"]["containers"][0]["resources"]["limits"] = {"example.com/huge": "9223372036854775807"}
    stage.plane.apply(bad)
    stage.submit("good", pods=2)
    stage.wait_for_running("good", 2)
    stage.wait(lambda: "Invalid" in dict(stage.events("bad-0")), "the event")
    assert [reason for reason, _ in stage.events("bad-0")] == ["Invalid"]


def test_a_new_policy_is_in_force_without_a_restart_and_a_wrong_one_is_not(stage: Stage) -> None:
    stage.policy.write_text('actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n')
    stage.add_nodes(1)
    scheduler = stage.start_scheduler()
    stage.submit("train", pods=2)
    stage.wait(
        lambda: stage.group("train").get("status", {}).get("phase") == "Inqueue", "the group to be let in"
    )
    assert not stage.bound()
    stage.policy.write_text("actions: nonsense\n")
    stage.wait(lambda: "stays in force" in scheduler.said, "the complaint")
    assert not stage.bound()
    stage.policy.write_text(POLICY)
    stage.wait_for_running("train", 2)


def test_a_closed_queue_takes_nothing_until_it_is_open_again(stage: Stage) -> None:
    stage.add_nodes(1)
    stage.add_queue("research")
    stage.start_scheduler()
    _state(stage, "research", "Closed")
    stage.submit("late", pods=1, queue="research")
    stage.submit("other", pods=1)
    stage.wait_for_running("other", 1)
    assert stage.steady(1.5, lambda: not stage.bound("late"))
    _state(stage, "research", "Open")
    stage.wait_for_running("late", 1)
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/research"
    stage.wait(
        lambda: stage.read(path)["status"].get("allocated", {}).get("cpu") == "1", "the queue's status"
    )
    assert stage.read(path)["status"]["state"] == "Open"


def _state(stage: Stage, queue: str, state: str) -> None:
    path = f"/apis/scheduling.volcano.sh/v1beta1/queues/{queue}/status"
    stage.plane.request("PATCH", path, {"status": {"state": state}}, "application/merge-patch+json")


def test_the_api_server_restarts_in_the_middle_of_a_gang(stage: Stage) -> None:
    stage.add_nodes(10, cpu=20)
    scheduler = stage.start_scheduler(
        "--leader-elect=false", "--writes-in-flight=2", "--kube-api-qps=60", "--kube-api-burst=5"
    )
    stage.submit("train", pods=120)
    stage.wait(lambda: len(stage.bound("train")) > 5, "the first binds")
    assert len(stage.bound("train")) < 120
    stage.plane.restart("kube-apiserver", signal.SIGKILL)
    stage.wait(lambda: len(stage.bound("train")) == 120, "all to be bound", 120)
    stage.check()
    status, text = scheduler.get("/debug/consistency")
    assert (status, json.loads(text)["differences"]) == (200, [])


def test_of_two_schedulers_one_leads_and_the_other_is_in_step_writes_nothing_and_takes_over(
    stage: Stage,
) -> None:
    with between(stage.plane) as proxy:
        stage.add_nodes(2, cpu=8)
        one = stage.start_scheduler()
        stage.wait(lambda: one.leads, "the first to lead")
        two = stage.start_scheduler(server=proxy.url)
        stage.submit("first", pods=4)
        stage.wait_for_running("first", 4)
        assert json.loads(two.get("/debug/consistency")[1]) == {"consistent": True, "differences": []}
        assert not two.leads
        assert [seen for seen in proxy.seen if seen.method != "GET"] == []
        assert one.stop() == 0
        begin = time.monotonic()
        stage.submit("second", pods=4)
        stage.wait_for_running("second", 4)
        assert time.monotonic() - begin < 10
        assert two.leads
        stage.check()


def test_a_scheduler_that_is_killed_in_the_middle_of_a_gang_is_followed_by_another_that_completes_it(
    stage: Stage,
) -> None:
    stage.add_nodes(5, cpu=20)
    one = stage.start_scheduler("--writes-in-flight=1", "--kube-api-qps=40", "--kube-api-burst=5")
    stage.submit("train", pods=60)
    stage.wait(lambda: len(stage.bound("train")) > 5, "the first binds")
    one.kill()
    assert len(stage.bound("train")) < 60
    two = stage.start_scheduler()
    stage.wait(lambda: len(stage.bound("train")) == 60, "all to be bound")
    stage.wait(lambda: stage.group("train")["status"]["phase"] == "Running", "the group to be Running")
    stage.check()
    assert json.loads(two.get("/debug/consistency")[1])["consistent"]


def test_a_gentle_stop_finishes_what_was_decided(stage: Stage) -> None:
    stage.add_nodes(5, cpu=20)
    one = stage.start_scheduler("--writes-in-flight=1", "--kube-api-qps=40", "--kube-api-burst=5")
    stage.submit("train", pods=60)
    stage.wait(lambda: len(stage.bound("train")) > 2, "the first binds")
    assert one.stop() == 0
    assert len(stage.bound("train")) == 60
    assert "all_written=True" in one.said


def test_a_dump_can_be_replayed(stage: Stage, tmp_path: Path) -> None:
    stage.add_nodes(2, cpu=2)
    scheduler = stage.start_scheduler("--scheduler-name=volcano")
    stage.submit("runs", pods=2)
    stage.submit("waits", pods=5)
    stage.wait_for_running("runs", 2)
    status, text = scheduler.get("/debug/dump", method="POST")
    assert status == 200
    file = json.loads(text)["file"]
    from typer.testing import CliRunner

    from stromboli.cli.main import app

    done = CliRunner().invoke(app, ["plan", "-f", file, "-o", "json"])
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert list(plan["pending"]) == [f"{NAMESPACE}/waits"]
    scheduler.signal(signal.SIGUSR2)
    stage.wait(lambda: "message=dumped" in scheduler.said, "a dump by signal")
