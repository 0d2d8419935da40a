"""A scheduler on an API server in memory, step by step: cycles, writes and time go on when a test says so.

Mirror, world, engine and writer are the real ones; only the network and the clock are not.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from stromboli.api.types.meta import Object
from stromboli.engine.decisions import Decision
from stromboli.kube.event_recorder import EventRecorder
from stromboli.kube.request import ApiError, Request
from stromboli.scheduler.mirror.cluster_mirror import ClusterMirror
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.mirror.kubernetes_world import KubernetesWorld
from stromboli.scheduler.writes.decision_writer import DecisionWriter
from stromboli.scheduler.writes.held_orders import HOLD, MAX_HOLD
from stromboli.scheduler.writes.write_orders import DecisionOrders
from stromboli.scheduling_loop import Scheduler
from stromboli.testing.policy_text import known_extensions, policy_of
from tests.kube.fake_api import Clock, body
from tests.manifests import EPOCH, Manifest, decoded

PLUGINS = "priority gang conformance | drf predicates proportion nodeorder"


class MemoryServer:
    """Objects by path, and what it was asked to write; merges as an API server does, as far as we ask for it."""

    def __init__(self) -> None:
        self.objects: dict[str, Manifest] = {}
        self.requests: list[Request] = []
        self.version = 0
        self.conflicts = 0
        """Patches of a version that is not the newest; each is followed by a read and another patch."""
        self.changed: dict[str, Manifest | None] = {}
        """Since the mirror last looked; None if it is gone."""

    def put(self, *manifests: Manifest) -> None:
        """Create objects."""
        for manifest in manifests:
            made = copy.deepcopy(manifest)
            made["metadata"].setdefault("uid", _path(made))
            self._changed(_path(made), made)

    def delete(self, path: str) -> None:
        self.objects.pop(path, None)
        self.changed[path] = None

    def update(self, path: str, part: Manifest) -> None:
        """What others do."""
        if path in self.objects:
            self._changed(path, _merged(self.objects[path], part))

    def _changed(self, path: str, content: Manifest) -> None:
        self.version += 1
        metadata = {**content["metadata"], "resourceVersion": str(self.version)}
        self.objects[path] = self.changed[path] = {**content, "metadata": metadata}

    async def send(self, request: Request, timeout: float) -> bytes:
        self.requests.append(request)
        path = request.path.removesuffix("/status").removesuffix("/binding")
        if "/events" in path:
            return b"{}"
        if request.method == "GET":
            collection, _, name = path.partition("?fieldSelector=metadata.name%3D")
            found = self.objects.get(f"{collection}/{name}")
            return msgspec.json.encode({"items": [found] if found is not None else []})
        if (known := self.objects.get(path)) is None:
            raise ApiError(404, "NotFound", "not found")
        if request.path.endswith("/binding"):
            return self._bind(path, known, body(request))
        if request.method == "DELETE":
            self.delete(path)
            return b"{}"
        changed = _merged(known, body(request))
        if any(changed["metadata"][key] != known["metadata"][key] for key in ("uid", "resourceVersion")):
            self.conflicts += 1
            raise ApiError(409, "Conflict", "the object has been modified")
        self._changed(path, changed)
        return msgspec.json.encode(self.objects[path])

    def _bind(self, path: str, pod: Manifest, binding: Manifest) -> bytes:
        if pod["spec"].get("nodeName"):
            raise ApiError(409, "Conflict", "already assigned")
        status = pod.get("status", {})
        others = [entry for entry in status.get("conditions", ()) if entry["type"] != "PodScheduled"]
        scheduled = {"type": "PodScheduled", "status": "True"}
        bound = _merged(pod, {"spec": {"nodeName": binding["target"]["name"]}})
        self._changed(path, {**bound, "status": {**status, "conditions": [*others, scheduled]}})
        return b"{}"

    def sent(self, part: str, method: str = "") -> list[Any]:
        """The bodies of requests whose path has this part."""
        return [
            body(request)
            for request in self.requests
            if part in request.path and request.method.startswith(method)
        ]

    def events(self, reason: str = "") -> list[tuple[str, str, str]]:
        """Kind and name of their object, and the message."""
        return [
            (event["involvedObject"]["kind"], event["involvedObject"]["name"], event["message"])
            for event in self.sent("/events", "POST")
            if event["reason"] == reason or not reason
        ]


class WrittenWorld:
    """One scheduler after another on the same server."""

    def __init__(self, hold: tuple[float, float] = (HOLD, MAX_HOLD)) -> None:
        self.server = MemoryServer()
        self.clock = Clock(EPOCH + 1000.0)
        self._hold = hold
        self._writer: DecisionWriter | None = None
        self._seen: dict[str, Object] = {}

    async def restart(self) -> None:
        """Begin, or begin anew after a sudden death: what was not sent by then is lost."""
        await self.close()
        nobody: Any = None
        mirror = ClusterMirror(ClusterWatches(nobody))
        self._changes = mirror.seam.changes
        self.server.changed = dict(self.server.objects)
        world = KubernetesWorld(mirror, self._submit, wall=self.clock, clock=self.clock)
        self._orders = DecisionOrders(world)
        catalog = known_extensions()
        policy = policy_of(catalog, "enqueue, allocate, backfill", PLUGINS, "")
        self._scheduler = Scheduler(world, policy, catalog)
        self._writer = DecisionWriter(
            self.server,
            EventRecorder("volcano", "test", self.clock),
            lambda: 60.0,
            world.failed,
            hold=self._hold,
            wall=self.clock,
            clock=self.clock,
        )
        self._writer.start()

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.outbox.stop()
            await self._writer._queue.stop()
            self._writer = None

    def _submit(self, decisions: Sequence[Decision]) -> None:
        assert self._writer is not None
        self._writer.outbox.submit(self._orders.of(decisions))

    async def cycle(self, seconds: float = 0.0) -> None:
        """Let so much time go by, decide, and wait for what is sent."""
        assert self._writer is not None
        await self.wait(seconds)
        self._watch()
        self._scheduler.cycle()
        await self._sent()

    def _watch(self) -> None:
        """Let the mirror see what has changed."""
        changed, self.server.changed = self.server.changed, {}
        for path, content in changed.items():
            if content is not None:
                self._seen[path] = decoded(content)
                self._changes.put(self._seen[path], new=True)
            elif (known := self._seen.pop(path, None)) is not None:
                self._changes.drop(known)

    async def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        await self._sent()

    async def _sent(self) -> None:
        assert self._writer is not None
        self._writer.outbox.release_due()
        await asyncio.wait_for(self._writer.idle(), 30.0)

    async def settle(self) -> None:
        """Go on until nothing is left to be told."""
        for _ in range(4):
            await self.cycle(6.0)


def _path(manifest: Manifest) -> str:
    metadata, version, kind = manifest["metadata"], manifest["apiVersion"], manifest["kind"]
    base = "/api/v1" if version == "v1" else f"/apis/{version}"
    namespace = "" if kind in ("Node", "Queue") else f"/namespaces/{metadata.get('namespace', 'default')}"
    return f"{base}{namespace}/{kind.lower()}s/{metadata['name']}"


def pod_path(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"


def group_path(name: str) -> str:
    return f"/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/{name}"


def _merged(content: Manifest, part: Manifest) -> Manifest:
    """A merge patch; conditions of pods are merged by type, as a strategic patch does."""
    result = dict(content)
    for key, value in part.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key) or {}, value)
        elif key == "conditions" and not any("transitionID" in entry for entry in value):
            known = {entry["type"]: entry for entry in result.get(key, ())}
            merged = {entry["type"]: {**known.get(entry["type"], {}), **entry} for entry in value}
            result[key] = list({**known, **merged}.values())
        else:
            result[key] = value
    return result
