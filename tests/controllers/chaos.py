"""What befalls jobs in a chaotic cluster, and what must hold of them whatever befell them.

Pods are deleted slowly, as a kubelet does it. Watches tell late, tell twice, and now and then forget what happened.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

from stromboli.api import names
from stromboli.controllers.job.job_phases import FINISHED, INACTIVE, is_live
from stromboli.kube.request import ApiError, Request
from tests.controllers.in_memory_api import InMemoryApi, Manifest
from tests.controllers.job.simulated_job import job_manifest, policy, task
from tests.controllers.running import NOW

SPACE = "team"
EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
COMMANDS = ["AbortJob", "ResumeJob", "ResumeJob", "RestartJob"]


class UnreliableApi(InMemoryApi):
    """An API server whose watches are not to be relied on while it is `unreliable`."""

    def __init__(self, seed: int, often: float) -> None:
        super().__init__()
        self._random = random.Random(seed + 1)
        self._often = often
        self.unreliable = True
        self.refused: Counter[str] = Counter()
        """Pods that were asked for while they were there, by name."""
        self.unknown: Counter[str] = Counter()
        """How often whoever asked could not know that the pod was there."""

    async def _lines(self, plural: str, since: int, *scope: object) -> AsyncIterator[bytes]:
        async for line in super()._lines(plural, since, *scope):  # type: ignore[arg-type]
            if self._happens(1.0):
                await asyncio.sleep(self._random.random() * 0.03)
            if self._happens(0.1):
                yield json.dumps(EXPIRED).encode() + b"\n"
                return
            yield line
            if self._happens(0.5):
                yield line

    def _happens(self, share: float) -> bool:
        return self.unreliable and self._random.random() < self._often * share

    async def send(self, request: Request, timeout: float = 30.0) -> bytes:
        where, _, name = request.path.partition(f"/namespaces/{SPACE}/pods")
        try:
            return await super().send(request, timeout)
        except Exception as error:
            if where != request.path and request.method in ("POST", "GET"):
                self._note(request, name.strip("/"), error)
            raise

    def _note(self, request: Request, name: str, error: Exception) -> None:
        name = name or json.loads(request.body or b"")["metadata"]["name"]
        if isinstance(error, ApiError) and error.reason == "AlreadyExists":
            self.refused[name] += 1
        elif ("pods", SPACE, name) in self.objects:
            self.unknown[name] += 1

    def _create(self, plural: str, namespace: str, body: Manifest) -> Manifest:
        if plural == "pods":
            body.setdefault("status", {"phase": "Pending"})
        return super()._create(plural, namespace, body)

    def _answer(self, request: Request) -> Any:
        """A pod that is deleted stays for a while."""
        name = request.path.rpartition(f"/namespaces/{SPACE}/pods/")[2]
        key = ("pods", SPACE, name)
        if request.method != "DELETE" or key not in self.objects:
            return super()._answer(request)
        self._same(key, json.loads(request.body or b"{}").get("preconditions", {}))
        return self._patch(key, {"metadata": {"deletionTimestamp": "2026-01-01T00:01:30Z"}}, None)


class Chaos:
    """Lets objects happen to jobs, by chance."""

    def __init__(self, api: UnreliableApi, seed: int) -> None:
        self._api = api
        self._random = random.Random(seed + 2)
        self._taken: set[str] = set()
        """Pods that somebody else took away, by uid."""
        self._commands = 0
        for job in _jobs():
            api.put("jobs", job)

    def act(self) -> None:
        """Something happens."""
        self.admit()
        happenings = [
            self._run,
            self._run,
            self._fail,
            self._evict,
            self._scale,
            self._command,
            self.remove_deleted,
        ]
        self._random.choice(happenings)()

    # -- the scheduler and the kubelets

    def admit(self) -> None:
        for group in self._api.every("podgroups"):
            meta = group["metadata"]
            if meta["namespace"] == SPACE and group.get("status", {}).get("phase", "") in ("", "Pending"):
                self._api.put("podgroups", {**group, "status": {"phase": "Inqueue"}})

    def remove_deleted(self) -> None:
        """Pods that are being deleted go."""
        for pod in self._pods():
            if "deletionTimestamp" in pod["metadata"]:
                self._api.remove("pods", pod["metadata"]["name"], SPACE)

    def end(self) -> None:
        """Everything succeeds that has not ended."""
        for pod in self._pods("Pending", "Running"):
            self._set(pod, "Succeeded")

    def _run(self) -> None:
        for pod in self._pods("Pending"):
            self._set(pod, "Running")

    def _fail(self) -> None:
        for pod in self._some(self._pods("Running")):
            self._set(pod, "Failed")

    def _set(self, pod: Manifest, phase: str) -> None:
        self._api.put("pods", {**pod, "status": {"phase": phase}})

    def _evict(self) -> None:
        for pod in self._some([pod for pod in self._pods() if "deletionTimestamp" not in pod["metadata"]]):
            self._taken.add(pod["metadata"]["uid"])
            self._api.remove("pods", pod["metadata"]["name"], SPACE)

    # -- users

    def _scale(self) -> None:
        job = self._api.find("jobs", "scaled", SPACE)
        tasks = [{**job["spec"]["tasks"][0], "replicas": self._random.randint(1, 4)}]
        self._api.put("jobs", {**job, "spec": {**job["spec"], "tasks": tasks}})

    def _command(self) -> None:
        """Mostly for one job, so that it is resumed as well."""
        self._commands += 1
        job = self._random.choice(["paused", "paused", "restarts"])
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": ""}
        meta = {"name": f"c{self._commands}", "namespace": SPACE}
        meta["creationTimestamp"] = f"2026-01-01T00:00:{self._commands % 60:02}Z"
        action = self._random.choice(COMMANDS)
        self._api.put("commands", {"metadata": meta, "action": action, "target": target})

    def _pods(self, *phases: str) -> list[Manifest]:
        pods = [pod for pod in self._api.every("pods") if pod["metadata"]["namespace"] == SPACE]
        return [pod for pod in pods if not phases or pod["status"]["phase"] in phases]

    def _some(self, pods: list[Manifest]) -> list[Manifest]:
        return [self._random.choice(pods)] if pods else []

    # -- what must hold

    def violations(self) -> list[str]:
        """What is not as it should be once nothing happens any more."""
        jobs = self._api.every("jobs")
        violations = [f"command {command['metadata']['name']}" for command in self._api.every("commands")]
        return violations + [text for job in jobs for text in self._violations_of(job)]

    def _violations_of(self, job: Manifest) -> Iterator[str]:
        name, status = job["metadata"]["name"], job.get("status", {})
        phase = status.get("state", {}).get("phase", "")
        uid = job["metadata"]["uid"]
        pods = [pod for pod in self._pods() if _owner(pod) == uid]
        counts = Counter(pod["status"]["phase"] for pod in pods)
        for kind in ("Pending", "Running", "Succeeded", "Failed"):
            if status.get(kind.lower(), 0) != counts[kind]:
                yield f"{name}: {kind} is {status.get(kind.lower(), 0)}, there are {counts[kind]}"
        if status.get("terminating", 0) or any("deletionTimestamp" in pod["metadata"] for pod in pods):
            yield f"{name}: pods are terminating"
        if phase not in INACTIVE | {"Pending", "Running"}:
            yield f"{name}: hangs in {phase!r}"
        there = {pod["metadata"]["name"] for pod in pods}
        if is_live(phase) and there != set(_wanted(job)):
            yield f"{name}: {phase} with {sorted(there)}"
        if phase in INACTIVE and (counts["Pending"] or counts["Running"]):
            yield f"{name}: {phase}, and pods run"
        if is_live(phase) != any(uid == _owner(group) for group in self._api.every("podgroups")):
            yield f"{name}: {phase}, and the group is not as it should be"

    def check_past(self) -> None:
        """Nothing that ended ever began again, and no pod was made twice for one index and version.

        A pod comes a second time in the same version of its job only if the first was taken away by somebody else, or
        was marked because a part of the job is restarted or smaller. All other deletions come with a new version.
        """
        ended: dict[str, str] = {}
        versions: dict[str, int] = {}
        left: dict[tuple[str, str, str], str] = {}
        for _, plural, type_, obj in self._api._changes:
            meta = obj["metadata"]
            if meta.get("namespace") != SPACE or plural not in ("jobs", "pods"):
                continue
            if plural == "jobs":
                phase = obj.get("status", {}).get("state", {}).get("phase", "")
                assert ended.setdefault(meta["uid"], phase) == phase or ended[meta["uid"]] not in FINISHED
                ended[meta["uid"]] = phase
                version = obj.get("status", {}).get("version", 0)
                assert version >= versions.get(meta["uid"], 0), meta["name"]
                versions[meta["uid"]] = version
                continue
            marks = meta["annotations"]
            uid = _owner(obj)
            which = (uid, meta["name"], marks[names.JOB_VERSION])
            if type_ == "ADDED":
                assert meta["name"].endswith(f"-{marks[names.TASK_SPEC]}-{marks[names.TASK_INDEX]}")
                assert left.get(which, "never there") in ("never there", "taken", "marked"), which
                assert int(marks[names.JOB_VERSION]) == versions[uid], which
                left[which] = "there"
            elif type_ == "DELETED":
                marked = "marked" if names.OUT_OF_SYNC in marks else "deleted"
                left[which] = "taken" if meta["uid"] in self._taken else marked
        for name, times in self._api.refused.items():
            assert times <= self._api.unknown[name], f"{name} was asked for while it was known to be there"


def _jobs() -> Iterator[Manifest]:
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    restarts = [policy("RestartJob", "PodFailed")]
    yield job_manifest(task("a", 2), task("b", 1), name="restarts", policies=restarts, metadata=metadata)
    parts = [policy("RestartTask", "PodFailed"), policy("RestartPod", "PodEvicted")]
    tasks = task("a", 2, policies=parts), task("b", 1, policies=[policy("RestartPod", "PodFailed")])
    yield job_manifest(*tasks, name="parts", maxRetry=20, minAvailable=1, metadata=metadata)
    yield job_manifest(task("w", 2), name="scaled", minAvailable=1, metadata=metadata)
    paused = [policy("RestartJob", "PodEvicted")]
    yield job_manifest(task("w", 2), name="paused", maxRetry=20, policies=paused, metadata=metadata)


def _owner(obj: Manifest) -> str:
    return "".join(owner["uid"] for owner in obj["metadata"].get("ownerReferences", [])[:1])


def _wanted(job: Manifest) -> Iterator[str]:
    for task_spec in job["spec"].get("tasks", []):
        for index in range(task_spec["replicas"]):
            yield f"{job['metadata']['name']}-{task_spec['name']}-{index}"


class RunningClock:
    """A clock that runs, from a minute after all began."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    def __call__(self) -> float:
        return NOW + 61 + asyncio.get_running_loop().time() - self._began
