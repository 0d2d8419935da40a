"""The pods of a job that are kept up change by change equal those of a full look, and so do the decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.observed_events import GonePod, ReconcileCache, succeeded_pods
from stromboli.controllers.job.pod_summary import PodSummary
from stromboli.controllers.job.reconcile import reconcile
from stromboli.controllers.job.tracked_pods import TrackedPods
from stromboli.controllers.pending_writes import TIMEOUT, PendingWrites
from tests.controllers.job.simulated_job import NOON, SimulatedJob, make_job, policy, task

NAMES = ["j-a-0", "j-a-1", "j-a-2", "j-b-0", "j-b-01", "j-c-0"]
"""Pods that the job wants, one too many, one with an odd name, and one of a task that it has not."""
STATES = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Odd"]),
        "code": st.sampled_from([0, 3]),
        "restarts": st.sampled_from([0, 0, 2]),
        "ready": st.booleans(),
        "version": st.sampled_from(["0", "1"]),
        "terminating": st.sampled_from([False, False, True]),
        "out_of_sync": st.sampled_from([False, False, True]),
        "lost": st.sampled_from(["", "", NOON.isoformat(), "never"]),
    }
)
NAMED = st.sampled_from(NAMES)
EVENTS = st.one_of(
    st.tuples(st.just("put"), NAMED, STATES),
    st.tuples(st.just("replace"), NAMED, STATES),
    st.tuples(st.sampled_from(["create late", "delete late", "fail to delete late"]), NAMED, STATES),
    st.tuples(st.sampled_from(["remove", "create", "delete", "fail to delete", "show"]), NAMED, st.just({})),
    st.tuples(st.sampled_from(["wait", "restart", "scale", "reconcile", "look"]), st.just(""), st.just({})),
)
POLICIES = [
    [],
    [policy("RestartJob", "PodEvicted"), policy("AbortJob", "PodFailed", timeout="1m")],
    [policy("RestartTask", "TaskFailed"), policy("CompleteJob", "TaskCompleted")],
    [policy("AbortJob", exitCode=3), policy("RestartPod", "PodPending", timeout="30s")],
]


def shown(name: str, uid: str, state: dict[str, Any]) -> Pod:
    """A pod as the store may show it."""
    ended = {"exitCode": state.get("code", 0), "finishedAt": NOON.isoformat()}
    run = {"ready": state.get("ready", False), "restartCount": state.get("restarts", 0)}
    run |= {"state": {"terminated": ended}} if state.get("phase") in ("Failed", "Succeeded") else {}
    annotations = {
        names.TASK_SPEC: name.split("-")[1],
        names.JOB_NAME: "j",
        names.JOB_VERSION: state.get("version", "0"),
        **({names.OUT_OF_SYNC: "true"} if state.get("out_of_sync") else {}),
        **({names.LOST_AT: state["lost"]} if state.get("lost") else {}),
    }
    metadata = {"name": name, "namespace": "team", "uid": uid, "annotations": annotations}
    metadata |= {"creationTimestamp": NOON.isoformat()}
    metadata |= {"deletionTimestamp": NOON.isoformat()} if state.get("terminating") else {}
    status = {"phase": state.get("phase", "Pending"), "containerStatuses": [run]}
    return msgspec.convert({"metadata": metadata, "status": status}, Pod)


class Comparison:
    """A job whose pods are tracked, beside a full look at the store and at what was written."""

    def __init__(self, policies: list[dict[str, Any]]) -> None:
        whole = SimulatedJob(make_job(task("a", 2), task("b", 1, minAvailable=1), policies=policies))
        self.base = whole.settle().set_all("Running").settle().observed()
        self.job = self.base.job
        self.now, self.serial = 0.0, 0
        self.store: dict[str, Pod] = {}
        self.hidden: dict[str, Pod] = {}
        """Pods that were created and that the store does not show yet."""
        self.tracked = TrackedPods(lambda: self.now)
        self.writes: PendingWrites[Pod] = PendingWrites()
        self.known: dict[str, Pod] = {}
        """The pods that the last reconcile observed which was carried out, in their latest state."""
        self.caches = [ReconcileCache(), ReconcileCache()]
        self.look(carried_out=True)

    def happen(self, event: str, name: str, state: dict[str, Any]) -> None:
        before = self.store.get(name)
        match event:
            case "put" | "replace":
                same = before is not None and event == "put"
                uid = before.metadata.uid if before is not None and same else self.new_uid()
                self.show(name, shown(name, uid, state))
            case "remove" if before is not None:
                self.show(name, None)
            case "create" if before is None and name not in self.hidden:
                pod = self.hidden[name] = shown(name, self.new_uid(), {})
                self.create(pod)
            case "show" if name in self.hidden:
                self.show(name, self.hidden.pop(name))
            case "create late" if before is None and name not in self.hidden:
                pod = shown(name, self.new_uid(), {})
                self.show(name, pod)
                self.show(name, shown(name, pod.metadata.uid, state))
                self.create(pod)
            case "delete" | "fail to delete" if before is not None:
                self.delete(before, fails=event == "fail to delete")
            case "delete late" | "fail to delete late" if before is not None:
                self.show(name, shown(name, before.metadata.uid, state))
                self.delete(before, fails=event == "fail to delete late")
            case "wait":
                self.now += TIMEOUT
                self.hidden.clear()
                self.look(carried_out=False)
            case "restart" | "scale":
                self.change_job(event)
            case "reconcile":
                self.look(carried_out=True)

    def create(self, pod: Pod) -> None:
        """We learn that we have created a pod; if that is `late`, the store shows a later state of it already."""
        self.tracked.created(pod)
        self.writes.created(pod, self.now)

    def delete(self, pod: Pod, fails: bool) -> None:
        """We delete a pod in the state of the last look; if that is `late`, the store shows a later one."""
        self.tracked.deleted(pod)
        self.writes.deleted(pod, self.now)
        if fails:
            self.tracked.not_deleted(pod)
            self.writes.not_deleted(pod)

    def new_uid(self) -> str:
        self.serial += 1
        return f"p{self.serial}"

    def show(self, name: str, pod: Pod | None) -> None:
        """The store shows another state of a pod."""
        before = self.store.pop(name, None)
        by_us = before is not None and self.writes.has_deleted(before)
        if by_us and (pod is None or before is None or pod.metadata.uid != before.metadata.uid):
            self.known.pop(name, None)
        if pod is not None:
            self.store[name] = pod
            self.writes.observed(pod)
        elif before is not None:
            self.writes.gone(before)
        self.writes.apply(self.store.values(), self.now)  # a look at every state
        self.tracked.stored(before, pod)

    def change_job(self, event: str) -> None:
        whole = msgspec.to_builtins(self.job)
        if event == "restart":
            whole["status"]["version"] = 1 - whole["status"].get("version", 0)
        else:
            whole["spec"]["tasks"][0]["replicas"] = 5 - whole["spec"]["tasks"][0]["replicas"]
        self.job = msgspec.convert(whole, Job)

    def look(self, carried_out: bool) -> None:
        """Reconcile twice, by the summary that was kept up and from scratch, and compare."""
        full = PodSummary.of(self.job, self.writes.apply(self.store.values(), self.now))
        gone = self.refresh(full)
        kept = self.tracked.observe(self.job, self.store.values, self.store.get)
        lost = self.tracked.gone
        gone |= {name: pod for name, pod in lost.items() if pod.succeeded}  # those have tests of their own
        full.read_status(self.job, succeeded_pods(self.job, lost))
        assert _contents(kept) == _contents(full)
        now = NOON + timedelta(seconds=self.now)
        observed = [
            replace(self.base, job=self.job, now=now, pods=pods, gone=missed, cache=cache)
            for (pods, missed), cache in zip([(kept, lost), (full, gone)], self.caches, strict=True)
        ]
        outcomes = [reconcile(state) for state in observed]
        assert outcomes[0] == outcomes[1]
        if carried_out:
            self.caches = [outcome.cache for outcome in outcomes]
            self.tracked.carried_out(lost)
            self.known = dict(full.pods)

    def refresh(self, full: PodSummary) -> dict[str, GonePod]:
        """Pods that were observed before and are gone, in the state in which they were last."""
        gone = {}
        for name, pod in self.known.items():
            now = full.pods.get(name)
            if now is not None and now.metadata.uid == pod.metadata.uid:
                self.known[name] = now
            elif names.OUT_OF_SYNC not in pod.metadata.annotations:
                gone[name] = GonePod.of(pod)
        return gone


def _contents(summary: PodSummary) -> dict[str, Any]:
    """What a summary says; a pod that we delete is marked with the time at which somebody looked."""
    contents = {
        key: value for key, value in vars(summary).items() if key not in ("_job", "_members", "_read", "pods")
    }
    contents["pods"] = sorted((name, pod.metadata.uid) for name, pod in summary.pods.items())
    contents["restarted"] = {task: counts for task, counts in summary.restarted.items() if counts}
    contents["_phases"] = +contents["_phases"]
    contents["_task_phases"] = summary.counts().tasks
    return contents


@given(st.sampled_from(POLICIES), st.lists(EVENTS, max_size=12))
@example(
    POLICIES[1],
    [("create", "j-a-0", {}), ("reconcile", "", {}), ("show", "j-a-0", {}), ("remove", "j-a-0", {})],
)
@example(
    POLICIES[1], [("put", "j-a-0", {}), ("reconcile", "", {}), ("delete", "j-a-0", {}), ("wait", "", {})]
)
@example(POLICIES[3], [("create late", "j-a-0", {"phase": "Failed", "code": 3})])
@example(
    POLICIES[3], [("put", "j-a-0", {}), ("fail to delete late", "j-a-0", {"phase": "Failed", "code": 3})]
)
def test_pods_that_are_kept_up_equal_a_full_look_and_lead_to_the_same_decisions(
    policies: list[dict[str, Any]], events: list[tuple[str, str, dict[str, Any]]]
) -> None:
    comparison = Comparison(policies)
    for event in events:
        comparison.happen(*event)
        if event[0] not in ("remove", "replace", "put"):
            comparison.look(carried_out=False)
    comparison.look(carried_out=False)
