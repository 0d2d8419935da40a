"""Generic ephemeral volumes: each has a claim of its own, which goes with its pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.builtin.persistent_volume_claim import CLAIMS
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.controller import StoreController
from stromboli.embedded.kube_controllers.volumes.pod_volume_claims import ephemeral_claims, has_ephemeral
from stromboli.embedded.store.records import Change, Key


class EphemeralVolumeController(StoreController):
    name = "ephemeral-volume-controller"
    component = "ephemeral_volume"

    def initial_keys(self) -> Iterator[Key]:
        return (record.key for record in self._objects.store.list("pods") if has_ephemeral(record))

    def keys_for(self, change: Change) -> Iterable[Key]:
        before, after = change.before, change.after
        if change.key.resource == "pods":
            return [change.key] if after is not None and has_ephemeral(after) else ()
        if change.key.resource == CLAIMS and after is None and before is not None:
            owners = before.object()["metadata"].get("ownerReferences") or ()
            namespace = change.key.namespace
            return [Key("pods", namespace, owner["name"]) for owner in owners if owner["kind"] == "Pod"]
        return ()

    async def reconcile(self, key: Key) -> None:
        record = self._objects.store.get(*key) if key.resource == "pods" else None
        if record is None or not has_ephemeral(record) or record.meta.deletion_timestamp:
            return
        pod = record.object()
        for name, template in ephemeral_claims(pod):
            existing = self._objects.store.get(CLAIMS, key.namespace, name)
            if existing is None:
                await self._make(pod, name, template)
            elif all(owner.uid != record.meta.uid for owner in existing.meta.owner_references or ()):
                self._record_problem(
                    pod, f"PVC {key.namespace}/{name} was not created for the pod (pod is not owner)"
                )

    async def _make(self, pod: Content, name: str, template: Content) -> None:
        try:
            await self._create(CLAIMS, pod["metadata"]["namespace"], _claim(pod, name, template))
        except StatusError as error:
            self._record_problem(pod, f"create PVC {name}: {error}")
            raise

    def _record_problem(self, pod: Content, problem: str) -> None:
        self._record_event(pod, "FailedBinding", f"ephemeral volume: {problem}")


def _claim(pod: Content, name: str, template: Content) -> Content:
    meta = template.get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "controller": True, "blockOwnerDeletion": True}
    owner |= {field: pod["metadata"][field] for field in ("name", "uid")}
    kept = {field: meta[field] for field in ("labels", "annotations") if meta.get(field)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, **kept, "ownerReferences": [owner]},
        "spec": template.get("spec") or {},
    }
