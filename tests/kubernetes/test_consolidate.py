"""A job is moved aside for another: evicted, made anew by its controller, and started where room is held for it."""

from __future__ import annotations

from tests.kubernetes.scheduler_cluster import NAMESPACE, POLICY, VOLCANO, SchedulerCluster


def test_a_job_is_moved_as_a_whole_and_the_pods_that_its_controller_makes_start_where_room_is_held(
    cluster: SchedulerCluster,
) -> None:
    cluster.policy.write_text(POLICY.replace("backfill", "consolidate, backfill"))
    cluster.add_nodes(1, cpu=4, prefix="large")
    cluster.start_controllers("job-controller")
    scheduler = cluster.start_scheduler("--leader-elect=false")
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"labels": {"job": "train"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    cluster.plane.apply(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": NAMESPACE},
            "spec": {
                "schedulerName": "volcano",
                "minAvailable": 2,
                "tasks": [{"name": "worker", "replicas": 2, "template": template}],
            },
        }
    )
    cluster.wait_for_running("train", 2)
    before = {pod["metadata"]["uid"] for pod in cluster.pods("train")}
    cluster.add_nodes(1, cpu=2, prefix="small")
    cluster.submit("big", pods=1, cpu=4)
    cluster.wait_for_running("big", 1)
    cluster.wait_for_running("train", 2)
    assert {pod["spec"]["nodeName"] for pod in cluster.bound("big")} == {"large-0"}
    assert {pod["spec"]["nodeName"] for pod in cluster.bound("train")} == {"small-0"}
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in cluster.pods("train"))
    groups = cluster.read(f"{VOLCANO}/namespaces/{NAMESPACE}/podgroups")["items"]
    (moved,) = (
        condition
        for group in groups
        for condition in group.get("status", {}).get("conditions", ())
        if condition["type"] == "Moved"
    )
    assert "train-worker-0 from large-0 to small-0" in moved["message"]
    assert 'volcano_eviction_transactions_total{action="consolidate"} 1.0' in scheduler.get("/metrics")[1]
    cluster.check_capacity()
