"""Keeps the model in step with an API server: a watch for every kind on the event loop, news applied between cycles.

`run` lives on the event loop. `news`, and the cluster itself, belong to the cycle's thread alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.reflector import Expired, Reflector, Source, UnusableObject, list_pages
from stromboli.kube.request import ApiError, NoResponse
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.scheduler.mirror.change_buffer import ChangeBuffer, ObjectChange
from stromboli.scheduler.mirror.consistency import Difference, compare
from stromboli.scheduler.mirror.native_group_reflector import NativeReflector

log = logging.getLogger(__name__)

ALL = tuple(RESOURCES)
ESSENTIAL = (Pod, Node, PodGroup, Queue)
ROUNDS = 3
ANSWER = 60.0
"""Seconds within which the cycle's thread must answer a check."""


class Question(NamedTuple):
    """A cluster built afresh, to be compared with the live one between two cycles."""

    fresh: Cluster
    answer: asyncio.Future[list[Difference]]


class CheckFailed(Exception):
    """Why it could not be checked whether the model is right."""


class Mirror:
    """The objects of an API server as a cluster."""

    def __init__(
        self,
        source: Source,
        schedulers: Iterable[str] = (names.SCHEDULER_NAME,),
        default_queue: str = names.DEFAULT_QUEUE,
        kinds: Iterable[type[Object]] = ALL,
        wanted: Callable[[Object], bool] = lambda _: True,
        tell: Callable[[UnusableObject], None] = lambda trouble: log.warning(
            "%s %s/%s: %s", *_shown(trouble)
        ),
        watched: Callable[[float], None] = lambda created: None,
        buffer: ChangeBuffer | None = None,
        follow: Callable[..., Reflector] = Reflector,
        follow_native: Callable[..., Reflector] = NativeReflector,
    ) -> None:
        """`wanted` leaves objects out; `tell` hears once of every object that cannot be used, between cycles;
        `watched` of every new pod of ours that has no node, with the time of its creation.
        """
        self._new_intake = partial(Intake, schedulers=frozenset(schedulers), default_queue=default_queue)
        self._intake = self._new_intake()
        self._source = source
        self._wanted = wanted
        self._tell = tell
        self._watched = watched
        self._told: dict[tuple[str, str, str], UnusableObject] = {}
        """What was last told about a bad object, by its kind, namespace and name."""
        self._questions: SimpleQueue[Question] = SimpleQueue()
        self.buffer = buffer if buffer is not None else ChangeBuffer()
        self.reflectors = tuple(
            (follow_native if kind is NativePodGroup else follow)(
                source, RESOURCES[kind], kind, self.buffer, wanted=wanted
            )
            for kind in kinds
        )
        self._running: asyncio.Task[None] | None = None
        self.applied = 0
        """How many news were applied so far."""

    @property
    def cluster(self) -> Cluster:
        return self._intake.cluster

    # -- on the event loop

    async def __aenter__(self) -> Mirror:
        """Follow all kinds until the block ends."""
        self._running = asyncio.create_task(self.run(), name="mirror")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running

    async def run(self) -> None:
        """Follow all kinds, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(reflector.run(), name=f"watch {reflector.resource.plural}")

    async def synced(self) -> None:
        """Wait until all that there is was told; it is in the model after the next `news`."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    @property
    def lag(self) -> float:
        """Seconds that the oldest news have been waiting for a cycle."""
        return self.buffer.age

    @property
    def unsynced(self) -> list[str]:
        """The kinds that are still waited for, each with what keeps it."""
        waiting = [one for one in self.reflectors if not one.synced.is_set()]
        return [f"{one.resource}: {one.problem or 'being listed'}" for one in waiting]

    @property
    def blind(self) -> list[str]:
        """The kinds still waited for without which no decision would be sound."""
        waiting = [one for one in self.reflectors if not one.synced.is_set()]
        return [one.resource.plural for one in waiting if one.kind in ESSENTIAL]

    @property
    def absent(self) -> list[Resource]:
        """The kinds that the server does not have."""
        return [one.resource for one in self.reflectors if one.installed is False]

    @property
    def troubles(self) -> list[str]:
        """The kinds of which nothing is heard at the moment, each with the reason."""
        return [f"{one.resource}: {one.problem}" for one in self.reflectors if one.problem]

    async def check(self, rounds: int = ROUNDS, pause: float = 1.0) -> list[Difference]:
        """What the model has wrong: only what stays wrong in the same way while one looks several times."""
        remaining: list[Difference] | None = None
        for turn in range(rounds):
            if turn:
                await asyncio.sleep(pause)
            found = await self._compared()
            before = {one[:3] for one in remaining} if remaining is not None else None
            remaining = [one for one in found if before is None or one[:3] in before]
            if not remaining:
                break
        return remaining or []

    async def _compared(self) -> list[Difference]:
        fresh = await self._listed()
        question = Question(fresh, asyncio.get_running_loop().create_future())
        self._questions.put(question)
        try:
            async with asyncio.timeout(ANSWER):
                return await question.answer
        except TimeoutError:
            raise CheckFailed(f"no cycle began within {ANSWER:g} seconds") from None

    async def _listed(self) -> Cluster:
        """A cluster from a fresh list of everything."""
        intake = self._new_intake()
        for reflector in self.reflectors:
            try:
                async for page in list_pages(self._source, reflector.resource, reflector.kind):
                    for decoded in page.objects:
                        if decoded.object is not None and self._wanted(decoded.object):
                            _put(intake, decoded.object)
                    await asyncio.sleep(0)
            except (Expired, ApiError, NoResponse) as error:
                if not (isinstance(error, ApiError) and error.status == 404):
                    raise CheckFailed(f"{reflector.resource}: {error}") from None
        intake.cluster.settle()
        return intake.cluster

    # -- in the cycle's thread

    def sync(self) -> None:
        """Bring the model up to date with all that was heard."""
        news, troubles = self.buffer.take()
        for trouble in troubles:
            self._report(trouble)
        for one in news:
            self._apply(one)
        self.applied += len(news)
        self._answer()

    def tell_again(self) -> None:
        """Report every object that cannot be used once more: whoever was told may have been somebody else."""
        for trouble in self._told.values():
            self._tell(trouble)

    def _apply(self, news: ObjectChange) -> None:
        thing = news.object
        if news.gone:
            self._told.pop(_named(thing), None)
            self._intake.drop(thing)
            return
        new = isinstance(thing, Pod) and thing.metadata.uid not in self.cluster.tasks
        try:
            self._intake.put(thing)
        except BadObject as error:
            text = ": ".join(part for part in (error.field, error.problem) if part)
        except Exception as error:  # whatever an object does to us, the others must be scheduled
            log.exception("%s %s could not be taken in", type(thing).__name__, thing.key)
            text = f"could not be taken in: {type(error).__name__}: {error}"
        else:
            self._told.pop(_named(thing), None)
            if new and (task := self.cluster.tasks.get(thing.metadata.uid)) and task.status is Status.PENDING:
                self._watched(task.created)
            return
        self._report(UnusableObject(*_named(thing), thing.metadata.uid, text))

    def _report(self, trouble: UnusableObject) -> None:
        if self._told.get(trouble[:3]) != trouble:
            self._told[trouble[:3]] = trouble
            self._tell(trouble)

    def _answer(self) -> None:
        while True:
            try:
                question = self._questions.get_nowait()
            except Empty:
                return
            self.cluster.settle()
            found = [one for one in compare(self.cluster, question.fresh) if not self._is_told(one)]
            question.answer.get_loop().call_soon_threadsafe(_resolve, question.answer, found)

    def _is_told(self, found: Difference) -> bool:
        """Whether it is known that an object cannot be used as it is now: the model has it as it was before."""
        namespace, _, name = found.key.partition(" ")[0].rpartition("/")
        return (found.kind, namespace, name) in self._told


def _resolve(answer: asyncio.Future[list[Difference]], found: list[Difference]) -> None:
    if not answer.done():
        answer.set_result(found)


def _put(intake: Intake, thing: Object) -> None:
    with suppress(BadObject):  # the live model was told the same, and has reported it
        intake.put(thing)


def _named(thing: Object) -> tuple[str, str, str]:
    return type(thing).__name__, thing.namespace, thing.name


def _shown(trouble: UnusableObject) -> tuple[str, str, str, str]:
    return trouble.kind, trouble.namespace or "-", trouble.name, trouble.text
