"""Objects from files, checked and completed: all at once, or one at a time so that few need to live together."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from stromboli.api.decoding import decode_as, kind_in
from stromboli.api.errors import BadObject, Problem, Problems, Unreadable
from stromboli.api.manifests.manifest_sources import Source, find_files, read_sources
from stromboli.api.manifests.object_defaults import (
    Priorities,
    apiserver_defaults,
    case_defaults,
    implied_queues,
)
from stromboli.api.object_checks import check_object, check_queues
from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object
from stromboli.api.types.scheduling import PriorityClass, Queue

IMPLIED = "(implied)"

Kind = TypeVar("Kind", bound=Object)


class Item(NamedTuple):
    """An object and where it came from: `file`, or `file#index` where the file holds several."""

    where: str
    object: Object


class Loaded(NamedTuple):
    """All that was read, in input order; what is wrong; how many objects of kinds that are not read."""

    items: list[Item]
    problems: list[Problem]
    skipped: Counter[str]

    @property
    def objects(self) -> list[Object]:
        return [item.object for item in self.items]


class Manifests:
    """Objects waiting in files. Iterating decodes them one by one and gathers problems on the way."""

    def __init__(self, sources: Iterable[Source], found: Problems) -> None:
        self.skipped: Counter[str] = Counter()
        self._found = found
        self._entries: list[tuple[Source, type[Object], int]] = []
        for index, source in enumerate(sources):
            self._enter(source, index)
        self._priorities = Priorities(item for _, item in self._early(PriorityClass))
        queues = self._early(Queue)
        self._queues = {queue.name: where for where, queue in queues}
        self._circular = check_queues(queue for _, queue in queues)
        for name, error in self._circular.items():
            self._report(self._queues[name], error)

    @property
    def problems(self) -> list[Problem]:
        """What was wrong with the input so far; complete once all objects were seen."""
        return list(self._found)

    def __len__(self) -> int:
        """How many objects there are to decode."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Object]:
        return (item.object for item in self.items())

    def items(self) -> Iterator[Item]:
        """The objects with their places, complete, in input order; then the queues that always exist."""
        seen: dict[type[Object], dict[str, int]] = {}
        for number, (source, kind, index) in enumerate(self._entries):
            thing = self._complete(source, kind, index)
            if thing is None:
                continue
            first = seen.setdefault(kind, {}).setdefault(thing.key, number)
            if first != number:
                twice = f"defined twice: {self._entries[first][0].where} has it too"
                self._report(source.where, BadObject("metadata.name", twice, describe(thing)))
                continue
            if kind is Queue and thing.name in self._circular:
                continue
            yield Item(source.where, thing)
        for queue in implied_queues(self._queues):
            yield Item(IMPLIED, queue)

    def _enter(self, source: Source, index: int) -> None:
        try:
            name, kind = kind_in(source.raw)
        except BadObject as error:
            self._report(source.where, error)
            return
        if kind is None:
            self.skipped[name] += 1
        else:
            self._entries.append((source, kind, index))

    def _early(self, kind: type[Kind]) -> list[tuple[str, Kind]]:
        """The few objects that others depend on; if one is broken, that is told in its turn."""
        result = []
        for source, its_kind, _ in self._entries:
            if its_kind is kind:
                try:
                    thing = decode_as(its_kind, source.raw)
                except BadObject:
                    continue
                if isinstance(thing, kind):
                    result.append((source.where, thing))
        return result

    def _complete(self, source: Source, kind: type[Object], index: int) -> Object | None:
        try:
            thing = decode_as(kind, source.raw)
        except BadObject as error:
            self._report(source.where, error)
            return None
        try:
            check_object(thing, memoryview(source.raw).nbytes)
        except BadObject as error:
            self._report(source.where, error.of(describe(thing)))
            return None
        fill = case_defaults if source.of_case else apiserver_defaults
        fill(thing, index, self._priorities)
        return thing

    def _report(self, where: str, error: BadObject) -> None:
        self._found.add(Problem(where, error.subject, error.field, error.problem))


def open_paths(paths: Iterable[str], keep_going: bool = False) -> Manifests:
    """The objects of files, folders and standard input (`-`), to be decoded one at a time."""
    found = Problems(keep_going)
    return Manifests(_sources(paths, found), found)


def read_paths(paths: Iterable[str], keep_going: bool = False) -> Loaded:
    """All objects at once. The first problem raises BadInput, unless we are to keep going without the bad ones."""
    manifests = open_paths(paths, keep_going)
    items = list(manifests.items())
    return Loaded(items, manifests.problems, manifests.skipped)


def _sources(paths: Iterable[str], found: Problems) -> Iterator[Source]:
    for path in paths:
        try:
            files = find_files(path)
        except Unreadable as error:
            found.add(Problem(path, "", "", str(error)))
            continue
        for file in files:
            try:
                yield from read_sources(file)
            except Unreadable as error:
                found.add(Problem(file, "", "", str(error)))
