"""What an API server sends, in our own structs: pages of a list, and the lines of a watch.

Both are decoded in one go as long as every object is sound. If one is not, they are taken apart, so that the bad one
is named and the others come through.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.object_checks import check_object
from stromboli.api.types.kinds import describe
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.kube.api_client import Status

LONGEST = 32 * 1024 * 1024
"""Bytes of one line, at most; no object may be that large."""
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Marks(msgspec.Struct, rename="camel", gc=False):
    """Of an object that is not sound, what tells it from others."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Marked(msgspec.Struct, gc=False):
    metadata: Marks = msgspec.field(default_factory=Marks)


_read_marks = msgspec.json.Decoder(_Marked).decode


class Sight(NamedTuple):
    """An object as it was seen, or who it is and what is wrong with it."""

    marks: Marks | ObjectMeta
    thing: Object | None
    bad: BadObject | None = None

    @property
    def key(self) -> str:
        space, name = self.marks.namespace, self.marks.name
        return f"{space}/{name}" if space else name


def _sight(kind: type[Object], raw: msgspec.Raw) -> Sight:
    """One object, taken by itself."""
    try:
        return _checked(decode_as(kind, raw), len(memoryview(raw)))
    except BadObject as error:
        return Sight(_marks(raw), None, error)


def _checked(thing: Object, size: int) -> Sight:
    try:
        check_object(thing, size)
    except BadObject as error:
        return Sight(thing.metadata, None, error.of(describe(thing)))
    return Sight(thing.metadata, thing)


def _marks(raw: msgspec.Raw) -> Marks:
    try:
        return _read_marks(raw).metadata
    except _BROKEN:
        return Marks()


# -- a list


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(NamedTuple):
    """Some objects, how old this knowledge is, and where the list goes on."""

    sights: list[Sight]
    version: str
    next: str


class Pages:
    """Reads pages of one kind."""

    def __init__(self, kind: type[Object]) -> None:
        self._kind = kind
        fields: list[Any] = [("metadata", _ListMeta, msgspec.field(default_factory=_ListMeta))]
        sound = msgspec.defstruct("SoundPage", [*fields, ("items", list[kind] | None, None)], gc=False)  # type: ignore[valid-type]
        raw = msgspec.defstruct("RawPage", [*fields, ("items", list[msgspec.Raw] | None, None)], gc=False)
        self._read_sound = msgspec.json.Decoder(sound).decode
        self._read_raw = msgspec.json.Decoder(raw).decode

    def read(self, body: bytes) -> Page:
        """`ValueError` if this is no list at all."""
        page: Any
        try:
            page = self._read_sound(body)
            sights = [_checked(thing, len(body)) for thing in page.items or ()]
        except _BROKEN:
            try:
                page = self._read_raw(body)
            except _BROKEN as error:
                raise ValueError(f"no list of {self._kind.__name__}: {error}") from None
            sights = [_sight(self._kind, raw) for raw in page.items or ()]
        return Page(sights, page.metadata.resource_version, page.metadata.continue_)


# -- a watch


class What(Enum):
    """What a line of a watch tells."""

    PUT = "put"
    DROP = "drop"
    MARK = "mark"
    """Nothing new up to here."""
    REFUSED = "refused"


class Line(NamedTuple):
    """One line, understood."""

    what: What
    sight: Sight
    status: Status | None = None

    @property
    def version(self) -> str:
        return self.sight.marks.resource_version


class _RawLine(msgspec.Struct, gc=False):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


_read_raw_line = msgspec.json.Decoder(_RawLine).decode
_read_status = msgspec.json.Decoder(Status).decode
_PLAIN = {"ADDED": What.PUT, "MODIFIED": What.PUT, "DELETED": What.DROP}


class Lines:
    """Reads lines about one kind."""

    def __init__(self, kind: type[Object]) -> None:
        self._kind = kind
        event = msgspec.defstruct("SoundLine", [("type", str), ("object", kind)], gc=False)
        self._read: Any = msgspec.json.Decoder(event).decode

    def read(self, line: bytes) -> Line:
        """`ValueError` if this is no line of a watch: then nothing that follows can be trusted either."""
        try:
            event = self._read(line)
            what = _PLAIN.get(event.type)
            if what is not None:
                return Line(what, _checked(event.object, len(line)))
        except _BROKEN:
            pass
        return self._taken_apart(line)

    def _taken_apart(self, line: bytes) -> Line:
        try:
            raw = _read_raw_line(line)
            if raw.type == "ERROR":
                return Line(What.REFUSED, Sight(Marks(), None), _read_status(raw.object))
        except _BROKEN as error:
            raise ValueError(f"no event of a watch: {error}") from None
        if raw.type == "BOOKMARK":
            return Line(What.MARK, Sight(_marks(raw.object), None))
        what = _PLAIN.get(raw.type)
        if what is None:
            raise ValueError(f"no event of a watch: type {raw.type[:40]!r}")
        return Line(what, _sight(self._kind, raw.object))


class Splitter:
    """Cuts a stream of bytes into lines, wherever its pieces end."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that this piece completes; `ValueError` if one grows too long."""
        head, found, tail = piece.rpartition(b"\n")
        if found:
            complete = b"".join((*self._rest, head)) if self._rest else head
            self._rest, self._size = [], 0
            yield from (line for line in complete.split(b"\n") if line and not line.isspace())
        if tail:
            self._rest.append(tail)
            self._size += len(tail)
            if self._size > self._longest:
                raise ValueError(f"a line of more than {self._longest} bytes")
