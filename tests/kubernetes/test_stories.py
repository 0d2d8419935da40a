"""Stories on a real API server: what users do with kubectl, and what becomes of it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from tests.kubernetes.faults import between
from tests.kubernetes.scheduler_cluster import NAMESPACE, POLICY, SchedulerCluster

NPU_SLICES = "huawei.com/npu-core"
PREEMPT = POLICY.replace("backfill", "preempt, backfill")


def test_a_gang_submitted_with_kubectl_binds_together_and_runs(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(3, cpu=4)
    cluster.start_scheduler()
    cluster.submit("train", pods=6)
    cluster.wait_for_running("train", 6)
    cluster.wait(lambda: cluster.phase("train") == "Running", "the group to be Running")
    cluster.wait(
        lambda: (
            ("Scheduled", f"Successfully assigned {NAMESPACE}/train-0 to ")
            in [(reason, text[: text.rfind(" ") + 1]) for reason, text in cluster.events("train-0")]
        ),
        "the event",
    )
    types = {condition["type"] for condition in cluster.group("train")["status"]["conditions"]}
    assert "Scheduled" in types
    assert "Successfully assigned" in cluster.plane.kubectl("describe", "pod", "train-0", "-n", NAMESPACE)
    cluster.check_capacity()


def test_a_gang_whose_requirement_nobody_honours_waits_and_says_why_and_a_wish_is_told(
    cluster: SchedulerCluster,
) -> None:
    cluster.add_nodes(2, cpu=4)
    cluster.start_scheduler()
    for name, mode in (("hard", "hard"), ("soft", "soft")):
        topology = {"mode": mode, "highestTierAllowed": 1}
        group = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"minMember": 1, "queue": "default", "networkTopology": topology},
        }
        cluster.plane.apply(group, cluster.pod(name, 0))
    sliced = cluster.pod("sliced", 0)
    for amounts in ("requests", "limits"):
        sliced["spec"]["containers"][0].setdefault("resources", {}).setdefault(amounts, {})[NPU_SLICES] = "1"
    cluster.plane.apply(sliced)
    cluster.submit("sliced", pods=0, minimum=1)
    cluster.wait_for_running("soft", 1)
    for name, reason in (("hard-0", "the cluster has no HyperNodes"), ("sliced-0", NPU_SLICES)):
        cluster.wait(
            lambda name=name, reason=reason: reason in str(cluster.events(name)), f"the event of {name}"
        )
    ignored = [text for event, text in cluster.events("soft") if event == "FieldIgnored"]
    assert len(set(ignored)) == 1
    assert "spec.networkTopology (soft)" in ignored[0]
    assert not any("nodeName" in pod["spec"] for name in ("hard", "sliced") for pod in cluster.pods(name))


def test_a_gang_that_its_queue_does_not_let_in_says_so_everywhere_and_then_nothing_more(
    cluster: SchedulerCluster,
) -> None:
    """Group, pods and Job name the share that is short; what comes and goes elsewhere is no reason to write."""
    cluster.add_nodes(2, cpu=16)
    cluster.add_queue("research")
    cluster.add_queue("production")
    cluster.submit("old", pods=3, cpu=8, queue="research")
    cluster.start_scheduler()
    cluster.wait_for_running("old", 3)
    template = {"spec": cluster.pod("train", 0)["spec"]}
    job: dict[str, Any] = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": NAMESPACE},
        "spec": {"minAvailable": 6, "tasks": [{"name": "worker", "replicas": 6, "template": template}]},
    }
    cluster.plane.apply(job)
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs/train"
    uid = cluster.read(path)["metadata"]["uid"]
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "train", "uid": uid, "controller": True}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train-group", "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {"minMember": 6, "queue": "research"},
    }
    cluster.submit("other", pods=2, cpu=9, queue="production")
    cluster.plane.apply(group, *(cluster.pod("train-group", number, cpu=5) for number in range(6)))
    sentence = (
        'Job train waits: the deserved share of queue "research" has too little cpu left; wait for '
        "jobs to end or raise its weight"
    )
    volcano = "6/6 tasks in gang unschedulable: pod group is not ready, 6 Pending, 6 minAvailable"
    told = {"train": ("Unschedulable", sentence), "train-group": ("Unschedulable", f"{sentence} ({volcano})")}
    pods = [f"train-group-{number}" for number in range(6)]
    told |= dict.fromkeys(pods, ("FailedScheduling", f"{sentence} (pod group is not ready)"))
    for name, event in told.items():
        cluster.wait(lambda name=name, event=event: event in cluster.events(name), f"the event of {name}")
    conditions = {entry["type"]: entry for entry in cluster.group("train-group")["status"]["conditions"]}
    assert conditions["Unschedulable"]["message"] == f"{sentence} ({volcano})"

    def written() -> object:
        objects = [cluster.group("train-group"), *cluster.pods("train-group")]
        return [obj["metadata"]["resourceVersion"] for obj in objects], [
            cluster.events(name) for name in told
        ]

    before = written()
    cluster.submit("small", pods=1, cpu=1, queue="production")
    cluster.wait_for_running("small", 1)
    assert cluster.holds_for(1.0, lambda: written() == before)
    cluster.plane.request("DELETE", path)


def test_a_gang_that_has_finished_is_completed_and_leaves_its_room_to_the_next(
    cluster: SchedulerCluster,
) -> None:
    cluster.add_nodes(1, cpu=2)
    scheduler = cluster.start_scheduler()
    cluster.submit("first", pods=2)
    cluster.wait_for_running("first", 2)
    cluster.submit("second", pods=2)
    assert cluster.holds_for(1.0, lambda: not cluster.bound("second"))
    for pod in cluster.pods("first"):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status"
        cluster.plane.request(
            "PATCH", path, {"status": {"phase": "Succeeded"}}, "application/merge-patch+json"
        )
    cluster.wait(lambda: cluster.phase("first") == "Completed", "the group to be Completed")
    assert cluster.group("first")["status"]["succeeded"] == 2
    cluster.wait_for_running("second", 2)
    cluster.check_capacity()
    assert json.loads(scheduler.get("/debug/consistency")[1])["consistent"]


def test_a_gang_that_does_not_fit_waits_as_a_whole_and_says_why(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(2, cpu=2)
    scheduler = cluster.start_scheduler()
    cluster.submit("big", pods=5)
    cluster.submit("small", pods=2)
    cluster.wait_for_running("small", 2)
    cluster.wait(
        lambda: any(
            condition["type"] == "PodScheduled" and condition["status"] == "False"
            for condition in cluster.pods("big")[0]["status"].get("conditions", ())
        ),
        "the pod to say why",
    )
    assert not cluster.bound("big")
    assert "FailedScheduling" in dict(cluster.events("big-0"))
    assert "Unschedulable" in dict(cluster.events("big"))
    assert any(_is_quiet(cluster) for _ in range(5))
    text = scheduler.get("/metrics")[1]
    assert 'volcano_unschedule_task_count{job_id="big"} ' in text
    assert 'stromboli_queue_pending_jobs{queue_name="default"} 1.0' in text
    assert 'rest_client_requests_total{code="201",' in text
    assert 'volcano_task_scheduling_latency_milliseconds_count{stage="Watched"} 7.0' in text
    cluster.add_nodes(1, cpu=8, prefix="more")
    cluster.wait_for_running("big", 5)


def _is_quiet(cluster: SchedulerCluster) -> bool:
    """Whether nothing is said for two seconds, that is ten cycles."""
    before = cluster.read(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    return cluster.holds_for(
        2.0, lambda: bool(cluster.read(f"/api/v1/namespaces/{NAMESPACE}/events")["items"] == before)
    )


def test_an_urgent_gang_takes_the_place_of_another(cluster: SchedulerCluster) -> None:
    cluster.policy.write_text(PREEMPT)
    for name, value in (("low", 1), ("high", 100)):
        cluster.plane.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    cluster.add_nodes(2, cpu=2)
    cluster.start_scheduler()
    cluster.submit("old", pods=4, minimum=1, priority="low")
    cluster.wait_for_running("old", 4)
    cluster.submit("urgent", pods=2, priority="high")
    cluster.wait_for_running("urgent", 2)
    assert len(cluster.pods("old")) == 2
    events_of_pods = [cluster.events(f"old-{number}") for number in range(4)]
    evicted = [dict(events)["Evict"] for events in events_of_pods if "Evict" in dict(events)]
    assert len(evicted) == 2
    assert all("preempt for stories/urgent" in message for message in evicted)
    cluster.check_capacity()


def test_a_queue_reclaims_its_share(cluster: SchedulerCluster) -> None:
    cluster.policy.write_text(POLICY.replace("backfill", "reclaim, backfill"))
    cluster.add_nodes(2, cpu=2)
    for queue in ("hungry", "late"):
        cluster.add_queue(queue, reclaimable=True)
    cluster.start_scheduler()
    cluster.submit("greedy", pods=4, minimum=1, queue="hungry")
    cluster.wait_for_running("greedy", 4)
    cluster.submit("owed", pods=2, minimum=1, queue="late")
    cluster.wait(lambda: cluster.running("owed") >= 1, "the other queue to get its share")
    evicted = {"greedy-0", "greedy-1", "greedy-2", "greedy-3"} - {
        pod["metadata"]["name"] for pod in cluster.pods("greedy")
    }
    assert evicted
    assert all("reclaim" in dict(cluster.events(name))["Evict"] for name in evicted)
    cluster.check_capacity()


def test_a_bad_object_gets_one_clear_event_and_the_others_are_scheduled(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(2, cpu=2)
    cluster.start_scheduler()
    bad = cluster.pod("bad", 0)
    bad["spec"]["containers"][0]["resources"]["requests"]["example.com/huge"] = "9223372036854775807"
    bad["spec"]["containers"][0]["resources"]["limits"] = {"example.com/huge": "9223372036854775807"}
    cluster.plane.apply(bad)
    cluster.submit("good", pods=2)
    cluster.wait_for_running("good", 2)
    cluster.wait(lambda: "Invalid" in dict(cluster.events("bad-0")), "the event")
    assert [reason for reason, _ in cluster.events("bad-0")] == ["Invalid"]


def test_a_new_policy_is_in_force_without_a_restart_and_a_wrong_one_is_not(cluster: SchedulerCluster) -> None:
    cluster.policy.write_text('actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n')
    cluster.add_nodes(1)
    scheduler = cluster.start_scheduler()
    cluster.submit("train", pods=2)
    cluster.wait(
        lambda: cluster.group("train").get("status", {}).get("phase") == "Inqueue", "the group to be let in"
    )
    assert not cluster.bound()
    cluster.policy.write_text("actions: nonsense\n")
    cluster.wait(lambda: "stays in force" in scheduler.output, "the complaint")
    assert not cluster.bound()
    cluster.policy.write_text(POLICY)
    cluster.wait_for_running("train", 2)


def test_a_closed_queue_takes_nothing_until_it_is_open_again(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(1)
    cluster.add_queue("research")
    cluster.start_scheduler()
    _state(cluster, "research", "Closed")
    cluster.submit("late", pods=1, queue="research")
    cluster.submit("other", pods=1)
    cluster.wait_for_running("other", 1)
    assert cluster.holds_for(1.5, lambda: not cluster.bound("late"))
    _state(cluster, "research", "Open")
    cluster.wait_for_running("late", 1)
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/research"
    cluster.wait(
        lambda: cluster.read(path)["status"].get("allocated", {}).get("cpu") == "1", "the queue's status"
    )
    assert cluster.read(path)["status"]["state"] == "Open"


def _state(cluster: SchedulerCluster, queue: str, state: str) -> None:
    path = f"/apis/scheduling.volcano.sh/v1beta1/queues/{queue}/status"
    cluster.plane.request("PATCH", path, {"status": {"state": state}}, "application/merge-patch+json")


def test_the_api_server_restarts_in_the_middle_of_a_gang(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(10, cpu=20)
    scheduler = cluster.start_scheduler(
        "--leader-elect=false", "--writes-in-flight=2", "--kube-api-qps=60", "--kube-api-burst=5"
    )
    cluster.submit("train", pods=120)
    cluster.wait(lambda: len(cluster.bound("train")) > 5, "the first binds")
    assert len(cluster.bound("train")) < 120
    cluster.plane.restart("kube-apiserver", signal.SIGKILL)
    cluster.wait(lambda: len(cluster.bound("train")) == 120, "all to be bound", 120)
    cluster.check_capacity()
    status, text = scheduler.get("/debug/consistency")
    assert (status, json.loads(text)["differences"]) == (200, [])


def test_of_two_schedulers_one_leads_and_the_other_is_in_step_writes_nothing_and_takes_over(
    cluster: SchedulerCluster,
) -> None:
    with between(cluster.plane) as proxy:
        cluster.add_nodes(2, cpu=8)
        first = cluster.start_scheduler()
        cluster.wait(lambda: first.leads, "the first to lead")
        second = cluster.start_scheduler(server=proxy.url)
        cluster.submit("first", pods=4)
        cluster.wait_for_running("first", 4)
        assert [seen for seen in proxy.seen if seen.method != "GET"] == []
        assert json.loads(second.get("/debug/consistency")[1]) == {"consistent": True, "differences": []}
        assert not second.leads
        holder = _lease_holder(cluster)
        assert first.stop() == 0
        assert _lease_holder(cluster) != holder, "the first released the lease"
        cluster.submit("second", pods=4)
        cluster.wait_for_running("second", 4)
        assert second.leads
        cluster.check_capacity()


def _lease_holder(cluster: SchedulerCluster) -> str:
    lease = cluster.read("/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano")
    return str(lease["spec"]["holderIdentity"])


def test_a_scheduler_that_is_killed_in_the_middle_of_a_gang_is_followed_by_another_that_completes_it(
    cluster: SchedulerCluster,
) -> None:
    cluster.add_nodes(5, cpu=20)
    first = cluster.start_scheduler("--writes-in-flight=1", "--kube-api-qps=40", "--kube-api-burst=5")
    cluster.submit("train", pods=60)
    cluster.wait(lambda: len(cluster.bound("train")) > 5, "the first binds")
    first.kill()
    assert len(cluster.bound("train")) < 60
    second = cluster.start_scheduler()
    cluster.wait(lambda: len(cluster.bound("train")) == 60, "all to be bound")
    cluster.wait(lambda: cluster.phase("train") == "Running", "the group to be Running")
    cluster.check_capacity()
    assert json.loads(second.get("/debug/consistency")[1])["consistent"]


def test_a_gentle_stop_finishes_what_was_decided(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(5, cpu=20)
    scheduler = cluster.start_scheduler("--writes-in-flight=1", "--kube-api-qps=40", "--kube-api-burst=5")
    cluster.submit("train", pods=60)
    cluster.wait(lambda: len(cluster.bound("train")) > 2, "the first binds")
    assert scheduler.stop() == 0
    assert len(cluster.bound("train")) == 60
    assert "all_written=True" in scheduler.output


def test_debugging_is_for_users_with_a_right_on_the_path(cluster: SchedulerCluster) -> None:
    plane, scheduler = cluster.plane, cluster.start_scheduler()
    plane.kubectl("create", "serviceaccount", "debugger", "-n", NAMESPACE)
    token = plane.token_for(NAMESPACE, "debugger")
    assert scheduler.get("/debug/stacks", token="unknown")[0] == 401
    status, text = scheduler.get("/debug/stacks", token=token)
    assert (status, f"system:serviceaccount:{NAMESPACE}:debugger" in text) == (403, True)
    plane.kubectl("create", "clusterrole", "debugger", "--verb=get", "--non-resource-url=/debug/*")
    account = f"--serviceaccount={NAMESPACE}:debugger"
    plane.kubectl("create", "clusterrolebinding", "debugger", "--clusterrole=debugger", account)
    cluster.wait(lambda: scheduler.get("/debug/stacks", token=token)[0] == 200, "the right to be seen", 30)
    assert scheduler.get("/debug/dump", method="POST", token=token)[0] == 403


def test_a_dump_can_be_replayed(cluster: SchedulerCluster, tmp_path: Path) -> None:
    cluster.add_nodes(2, cpu=2)
    scheduler = cluster.start_scheduler("--scheduler-name=volcano")
    cluster.submit("runs", pods=2)
    cluster.submit("waits", pods=5)
    cluster.wait_for_running("runs", 2)
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
    cluster.wait(lambda: "message=dumped" in scheduler.output, "a dump by signal")
