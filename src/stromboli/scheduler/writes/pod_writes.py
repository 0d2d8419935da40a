"""Writes about pods: binds, evictions and conditions (spec 05 6.4, 7, 9.3)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stromboli.api import names
from stromboli.engine.decisions import Bind, Event, Evict, PodCondition
from stromboli.kube.request import ApiError
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.guarded_client import GuardedClient, WriteFailed
from stromboli.scheduler.writes.write_orders import WriteOrder


class _Meta(msgspec.Struct):
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    """The fields of a pod that say where it is bound."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class PodWrites:
    """Executes orders about pods."""

    def __init__(
        self,
        client: GuardedClient,
        record: Callable[[WriteOrder], None],
        scheduler: str,
        wall: Callable[[], float],
    ):
        """`record` writes an event."""
        self._client = client
        self._record = record
        self._scheduler = scheduler
        self._wall = wall

    async def bind(self, _: WriteOrder, bind: Bind) -> None:
        try:
            await self._client.send(decision_requests.binding(bind))
        except ApiError as error:
            if error.status == 404:
                raise WriteFailed("the pod is gone", gone=True) from None
            if error.status != 409 or not await self._is_bound(bind):
                raise
        self._client.forget(bind.uid)
        text = names.SUCCESSFULLY_ASSIGNED.format(namespace=bind.namespace, name=bind.name, node=bind.node)
        event = Event("Pod", bind.namespace, bind.name, names.NORMAL, names.EVENT_SCHEDULED, text)  # type: ignore[arg-type]
        self._record(WriteOrder(event, bind.uid))

    async def _is_bound(self, bind: Bind) -> bool:
        """Whether the pod is bound as decided, as after a lost response; `WriteFailed` if it cannot be any more."""
        try:
            body = await self._client.send(decision_requests.reading_pod(bind.namespace, bind.name))
        except ApiError as error:
            if error.status == 404:
                raise WriteFailed("the pod is gone", gone=True) from None
            raise
        pod = msgspec.json.decode(body, type=_Pod)
        if pod.metadata.uid != bind.uid:
            raise WriteFailed("the pod is gone, and another one has its name", gone=True)
        if pod.spec.node_name not in ("", bind.node):
            raise WriteFailed(f"the pod is bound to {pod.spec.node_name} already", gone=True)
        return pod.spec.node_name == bind.node

    async def evict(self, order: WriteOrder, evict: Evict) -> None:
        beneficiary = f" for {evict.beneficiary}" if evict.beneficiary else ""
        text = names.POD_EVICTED.format(reason=f"{evict.action or evict.reason}{beneficiary}")
        if not order.marked:
            mark = decision_requests.eviction_mark(evict, text, self._scheduler, self._wall())
            await self._client.send_unless_gone(mark)
            order.marked = True
        await self._client.send_unless_gone(decision_requests.deletion(evict))

    async def set_condition(self, _: WriteOrder, condition: PodCondition) -> None:
        """Why a pod waits; its transition time is set only by the first write."""
        since = None if self._client.last_written(condition.uid, False) else self._wall()
        await self._client.send_unless_gone(decision_requests.pod_condition(condition, since))
        self._client.remember(condition.uid, True)
