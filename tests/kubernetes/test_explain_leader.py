"""A leader is asked about a job that it evicted, its cycles and its policy: what happened, and who may know."""

from __future__ import annotations

import json
from typing import Any

from tests.kubernetes.scheduler_cluster import NAMESPACE, Scheduler, SchedulerCluster

PREEMPT = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
"""


def asked(scheduler: Scheduler, path: str, token: str = "") -> Any:
    status, text = scheduler.get(path, token=token)
    content = json.loads(text) if text.startswith("{") else {"message": text}
    return {"httpStatus": status, **content}


def kinds(answer: Any) -> list[str]:
    return [entry["kind"] for entry in answer.get("history", {}).get("entries", ())]


def test_the_leader_tells_who_was_evicted_by_which_action_for_whom(cluster: SchedulerCluster) -> None:
    policy = cluster.policy.read_text()
    cluster.policy.write_text(PREEMPT)
    try:
        _tell_of_an_eviction(cluster)
    finally:
        cluster.policy.write_text(policy)


def _tell_of_an_eviction(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(1, cpu=2)
    cluster.plane.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 1000,
        }
    )
    leader = cluster.start_scheduler("--enable-explain")
    cluster.wait(lambda: leader.leads, "the first to lead")
    standby = cluster.start_scheduler("--enable-explain")
    cluster.submit("train", pods=2, minimum=1)
    cluster.wait_for_running("train", 2)
    cluster.submit("first", pods=1, priority="urgent")
    path = f"/explain/podgroups/{NAMESPACE}/train"
    cluster.wait(lambda: "evicted" in kinds(asked(leader, path)), "the eviction to be told")
    entries = asked(leader, path)["history"]["entries"]
    evicted = next(entry for entry in entries if entry["kind"] == "evicted")
    assert (evicted["action"], evicted["beneficiary"]) == ("preempt", f"{NAMESPACE}/first")
    assert "priority" in evicted["chosen_by"]
    told = [kind for kind in kinds(asked(leader, path)) if kind != "waits"]  # until its pods are there
    assert told[:2] == ["let-in", "bound"]
    first = f"/explain/podgroups/{NAMESPACE}/first"
    cluster.wait(lambda: "bound" in kinds(asked(leader, first)), "the other to be bound")
    assert "room-made" in kinds(asked(leader, first))
    refused = asked(standby, path)
    assert refused["httpStatus"] == 503
    assert "is on standby: the leader is " in refused["message"]
    cluster.plane.kubectl("create", "serviceaccount", "nobody", "-n", NAMESPACE)
    token = cluster.plane.token_for(NAMESPACE, "nobody")
    assert asked(leader, path, token)["httpStatus"] == 403
    assert asked(leader, f"/explain/podgroups/{NAMESPACE}/unknown")["httpStatus"] == 404
    _tell_of_cycles(cluster, leader, standby, token)
    _tell_of_the_policy(cluster, leader, standby, token)
    cluster.submit("huge", pods=1, cpu=64)
    huge = f"/explain/podgroups/{NAMESPACE}/huge"
    cluster.wait(lambda: asked(leader, huge).get("explanation"), "the reason to be told")
    assert asked(leader, huge)["explanation"]["gate"] == "nodes"


def _tell_of_cycles(cluster: SchedulerCluster, leader: Scheduler, standby: Scheduler, nobody: str) -> None:
    answer = asked(leader, "/explain/cycles")
    decided = [entry for entry in answer["cycles"] if entry.get("kind", "decided") == "decided"]
    assert sum(entry.get("bound", 0) for entry in decided) == 3
    assert all(entry["parts"].keys() >= {"open", "allocate", "preempt", "close"} for entry in decided)
    told = {(each["kind"], each["job"]): each for entry in decided for each in entry.get("decisions", ())}
    assert told["let-in", f"{NAMESPACE}/train"]["action"] == "enqueue"
    assert told["bound", f"{NAMESPACE}/first"]["queue"] == "default"
    evicted = told["evicted", f"{NAMESPACE}/train"]
    assert (evicted["action"], evicted["beneficiary"]) == ("preempt", f"{NAMESPACE}/first")
    newest = answer["newest"]
    newer = asked(leader, f"/explain/cycles?after={newest}").get("cycles", [])
    assert all(entry["lastNumber"] > newest for entry in newer)
    assert asked(leader, "/explain/cycles?after=soon")["httpStatus"] == 400
    assert "is on standby" in asked(standby, "/explain/cycles")["message"]
    assert 'cannot list resource "pods"' in asked(leader, "/explain/cycles", nobody)["message"]


def _tell_of_the_policy(
    cluster: SchedulerCluster, leader: Scheduler, standby: Scheduler, nobody: str
) -> None:
    policy = asked(leader, "/explain/policy")
    assert (policy["source"], policy["text"]) == (str(cluster.policy), PREEMPT)
    assert [action["name"] for action in policy["actions"]] == ["enqueue", "allocate", "preempt"]
    assert "refused" not in policy
    cluster.policy.write_text(PREEMPT.replace("allocate", "alocate"))
    cluster.wait(lambda: asked(leader, "/explain/policy").get("refused"), "the edit to be refused")
    edited = asked(leader, "/explain/policy")
    assert (edited["loaded"], edited["digest"]) == (policy["loaded"], policy["digest"])
    (error,) = edited["refused"]["errors"]
    assert (error["line"], edited["refused"]["isLatest"]) == (2, True)
    cluster.policy.write_text(PREEMPT)
    cluster.wait(
        lambda: not asked(leader, "/explain/policy")["refused"].get("isLatest"), "the edit to be mended"
    )
    assert asked(standby, "/explain/policy")["httpStatus"] == 503
    refused = asked(leader, "/explain/policy", nobody)
    assert (refused["httpStatus"], 'cannot get path "/explain/policy"' in refused["message"]) == (403, True)
