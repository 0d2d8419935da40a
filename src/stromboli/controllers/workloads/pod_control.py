"""Creates and deletes the pods of an owner, with the events that Kubernetes' controllers record."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from stromboli.api.errors import BadObject
from stromboli.api.selectors import matches_labels
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.api_writer import is_namespace_terminating
from stromboli.controllers.owner_references import controller_uid
from stromboli.controllers.workloads.dependents import Dependents
from stromboli.controllers.workloads.workload import Manifest, Workload, manifest_size
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.kube.request import ApiError, NoResponse

FIRST_BATCH, FULL_BATCH = 1, 16
"""Pods that are created at the same time: twice as many after each batch without an error."""
HUGE_POD = 64 * 1024
"""Bytes of a pod from which on they are created one at a time, so that others have their turns in between."""
NAME_ATTEMPTS = 8
"""Random names that are tried for a pod."""


class OwnedPods(Dependents[Pod]):
    """The pods of a controller's owners."""

    def __init__(self, controller: WorkloadController[Any]) -> None:
        super().__init__(controller, Pod)
        self._recorder = controller.recorder

    async def create_all(self, owner: Workload, makers: Sequence[Callable[[int], Manifest]]) -> None:
        """Create pods in batches that grow; after an error the rest is left to the next sync, and it is raised.

        A maker gets a random number that its pod's name may follow from, and another if the name is taken. An owner
        that would not know its pods again gets none, or there would be more of them with every sync.
        """
        selector = getattr(owner, "selector", None)
        if makers and not matches_labels(selector, makers[0](0)["metadata"].get("labels") or {}):
            raise BadObject("spec.selector", "does not select the pods of spec.template", owner.subject)
        full = FULL_BATCH if not makers or manifest_size(owner) < HUGE_POD else 1
        await slow_start([partial(self._create, owner, make) for make in makers], full)

    async def _create(self, owner: Workload, make: Callable[[int], Manifest]) -> None:
        try:
            for _ in range(NAME_ATTEMPTS):
                pod = await self._create_unless_taken(owner, make(secrets.randbits(64)))
                if pod is not None:
                    self._recorder.normal(owner, "SuccessfulCreate", f"Created pod: {pod.name}")
                    return
        except (ApiError, NoResponse) as error:
            if is_namespace_terminating(error):
                return
            self._recorder.warning(owner, "FailedCreate", f"Error creating: {error}")
            raise

    async def _create_unless_taken(self, owner: Workload, manifest: Manifest) -> Pod | None:
        """None if the name is taken. A pod of the owner that was unknown is that of a request whose answer was lost."""
        name = manifest["metadata"]["name"]
        if self.knows(owner, name):
            return None
        pod = await self.create(owner, manifest)
        if pod is None:
            existing = await self.context.writer.read(Pod, name, owner.namespace)
            if existing is not None and owner.metadata.uid in controller_uid(existing):
                return self.created(owner, existing)
        return pod

    async def delete_all(self, owner: Workload, pods: Iterable[Pod]) -> None:
        """Delete pods; the first error is raised when all were tried."""
        errors = await in_batches([partial(self._delete, owner, pod) for pod in pods], FULL_BATCH)
        if errors:
            raise errors[0]

    async def _delete(self, owner: Workload, pod: Pod) -> None:
        try:
            deleted = await self.delete(owner, pod)
        except (ApiError, NoResponse) as error:
            self._recorder.warning(owner, "FailedDelete", f"Error deleting: {error}")
            raise
        if deleted:
            self._recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}")


Write = Callable[[], Awaitable[None]]


async def slow_start(writes: Sequence[Write], full: int = FULL_BATCH) -> None:
    """Do writes in batches that double up to `full`; after one with an error the rest is left out, and it is raised."""
    start, size = 0, FIRST_BATCH
    while start < len(writes):
        if errors := await in_batches(writes[start : start + size], size):
            raise errors[0]
        start, size = start + size, min(2 * size, full)


async def in_batches(writes: Sequence[Write], size: int) -> list[Exception]:
    """Do all writes, so many at a time; the errors of the API server."""
    errors: list[Exception] = []

    async def attempt(write: Write) -> None:
        try:
            await write()
        except (ApiError, NoResponse) as error:
            errors.append(error)

    for start in range(0, len(writes), size):
        await asyncio.gather(*(attempt(write) for write in writes[start : start + size]))
    return errors
