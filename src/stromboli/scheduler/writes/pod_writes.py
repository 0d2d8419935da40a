"""What is done to pods: bound, never twice; evicted, marked first; told why they wait (spec 05 6.4, 7, 9.3)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec

from stromboli.api import names
from stromboli.engine.decisions import Bind, Event, Evict, GateRemoval, PodCondition
from stromboli.kube.request import ApiError
from stromboli.scheduler.writes import decision_requests
from stromboli.scheduler.writes.guarded_client import Gone, Over, Pen
from stromboli.scheduler.writes.write_orders import Order


class _Meta(msgspec.Struct):
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    """As much of a pod as tells where it is."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class PodWrites:
    """Orders about pods."""

    def __init__(self, pen: Pen, say: Callable[[Order], None], scheduler: str, wall: Callable[[], float]):
        """`say` hands over an event."""
        self._pen = pen
        self._say = say
        self._scheduler = scheduler
        self._wall = wall

    async def bind(self, order: Order) -> None:
        bind = order.decision
        assert isinstance(bind, Bind)
        try:
            await self._pen.send(decision_requests.binding(bind))
        except ApiError as error:
            if error.status == 404:
                raise Over("the pod is gone", gone=True) from None
            if error.status != 409 or not await self._is_bound(bind):
                raise
        self._pen.forget(bind.uid)
        text = names.SUCCESSFULLY_ASSIGNED.format(namespace=bind.namespace, name=bind.name, node=bind.node)
        event = Event("Pod", bind.namespace, bind.name, names.NORMAL, names.EVENT_SCHEDULED, text)  # type: ignore[arg-type]
        self._say(Order(event, bind.uid))

    async def _is_bound(self, bind: Bind) -> bool:
        """Whether the pod is on its node, as after a lost answer; `Over` if it never will be."""
        try:
            answer = await self._pen.send(decision_requests.reading_pod(bind.namespace, bind.name))
        except ApiError as error:
            if error.status == 404:
                raise Over("the pod is gone", gone=True) from None
            raise
        pod = msgspec.json.decode(answer, type=_Pod)
        if pod.metadata.uid != bind.uid:
            raise Over("the pod is gone, and another one has its name", gone=True)
        if pod.spec.node_name not in ("", bind.node):
            raise Over(f"the pod is bound to {pod.spec.node_name} already", gone=True)
        return pod.spec.node_name == bind.node

    async def evict(self, order: Order) -> None:
        evict = order.decision
        assert isinstance(evict, Evict)
        beneficiary = f" for {evict.beneficiary}" if evict.beneficiary else ""
        text = names.POD_EVICTED.format(reason=f"{evict.action or evict.reason}{beneficiary}")
        with suppress(Gone):
            if not order.marked:
                mark = decision_requests.eviction_mark(evict, text, self._scheduler, self._wall())
                await self._pen.send_unless_gone(mark)
                order.marked = True
            await self._pen.send_unless_gone(decision_requests.deletion(evict))

    async def tell(self, order: Order) -> None:
        """Why it waits; since when, if that was not said before."""
        said = order.decision
        assert isinstance(said, PodCondition)
        since = None if self._pen.last(said.uid, False) else self._wall()
        with suppress(Gone):
            await self._pen.send_unless_gone(decision_requests.pod_condition(said, since))
            self._pen.remember(said.uid, True)

    async def lift_gate(self, order: Order) -> None:
        said = order.decision
        assert isinstance(said, GateRemoval)
        with suppress(Gone):
            await self._pen.send_unless_gone(decision_requests.gate_removal(said))
