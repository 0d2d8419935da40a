"""Writes about pods: binds, evictions and conditions (spec 05 6.4, 7, 9.3)."""

from __future__ import annotations

from collections.abc import Callable

from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import Bind, Event, Evict, PodCondition
from stromboli.kube.bounded_cache import BoundedCache
from stromboli.kube.guarded_client import GuardedClient
from stromboli.kube.request import ApiError, Request
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.write_orders import WriteOrder


class PodNotBindable(Exception):
    """The pod of a bind is gone, or on another node."""


class PodWrites:
    """Executes orders about pods."""

    def __init__(
        self,
        client: GuardedClient,
        written: BoundedCache,
        record: Callable[[WriteOrder], None],
        scheduler: str,
        wall: Callable[[], float],
    ):
        """`written` holds the uids of pods that have a condition by us. `record` writes an event."""
        self._client = client
        self._written = written
        self._record = record
        self._scheduler = scheduler
        self._wall = wall

    async def bind(self, _: WriteOrder, bind: Bind) -> None:
        try:
            await self._client.send(decision_requests.binding(bind))
        except ApiError as error:
            if error.status == 404:
                raise PodNotBindable("the pod is gone") from None
            if error.status != 409 or not await self._is_bound(bind):
                raise
        self._written.pop(bind.uid, None)
        text = names.SUCCESSFULLY_ASSIGNED.format(namespace=bind.namespace, name=bind.name, node=bind.node)
        event = Event("Pod", bind.namespace, bind.name, names.NORMAL, names.EVENT_SCHEDULED, text)
        self._record(WriteOrder(event, bind.uid))

    async def _is_bound(self, bind: Bind) -> bool:
        """Whether the pod is bound as decided, as after a lost response; `PodNotBindable` if it cannot be any more."""
        try:
            body = await self._client.send(
                Request("GET", decision_requests.pod_path(bind.namespace, bind.name))
            )
        except ApiError as error:
            if error.status == 404:
                raise PodNotBindable("the pod is gone") from None
            raise
        pod = decode_as(Pod, body)
        if pod.metadata.uid != bind.uid:
            raise PodNotBindable("the pod is gone, and another one has its name")
        if pod.spec.node_name not in ("", bind.node):
            raise PodNotBindable(f"the pod is bound to {pod.spec.node_name} already")
        return pod.spec.node_name == bind.node

    async def evict(self, order: WriteOrder, evict: Evict) -> None:
        beneficiary = f" for {evict.beneficiary}" if evict.beneficiary else ""
        text = names.POD_EVICTED.format(reason=f"{evict.action or evict.reason}{beneficiary}")
        if not order.marked:
            mark = decision_requests.eviction_mark(evict, text, self._scheduler, self._wall())
            await self._client.send(mark)
            order.marked = True
        await self._client.send(decision_requests.deletion(evict))

    async def set_condition(self, _: WriteOrder, condition: PodCondition) -> None:
        """Why a pod waits; its transition time is set only by the first write."""
        since = None if condition.uid in self._written else self._wall()
        await self._client.send(decision_requests.pod_condition(condition, since))
        self._written.put(condition.uid, True)
