"""A gang that is bound through a real writer, on an API server of a few objects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.types.devices import ResourceClaim
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim
from stromboli.engine.decisions import Bind
from stromboli.kube.event_recorder import EventRecorder
from stromboli.model.ledgers import Grant
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes.decision_writer import DecisionWriter
from stromboli.scheduler.writes.write_orders import Gang, WriteFailure, WriteOrder
from tests.scheduler.writes.prebind.stored_objects import Json, StoredObjects

PODS = "/api/v1/namespaces/ns/pods"
CLAIMS = "/api/v1/namespaces/ns/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
NODES = "/api/v1/nodes"
DEVICE_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
KINDS: dict[str, type[Object]] = {
    "pods": Pod,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "persistentvolumes": PersistentVolume,
    "nodes": Node,
    "resourceclaims": ResourceClaim,
}
NOW = 1_790_000_000.0
PATIENCE = 200.0
"""Seconds in which the writer may finish."""


class GangStory:
    """Pods `web-0`, `web-1`, ... with grants each, all on node `n1`; test functions play the controllers."""

    def __init__(self, *grants: tuple[Grant, ...], labels: dict[str, str] | None = None) -> None:
        self.api = StoredObjects((f"{NODES}/n1", {"metadata": {"labels": labels or {}}}))
        self.binds = [
            Bind("ns", f"web-{number}", f"uid of web-{number}", "n1", "ns/web", held)
            for number, held in enumerate(grants)
        ]
        for bind in self.binds:
            self.api.put(f"{PODS}/{bind.name}", {"spec": {}})
        self.told: list[tuple[WriteFailure, ...]] = []
        """Failures as they were told, those of a gang together."""
        self.done: list[str] = []
        self.prebound: list[str] = []
        self.seconds = 0.0
        self.may_write = True
        self.spare = 0
        self.all_written = False
        self.seconds_to_finish = 0.0
        self.writer: DecisionWriter | None = None

    @property
    def failures(self) -> list[WriteFailure]:
        return [failure for together in self.told for failure in together]

    def claim(self, name: str, **annotations: str) -> None:
        self.api.put(f"{CLAIMS}/{name}", {"metadata": {"annotations": annotations}, "spec": {}})

    def volume(self, name: str, **spec: Any) -> None:
        self.api.put(f"{VOLUMES}/{name}", {"spec": spec, "status": {"phase": "Available"}})

    def bound_claim(self, name: str, volume: str) -> None:
        """Controllers have bound a claim, and the watch shows it."""
        annotations = {"pv.kubernetes.io/bind-completed": "yes"}
        self.change(
            f"{CLAIMS}/{name}", {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}}
        )

    def change(self, path: str, patch: Json) -> None:
        """Another client changes an object, and the watch shows it."""
        self._show(path, self.api.change(path, patch))

    def remove(self, path: str) -> None:
        del self.api.objects[path]
        plural, name = path.split("/")[-2:]
        namespace = "ns" if "/namespaces/" in path else ""
        assert self.writer is not None
        gone = KINDS[plural](metadata=ObjectMeta(name=name, namespace=namespace))
        self.writer.prebinder.awaited.note(gone, True)

    def _show(self, path: str, stored: Json) -> None:
        kind = KINDS[path.split("/")[-2]]
        assert self.writer is not None
        self.writer.prebinder.awaited.note(decode_as(kind, msgspec.json.encode(stored)), False)

    def get(self, path: str) -> Json:
        return self.api.objects[path]

    def events(self) -> list[Json]:
        """Those that were written."""
        requests = (request for request in self.api.requests if request.path.endswith("/events"))
        return [msgspec.json.decode(request.body) for request in requests]

    def nodes(self) -> list[str]:
        """Where the pods that exist are bound."""
        return [
            self.api.node_of(bind.name) for bind in self.binds if f"{PODS}/{bind.name}" in self.api.objects
        ]

    def run(self, *steps: Callable[[], None], workers: int = 8) -> GangStory:
        """Let a writer bind the gang; a step follows when the writer does nothing more. At last the process ends."""

        async def story() -> None:
            self.writer = DecisionWriter(
                self.api,
                EventRecorder("volcano", "test", lambda: NOW),
                lambda: 60.0 if self.may_write else 0.0,
                lambda *failures: self.told.append(failures),
                lambda order, _: self.done.append(getattr(order.decision, "name", "")),
                lambda order, _: self.prebound.append(getattr(order.decision, "name", "")),
                workers=workers,
                wall=lambda: NOW + self.seconds,
                clock=lambda: self.seconds,
            )
            gang = Gang(spare=self.spare)
            orders = [WriteOrder(bind, job=bind.job) for bind in self.binds]
            for order, bind in zip(orders, self.binds, strict=True):
                node = decode_as(Node, msgspec.json.encode(self.api.objects[f"{NODES}/n1"]))
                gang.add(order, bind.uid, node)
            self.writer.outbox.submit(orders)
            self.writer.start()
            for step in steps:
                await self._quiet()
                step()
            await self._quiet()
            begun = time.monotonic()
            self.all_written = await asyncio.wait_for(self.writer.finish(PATIENCE), 2 * PATIENCE)
            self.seconds_to_finish = time.monotonic() - begun

        asyncio.run(story())
        return self

    async def _quiet(self) -> None:
        """Wait until no more requests are sent."""
        count, rounds = -1, 0
        while rounds < 4:
            rounds = rounds + 1 if count == len(self.api.requests) else 0
            count = len(self.api.requests)
            await asyncio.sleep(0.005)


def gang(members: int) -> GangStory:
    """The first pod has a claim, the others have none and go with it."""
    story = GangStory((VolumeGrant("ns", "c0", "uid of c0"),), *[()] * (members - 1))
    story.claim("c0")
    story.volume("v0")
    return story


def elastic(members: int = 3, spare: int = 1) -> GangStory:
    """Pods with a claim each, some of which are beyond the minimum."""
    story = GangStory(*((VolumeGrant("ns", f"c{number}", f"uid of c{number}"),) for number in range(members)))
    for number in range(members):
        story.claim(f"c{number}")
        story.volume(f"v{number}")
    story.spare = spare
    return story
