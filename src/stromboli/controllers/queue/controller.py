"""Keeps the states of queues right and carries out the commands that users give them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from stromboli.api import names
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.volcano_job import Command
from stromboli.controllers import selection
from stromboli.controllers.context import Desk
from stromboli.controllers.controller import Controller, Hindrance
from stromboli.controllers.queue.queue_states import SHUT, Step, follow, state_of
from stromboli.controllers.watched_kinds import PLACES
from stromboli.kube.request import ApiError, NoResponse

UNSEEN = 1.0
"""Seconds until we look again for a queue that exists and that no watch has told of yet."""
KNOWN = frozenset({names.OPEN_QUEUE, names.CLOSE_QUEUE, names.SYNC_QUEUE})
_EARLIEST = datetime.min.replace(tzinfo=UTC)


class QueueController(Controller[str]):
    """One key per queue, by name."""

    name = selection.QUEUE

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.workers = max(1, desk.options.worker_threads_for_queue)
        self.most_retries = desk.options.max_requeue_num
        self._children = desk.shelf(Queue).index(_parent)
        self._phases = desk.shelf(PodGroup).index(_phase)
        self._members = desk.shelf(PodGroup).index(_queue)
        self.queues = self.watch(Queue, self._queue_changed)
        self.groups = self.watch(PodGroup, self._group_changed)
        self._commands = None
        if desk.options.gate("QueueCommandSync"):
            self.commands = self.watch(Command, self._command_changed)
            self._commands = self.commands.index(_target)

    # -- what concerns which queue

    def _queue_changed(self, before: Queue | None, now: Queue | None) -> Iterable[str]:
        """What it uses changes all the time and concerns nobody here."""
        if before is not None and now is not None and _matters(before) == _matters(now):
            return []
        name = (now or before).name  # type: ignore[union-attr]
        if before is not None and now is not None and state_of(before) == state_of(now):
            return [name]
        return [name, *(child.name for child in self._children[name])]

    def _group_changed(self, before: PodGroup | None, now: PodGroup | None) -> Iterable[str]:
        marks = [_phase(one) for one in (before, now) if one is not None]
        if len(marks) == 2 and marks[0] == marks[1]:
            return []
        return {queue for ((queue, _),) in marks}

    def _command_changed(self, before: Command | None, now: Command | None) -> Iterable[str]:
        return _target(now) if now is not None else ()

    # -- putting right

    async def sync(self, key: str) -> float | None:
        queue = self.queues.get(key)
        if queue is None:
            return await self._missing(key)
        self._count(key)
        for command in self._orders(key):
            queue = await self._obey(queue, command)
        queue = await self._carry_out(queue, names.SYNC_QUEUE)
        queue = await self._adopt(queue)
        if self._parent_missing(queue):
            raise Hindrance(names.QUEUE_PARENT_NOT_FOUND.format(queue=key, parent=queue.spec.parent))
        return None

    async def _missing(self, key: str) -> float | None:
        """A queue that is gone, or that we have not heard of yet."""
        self.desk.metrics.forget_queue(key)
        orders = self._orders(key)
        if orders and await self.desk.pen.read(Queue, key) is not None:
            return UNSEEN
        for command in orders:
            await self._done_with(command)
        return None

    def _orders(self, key: str) -> list[Command]:
        """The commands for a queue, oldest first."""
        found = self._commands[key] if self._commands is not None else []
        return sorted(found, key=lambda one: (one.metadata.creation_timestamp or _EARLIEST, one.key))

    async def _obey(self, queue: Queue, command: Command) -> Queue:
        """Carry a command out, then delete it: if we end in between it is carried out again, to the same effect.

        One that cannot be carried out stays while we try, so that a parent that opens just then lets it through.
        """
        uid = command.target.uid if command.target is not None else ""
        if uid in ("", queue.metadata.uid):
            if command.action not in KNOWN:
                valid = f"{names.OPEN_QUEUE}, {names.CLOSE_QUEUE}"
                said = names.COMMAND_UNKNOWN.format(
                    name=command.name, action=command.action[:100], valid=valid
                )
                self.desk.voice.warning(queue, names.UNKNOWN_COMMAND, said)
            try:
                queue = await self._carry_out(queue, command.action)
            except Hindrance as error:
                if self.most_retries < 0 or self.queue.failures(queue.name) < self.most_retries:
                    raise
                self.desk.voice.warning(queue, command.action, str(error))
        await self._done_with(command)
        return queue

    async def _done_with(self, command: Command) -> None:
        await self.desk.pen.delete(command)
        self.commands.drop(command)

    async def _adopt(self, queue: Queue) -> Queue:
        """A queue without a parent hangs below the root. One that is closing may not be changed before it is closed."""
        if queue.name == names.ROOT_QUEUE or queue.spec.parent or queue.status.state == names.QUEUE_CLOSING:
            return queue
        return await self._patched(queue, {"spec": {"parent": names.ROOT_QUEUE}})

    async def _carry_out(self, queue: Queue, action: str) -> Queue:
        step = follow(queue, self._parent_of(queue), self._members.count(queue.name) > 0, action)
        if step.refusal:
            raise Hindrance(step.refusal)
        if step.mark is not None and step.state in SHUT:
            queue = await self._marked(queue, step.mark)  # first, so that it is never shut without saying why
        if step.state != queue.status.state:
            queue = await self._moved(queue, step)
        if step.mark is not None and step.state not in SHUT:
            queue = await self._marked(queue, step.mark)
        return queue

    async def _moved(self, queue: Queue, step: Step) -> Queue:
        """Write the state, and say so if the queue was shut."""
        shuts = step.state in SHUT and state_of(queue) not in SHUT
        try:
            moved = await self._patched(queue, {"status": {"state": step.state}}, "status")
        except (ApiError, NoResponse) as error:
            if shuts:
                self.desk.voice.warning(
                    queue, names.CLOSE_QUEUE, names.QUEUE_CLOSE_FAILED.format(error=error)
                )
            elif step.state == names.QUEUE_OPEN:
                self.desk.voice.warning(queue, names.OPEN_QUEUE, names.QUEUE_OPEN_FAILED.format(error=error))
            raise
        if shuts:
            self.desk.voice.normal(queue, names.CLOSE_QUEUE, names.QUEUE_CLOSED_EVENT)
        return moved

    async def _marked(self, queue: Queue, mark: str) -> Queue:
        return await self._patched(queue, {"metadata": {"annotations": {names.CLOSED_BY_PARENT: mark}}})

    async def _patched(self, queue: Queue, patch: dict[str, Any], part: str = "") -> Queue:
        """Others write other parts of a queue, so its version does not matter."""
        now = await self.desk.pen.patch(queue, patch, part, exact=False)
        self.queues.learn(now)
        return now or queue

    # -- what is known

    def _parent_of(self, queue: Queue) -> Queue | None:
        return self.queues.get(queue.spec.parent or names.ROOT_QUEUE)

    def _parent_missing(self, queue: Queue) -> bool:
        """The root is there even where nobody made it."""
        return queue.spec.parent not in ("", names.ROOT_QUEUE) and self._parent_of(queue) is None

    def _count(self, key: str) -> None:
        for phase, gauge in self.desk.metrics.groups.items():
            gauge.labels(key).set(self._phases.count((key, phase)))

    def gave_up(self, key: str, error: Exception) -> None:
        queue = self.queues.get(key)
        if queue is not None:
            said = names.QUEUE_FAILED.format(action=names.SYNC_QUEUE, error=error)
            self.desk.voice.warning(queue, names.SYNC_QUEUE, said)


def _matters(queue: Queue) -> tuple[object, ...]:
    mark = queue.metadata.annotations.get(names.CLOSED_BY_PARENT)
    return queue.metadata.uid, queue.spec.parent, queue.status.state, mark


def _parent(queue: Queue) -> tuple[str, ...]:
    return (queue.spec.parent or names.ROOT_QUEUE,) if queue.name != names.ROOT_QUEUE else ()


def _queue(group: PodGroup) -> tuple[str, ...]:
    return (group.spec.queue or names.DEFAULT_QUEUE,)


def _phase(group: PodGroup) -> tuple[tuple[str, str], ...]:
    return ((group.spec.queue or names.DEFAULT_QUEUE, group.status.phase),)


def _target(command: Command) -> tuple[str, ...]:
    """The queue that a command is for."""
    target = command.target
    if target is None or (target.api_version, target.kind) != (PLACES[Queue].api_version, "Queue"):
        return ()
    return (target.name,)
