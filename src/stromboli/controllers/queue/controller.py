"""The queue controller: writes the states of queues and executes the commands that users give them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from stromboli.api import names
from stromboli.api.name_cycles import cycle_above, format_cycle
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.volcano_job import Command
from stromboli.controllers import selection
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.controller_metrics import GROUP_PHASES
from stromboli.controllers.queue.queue_states import CLOSED_STATES, next_state, state_of
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.watched_resources import WATCHED_RESOURCES
from stromboli.kube.request import ApiError, NoResponse

UNSEEN_RETRY = 1.0
"""Seconds until a queue is requeued that exists but is not in the store yet."""
CYCLE_RETRY = 30.0
"""Seconds until a queue is looked at again whose parents form a cycle."""
KNOWN_ACTIONS = frozenset({names.OPEN_QUEUE, names.CLOSE_QUEUE, names.SYNC_QUEUE})
_EARLIEST = datetime.min.replace(tzinfo=UTC)


class QueueController(Controller[str]):
    """One key per queue, by name."""

    name = selection.QUEUE

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.workers = max(1, context.options.worker_threads_for_queue)
        self.max_retries = context.options.max_requeue_num
        self._children = context.store(Queue).index(_parent)
        self._phases = context.store(PodGroup).index(_phase)
        self._members = context.store(PodGroup).index(_queue)
        self.queues = self.watch(Queue, self._queue_changed)
        self.groups = self.watch(PodGroup, self._group_changed)
        self._warned: dict[str, str] = {}
        """The last warning of each queue whose parents form a cycle, by name."""
        self._commands = None
        if context.options.gate("QueueCommandSync"):
            self.commands = self.watch(Command, self._command_changed)
            self._commands = self.commands.index(_target)

    # -- which queues a change enqueues

    def _queue_changed(self, before: Queue | None, now: Queue | None) -> Iterable[str]:
        """Not when only its allocation changes, as that is often."""
        if before is not None and now is not None and _relevant(before) == _relevant(now):
            return []
        name = (now or before).name  # type: ignore[union-attr]
        if before is not None and now is not None and state_of(before) == state_of(now):
            return [name]
        return [name, *(child.name for child in self._children[name])]

    def _group_changed(self, before: PodGroup | None, now: PodGroup | None) -> Iterable[str]:
        phases = [_phase(group) for group in (before, now) if group is not None]
        if len(phases) == 2 and phases[0] == phases[1]:
            return []
        return {queue for ((queue, _),) in phases}

    def _command_changed(self, before: Command | None, now: Command | None) -> Iterable[str]:
        return _target(now) if now is not None else ()

    # -- one queue

    async def sync(self, key: str) -> float | None:
        queue = self.queues.get(key)
        if queue is None:
            return await self._missing(key)
        self._count_groups(key)
        for command in self._commands_for(key):
            queue = await self._execute(queue, command)
        queue = await self._transition(queue, names.SYNC_QUEUE)
        queue = await self._set_default_parent(queue)
        if self._parent_missing(queue):
            raise SyncError(names.QUEUE_PARENT_NOT_FOUND.format(queue=key, parent=queue.spec.parent))
        return self._record_cycle(queue)

    def _record_cycle(self, queue: Queue) -> float | None:
        """Record once why the parents of a queue do not lead to the root; seconds until the queue is synced again."""
        cycle = cycle_above(queue.name, self._parent_name)
        if not cycle:
            self._warned.pop(queue.name, None)
            return None
        problem = names.QUEUE_PARENT_LOOP.format(queue=cycle[0], loop=format_cycle(cycle))
        text = f"{problem}; {names.BREAK_LOOP}"
        if queue.name not in cycle:
            text = names.QUEUE_CUT_OFF.format(queue=queue.name, why=text)
        if self._warned.get(queue.name) != text:
            self._warned[queue.name] = text
            self.context.recorder.warning(queue, names.QUEUE_ERROR, text)
        return CYCLE_RETRY

    async def _missing(self, key: str) -> float | None:
        """A queue that is deleted, or not in the store yet."""
        self._warned.pop(key, None)
        self.context.metrics.forget_queue(key)
        commands = self._commands_for(key)
        if commands and await self.context.writer.read(Queue, key) is not None:
            return UNSEEN_RETRY
        for command in commands:
            await self._delete_command(command)
        return None

    def _commands_for(self, key: str) -> list[Command]:
        """The commands for a queue, oldest first, and those that do not count at the end."""
        return sorted(self._commands[key], key=_turn) if self._commands is not None else []

    async def _execute(self, queue: Queue, command: Command) -> Queue:
        """Execute a command, then delete it: after a crash in between it is executed again, to the same effect.

        A refused command is kept while there are retries left, as its parent may be opening just then.
        """
        uid = command.target.uid if command.target is not None else ""
        if _is_elsewhere(command):
            self._refuse(queue, command)
        elif uid in ("", queue.metadata.uid):
            self._tell_futile(queue, command.name, command.action)
            try:
                queue = await self._transition(queue, command.action)
            except SyncError as error:
                if self.max_retries < 0 or self.queue.num_requeues(queue.name) < self.max_retries:
                    raise
                self.context.recorder.warning(queue, command.action, str(error))
        await self._delete_command(command)
        return queue

    def _tell_futile(self, queue: Queue, name: str, action: str) -> None:
        """Tell of a command that changes nothing, whatever the state of the queue."""
        if action not in KNOWN_ACTIONS:
            valid = f"{names.OPEN_QUEUE}, {names.CLOSE_QUEUE}"
            text = names.COMMAND_UNKNOWN.format(name=name, action=action[:100], valid=valid)
            self.context.recorder.warning(queue, names.UNKNOWN_COMMAND, text)
        elif action == names.CLOSE_QUEUE and queue.name == names.ROOT_QUEUE:
            self.context.recorder.warning(queue, names.CLOSE_QUEUE, names.QUEUE_ROOT_STAYS_OPEN)

    def _refuse(self, queue: Queue, command: Command) -> None:
        """Tell whoever may create commands in a namespace that they are no rights on queues, which all share."""
        text = names.COMMAND_ELSEWHERE.format(
            name=command.name,
            queue=queue.name,
            namespace=command.namespace,
            right=names.QUEUE_COMMANDS_NAMESPACE,
        )
        self.context.recorder.warning(command, names.COMMAND_REFUSED, text)

    async def _delete_command(self, command: Command) -> None:
        await self.context.writer.delete(command)
        self.commands.drop(command)

    async def _set_default_parent(self, queue: Queue) -> Queue:
        """Put a queue without a parent below the root; not one that is closing, which admission would refuse."""
        if queue.name == names.ROOT_QUEUE or queue.spec.parent or queue.status.state == names.QUEUE_CLOSING:
            return queue
        return await self._patch(queue, {"spec": {"parent": names.ROOT_QUEUE}})

    async def _transition(self, queue: Queue, action: str) -> Queue:
        change = next_state(queue, self._parent_of(queue), self._members.count(queue.name) > 0, action)
        if change.refusal:
            raise SyncError(change.refusal)
        closes, annotation = change.state in CLOSED_STATES, change.closed_by_parent
        if annotation is not None and closes:  # first, so that a closed queue always says why
            queue = await self._annotate(queue, annotation)
        if change.state != queue.status.state:
            queue = await self._set_state(queue, change.state)
        if annotation is not None and not closes:
            queue = await self._annotate(queue, annotation)
        return queue

    async def _set_state(self, queue: Queue, state: str) -> Queue:
        """Write the state, and record an event if the queue is closed by that."""
        recorder = self.context.recorder
        closes = state in CLOSED_STATES and state_of(queue) not in CLOSED_STATES
        try:
            written = await self._patch(queue, {"status": {"state": state}}, "status")
        except (ApiError, NoResponse) as error:
            if closes:
                recorder.warning(queue, names.CLOSE_QUEUE, names.QUEUE_CLOSE_FAILED.format(error=error))
            elif state == names.QUEUE_OPEN:
                recorder.warning(queue, names.OPEN_QUEUE, names.QUEUE_OPEN_FAILED.format(error=error))
            raise
        if closes:
            recorder.normal(queue, names.CLOSE_QUEUE, names.QUEUE_CLOSED_EVENT)
        return written

    async def _annotate(self, queue: Queue, closed_by_parent: str) -> Queue:
        return await self._patch(
            queue, {"metadata": {"annotations": {names.CLOSED_BY_PARENT: closed_by_parent}}}
        )

    async def _patch(self, queue: Queue, patch: dict[str, Any], subresource: str = "") -> Queue:
        """Others write other fields of a queue, so its resource version is no precondition."""
        now = await self.context.writer.patch(queue, patch, subresource, exact=False)
        self.queues.mutated(now)
        return now or queue

    # -- what the stores have

    def _parent_of(self, queue: Queue) -> Queue | None:
        """The parent whose state a queue follows; none in a cycle, where queues would follow each other for ever."""
        if queue.name in cycle_above(queue.name, self._parent_name):
            return None
        return self.queues.get(queue.spec.parent or names.ROOT_QUEUE)

    def _parent_name(self, name: str) -> str | None:
        """Of a queue that exists; the root has no parent, whatever its object says."""
        queue = self.queues.get(name) if name != names.ROOT_QUEUE else None
        return None if queue is None else queue.spec.parent or names.ROOT_QUEUE

    def _parent_missing(self, queue: Queue) -> bool:
        """The root counts as existing even where it was never created."""
        parent = self._parent_name(queue.name)
        return parent not in (None, names.ROOT_QUEUE) and self.queues.get(parent) is None

    def _count_groups(self, key: str) -> None:
        counts = {phase: self._phases.count((key, phase)) for phase in GROUP_PHASES}
        self.context.metrics.count_groups(key, counts)

    def gave_up(self, key: str, error: Exception) -> None:
        queue = self.queues.get(key)
        if queue is not None:
            text = names.QUEUE_FAILED.format(action=names.SYNC_QUEUE, error=error)
            self.context.recorder.warning(queue, names.SYNC_QUEUE, text)


def _relevant(queue: Queue) -> tuple[object, ...]:
    closed_by_parent = queue.metadata.annotations.get(names.CLOSED_BY_PARENT)
    return queue.metadata.uid, queue.spec.parent, queue.status.state, closed_by_parent


def _parent(queue: Queue) -> tuple[str, ...]:
    return (queue.spec.parent or names.ROOT_QUEUE,) if queue.name != names.ROOT_QUEUE else ()


def _queue(group: PodGroup) -> tuple[str, ...]:
    return (group.spec.queue or names.DEFAULT_QUEUE,)


def _phase(group: PodGroup) -> tuple[tuple[str, str], ...]:
    return ((group.spec.queue or names.DEFAULT_QUEUE, group.status.phase),)


def _target(command: Command) -> tuple[str, ...]:
    """The queue that a command is for."""
    target = command.target
    if target is None or (target.api_version, target.kind) != (WATCHED_RESOURCES[Queue].api_version, "Queue"):
        return ()
    return (target.name,)


def _is_elsewhere(command: Command) -> bool:
    """Whether a command is in a namespace where commands for queues do not count."""
    return command.namespace != names.QUEUE_COMMANDS_NAMESPACE


def _turn(command: Command) -> tuple[bool, datetime, str]:
    """Refused commands are last, so that no flood of them holds up the others."""
    return _is_elsewhere(command), command.metadata.creation_timestamp or _EARLIEST, command.key
