"""Objects from files, checked and with defaults, decoded one at a time to save memory."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from stromboli.api.decoding import Raw, TypeMeta, decode, decode_as, type_meta_in, type_metas_in
from stromboli.api.errors import BadObject, InputProblem, InputProblems, Unreadable
from stromboli.api.manifests.device_versions import as_v1
from stromboli.api.manifests.manifest_sources import Source, find_files, read_sources
from stromboli.api.manifests.object_defaults import (
    Priorities,
    apiserver_defaults,
    case_defaults,
    default_storage_class,
    fill_storage_class,
    implied_queues,
)
from stromboli.api.object_checks import check_object, check_queues
from stromboli.api.object_reading import ObjectReader, usable_part
from stromboli.api.types.kinds import WORKLOADS, describe, kind_of
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PriorityClass, Queue
from stromboli.api.types.storage import PersistentVolumeClaim, StorageClass

IMPLIED = "(implied)"
_COUNTED_IN_PART = "the other fields of the pod count on its node"
_BLOCK = 16_384
"""Objects whose JSON is kept in one piece, and let go together."""

Kind = TypeVar("Kind", bound=Object)


class Item(NamedTuple):
    """An object and where it came from."""

    source: Source | str
    object: Object

    @property
    def where(self) -> str:
        """`file`, or `file#index` where the file holds several."""
        return self.source if isinstance(self.source, str) else self.source.where


class Manifests:
    """The objects of files. Iterating decodes them one by one and collects problems."""

    def __init__(self, sources: Iterable[Source], problems: InputProblems) -> None:
        self.skipped: Counter[str] = Counter()
        """The number of objects of other kinds, by kind."""
        self.workloads: list[tuple[str, str, Source]] = []
        """What controllers make pods of: group, kind and the object; not in cases, which hold the pods themselves."""
        self.only_expanded = 0
        """How many of them a scheduler does not read itself."""
        self.policies: list[str] = []
        """Files that hold a scheduler's policy and no objects."""
        self._problems = problems
        self._reader = ObjectReader()
        # Side by side and not as tuples: there may be hundreds of thousands.
        self._sources: list[Source] = []
        self._kinds: list[type[Object]] = []
        self._places = array("q")
        """The place of each among all objects, those of other kinds counted."""
        self._add_all(sources)
        self.priorities = Priorities(item for _, item in self._decode_all(PriorityClass))
        self._storage_class = default_storage_class(self._storage_classes())
        queues = self._decode_all(Queue)
        self._queues = {queue.name: where for where, queue in queues}
        self._cyclic = check_queues(queue for _, queue in queues)
        for name, error in self._cyclic.items():
            self.report(self._queues[name], error)

    @property
    def problems(self) -> list[InputProblem]:
        """The problems so far; complete after the last object."""
        return list(self._problems)

    def __len__(self) -> int:
        """How many objects there are to decode."""
        return len(self._sources)

    def __iter__(self) -> Iterator[Object]:
        return (item.object for item in self.items())

    def items(self, once: bool = False) -> Iterator[Item]:
        """The objects with defaults, in input order; then the queues that always exist.

        Whoever asks `once` alone lets go of the JSON of each as it is decoded.
        """
        seen: dict[tuple[type[Object], str], dict[str, int]] = {}
        for number, (source, kind, index) in enumerate(self._entries()):
            obj = self._decode(source, kind, index)
            if once:
                source.raw = b""
            if obj is None:
                continue
            meta = obj.metadata
            first = seen.setdefault((kind, meta.namespace), {}).setdefault(meta.name, number)
            if first != number:
                problem = f"defined twice: {self._sources[first].where} has it too"
                self.report(source.where, BadObject("metadata.name", problem, describe(obj)))
                continue
            if kind is Queue and obj.name in self._cyclic:
                continue
            yield Item(source, obj)
        for queue in implied_queues(self._queues):
            yield Item(IMPLIED, queue)

    def _entries(self) -> Iterator[tuple[Source, type[Object], int]]:
        return zip(self._sources, self._kinds, self._places, strict=True)

    def _add_all(self, sources: Iterable[Source]) -> None:
        remaining, start = iter(sources), 0
        while block := list(islice(remaining, _BLOCK)):
            raws, metas = type_metas_in([source.raw for source in block])
            for index, (source, raw, meta) in enumerate(zip(block, raws, metas, strict=True), start):
                source.raw = raw
                if meta is None:
                    self._report_without_kind(source)
                else:
                    self._add(source, index, meta)
            start += len(block)

    def _report_without_kind(self, source: Source) -> None:
        if not source.of_case and source.position is None and _is_policy(source.raw):
            self.policies.append(source.file)
            return
        try:
            type_meta_in(source.raw)
        except BadObject as error:
            self.report(source.where, error)

    def _add(self, source: Source, index: int, type_meta: TypeMeta) -> None:
        raw = as_v1(source.raw, type_meta.api_version)
        if raw is not source.raw:
            source.raw = raw
        name, kind = type_meta.kind, kind_of(type_meta.api_version, type_meta.kind)
        is_workload = not source.of_case and (type_meta.group, name) in WORKLOADS
        if is_workload:
            self.workloads.append((type_meta.group, name, copy(source)))
        if kind is not None:
            self._sources.append(source)
            self._kinds.append(kind)
            self._places.append(index)
        elif is_workload:
            self.only_expanded += 1
        else:
            self.skipped[name] += 1

    def complete(self, manifest: Mapping[str, Any], where: str, subject: str) -> Object | None:
        """An object that a controller makes for `subject`, which a problem with it names: checked, with defaults."""
        try:
            obj = decode(manifest)
            assert obj is not None
            check_object(obj)
        except BadObject as error:
            self.report(
                where, BadObject(error.field, error.problem, f"{subject}: {error.subject}".strip(": "))
            )
            return None
        self._fill(obj, len(self._sources))
        return obj

    def _fill(self, obj: Object, index: int) -> None:
        apiserver_defaults(obj, index, self.priorities)
        if isinstance(obj, PersistentVolumeClaim):
            fill_storage_class(obj, self._storage_class)

    def _storage_classes(self) -> Iterator[StorageClass]:
        """The storage classes of files that are no cases: what cases hold has been in an API server already."""
        for source, kind, index in self._entries():
            if kind is StorageClass and not source.of_case:
                with suppress(BadObject):
                    found = decode_as(StorageClass, source.raw)
                    apiserver_defaults(found, index, self.priorities)
                    yield found

    def _decode_all(self, kind: type[Kind]) -> list[tuple[str, Kind]]:
        """All objects of a kind that others depend on; a broken one is reported when its turn comes."""
        result = []
        for source, its_kind, _ in self._entries():
            if its_kind is kind:
                with suppress(BadObject):
                    result.append((source.where, decode_as(kind, source.raw)))
        return result

    def _decode(self, source: Source, kind: type[Object], index: int) -> Object | None:
        obj: Object | None
        try:
            obj = self._reader.read(kind, source.raw)
        except BadObject as error:
            obj = usable_part(kind, source.raw)  # as in the scheduler
            if isinstance(obj, Pod) and obj.spec.node_name:
                error = BadObject(error.field, f"{error.problem}; {_COUNTED_IN_PART}", error.subject)
            self.report(source.where, error)
            if obj is None:
                return None
        if source.of_case:
            case_defaults(obj, index, self.priorities)
        else:
            self._fill(obj, index)
        return obj

    def report(self, where: str, error: BadObject) -> None:
        """Note a problem with an object, or raise `BadInput`."""
        self._problems.add(InputProblem.of(where, error))


def _is_policy(raw: Raw) -> bool:
    """Whether a document without a kind is a scheduler's configuration."""
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(content, dict) and (isinstance(content.get("actions"), str) or "tiers" in content)


def open_paths(paths: Iterable[str], keep_going: bool = False) -> Manifests:
    """The objects of files, folders and standard input (`-`).

    The first problem raises BadInput, unless bad objects are to be left out.
    """
    problems = InputProblems(keep_going)
    return Manifests(sources_of(paths, problems), problems)


def sources_of(paths: Iterable[str], problems: InputProblems) -> Iterator[Source]:
    """The objects of files, folders and standard input (`-`), each as it is written."""
    for path in paths:
        try:
            files = find_files(path)
        except Unreadable as error:
            problems.add(InputProblem(path, str(error)))
            continue
        for file in files:
            try:
                yield from read_sources(file)
            except Unreadable as error:
                problems.add(InputProblem(file, str(error)))
