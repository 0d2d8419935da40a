"""The change feed: what changed in the model, in order, each change stamped with a generation.

Code that changes an input of decisions notes that once, in the topic of the input. Everything that remembers something
about the model follows the topics that it reads: it compares generations, or reads the changes after a position. A new
input needs a topic (`feed.topic()`) and nothing else; the engine repeats a cycle only if no generation has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stromboli.model.job import Job
    from stromboli.model.queue import Queue

T = TypeVar("T")

MAX_LOG = 4096
"""Changes that are remembered; a reader that is further behind looks at everything."""


class ChangeLog(Generic[T]):
    """Names, or other ids, in the order in which what they stand for changed."""

    __slots__ = ("_changes", "position")

    def __init__(self) -> None:
        self._changes: list[T] = []
        """The last ones."""
        self.position = 0
        """How many changes there were in all."""

    def note(self, change: T) -> None:
        self.position += 1
        self._changes.append(change)
        if len(self._changes) > 2 * MAX_LOG:
            del self._changes[:MAX_LOG]

    def note_everything(self) -> None:
        """All is different now: every reader looks at everything."""
        self.position += 1
        self._changes.clear()

    def since(self, position: int) -> set[T] | None:
        """What changed since a position; none if that is too long ago."""
        first = position - self.position + len(self._changes)
        return set(self._changes[first:]) if first >= 0 else None


class Topic(ChangeLog[T]):
    """The changes of one kind in a feed."""

    __slots__ = ("_feed", "generation")

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self._feed = feed
        self.generation = feed.generation
        """The generation of the last change; it differs whenever anything of this kind changed."""

    def note(self, change: T) -> None:
        """Note that something changed."""
        feed, changes = self._feed, self._changes
        self.generation = feed.generation = feed.generation + 1
        self.position += 1
        changes.append(change)
        if len(changes) > 2 * MAX_LOG:
            del changes[:MAX_LOG]

    def note_everything(self) -> None:
        self.generation = self._feed.generation = self._feed.generation + 1
        super().note_everything()


class TouchedJobs:
    """Follows which jobs change within a session, from its start or from now on."""

    __slots__ = ("_position", "_touched")

    def __init__(self, feed: Feed, from_now: bool = False) -> None:
        self._touched = feed.touched
        self._position = len(self._touched) if from_now else 0

    def take(self) -> dict[Job, None]:
        """The jobs that changed since this was last asked, each once."""
        jobs = dict.fromkeys(self._touched[self._position :])
        self._position = len(self._touched)
        return jobs


@dataclass(slots=True, eq=False)
class Dirty:
    """What changed since the last session."""

    everything: bool = True
    """Whether everything may have changed, as in the first session; the other members are then meaningless."""
    jobs: dict[Job, None] = field(default_factory=dict)
    """Jobs whose group changed, or of which a task was moved, added or removed."""
    queues: dict[Queue, None] = field(default_factory=dict)
    """Queues whose object changed, or that jobs joined or left."""
    nodes: bool = False
    """Whether nodes were added, removed or changed."""
    objects: bool = False
    """Whether any of `cluster.objects` changed."""

    def __bool__(self) -> bool:
        return self.everything or self.nodes or self.objects or bool(self.jobs) or bool(self.queues)


class Feed:
    """All topics of a model. Generations grow with every change of any of them."""

    __slots__ = ("concerns", "dirty", "generation", "layout", "nodes", "numbers", "objects", "touched")

    def __init__(self, generation: int = 0) -> None:
        self.generation = generation
        """The generation of the last change."""
        self.dirty = Dirty()
        """The changes since the last session, as plugins see them."""
        self.touched: list[Job] = []
        """Jobs in the order in which they changed, once for each change, since the last session."""
        self.layout: Topic[None] = self.topic()
        """Which node has which row."""
        self.nodes: Topic[str] = self.topic()
        """Node objects: labels, taints, sizes; the names of nodes."""
        self.numbers: Topic[int] = self.topic()
        """What nodes have and hold; rows of nodes."""
        self.objects: Topic[tuple[str, str]] = self.topic()
        """Objects that plugins look up; their kinds and keys."""
        self.concerns: Topic[None] = self.topic()
        """Which pods the ledgers concern."""

    def topic(self) -> Topic[Any]:
        """A topic for a further input."""
        return Topic(self)

    def note_job(self, job: Job) -> None:
        """A job changed: its group, its queue, its priority, or one of its tasks."""
        self.generation += 1
        self.touched.append(job)
        self.dirty.jobs[job] = None

    def note_order(self, jobs: Iterable[Job]) -> None:
        """The order of jobs may have changed, though nothing of them did."""
        self.generation += 1
        self.touched.extend(jobs)

    def note_queue(self, queue: Queue) -> None:
        """The object of a queue changed, or jobs joined or left it."""
        self.generation += 1
        self.dirty.queues[queue] = None

    def note_nodes(self) -> None:
        """Nodes came, went or changed."""
        self.generation += 1
        self.dirty.nodes = True

    def note_object(self, kind: str, key: str) -> None:
        """An object that plugins look up came, changed or went."""
        self.objects.note((kind, key))
        self.dirty.objects = True

    def note_everything(self) -> None:
        """All has to be looked at anew."""
        self.generation += 1
        self.dirty.everything = True

    def start_session(self, dirty: Dirty | None = None) -> Dirty:
        """Begin a new list of changes; returns the changes of the last one."""
        before, self.dirty = self.dirty, dirty if dirty is not None else Dirty(everything=False)
        self.touched.clear()
        return before
