"""Where objects come from: files, folders and standard input, each object still as raw JSON.

JSON is cut into objects without decoding them, and the pieces share the file's memory; YAML becomes JSON first.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec

from stromboli.api.decoding import Heading, Raw, explain
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_documents import documents

MAX_FILE = 1024**3
STDIN = "-"
SUFFIXES = (".json", ".yaml", ".yml")

Shape = TypeVar("Shape")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source(NamedTuple):
    """One object on its way in: its file, its place there, its JSON, and whether the file is a case."""

    file: str
    position: int | None
    raw: Raw
    of_case: bool

    @property
    def where(self) -> str:
        return self.file if self.position is None else f"{self.file}#{self.position}"


class CaseFile(msgspec.Struct, gc=False):
    """A document without a kind but with `objects`: a case."""

    objects: list[msgspec.Raw] | None = None
    name: str = ""
    config: str | None = None
    observed: dict[str, Any] | None = None


class ObjectList(msgspec.Struct, gc=False):
    """A document of kind `List`, `PodList` and so on."""

    items: list[msgspec.Raw] | None = None


_kept: dict[str, str] = {}


@contextmanager
def kept(paths: Iterable[str]) -> Iterator[None]:
    """As long as this lasts, those that can be read only once, `-` and pipes, may be read again: from copies."""
    once = [path for path in dict.fromkeys(paths) if path == STDIN or _is_pipe(path)]
    with tempfile.TemporaryDirectory(prefix="stromboli-") as folder:
        for number, path in enumerate(once):
            copy = os.path.join(folder, str(number))
            with open(copy, "wb") as file:
                _pour(path, file)
            _kept[path] = copy
        try:
            yield
        finally:
            _kept.clear()


def place_of(file: str) -> str:
    """Where the content of a file is."""
    return _kept.get(file, file)


def _pour(path: str, file: BinaryIO) -> None:
    if path == STDIN:
        shutil.copyfileobj(sys.stdin.buffer, file)
        return
    with open(path, "rb") as stream:
        shutil.copyfileobj(stream, file)


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False  # told when it is opened


def find_files(path: str) -> list[str]:
    """The manifests that a path stands for: itself, or all below a folder, in order of name."""
    if path == STDIN or not os.path.isdir(path):
        return [path]
    found = []
    for folder, subfolders, files in os.walk(path):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        found += [os.path.join(folder, name) for name in files if name.lower().endswith(SUFFIXES)]
    if not found:
        raise Unreadable("no *.yaml, *.yml or *.json in this folder")
    return sorted(found)


def read_bytes(file: str) -> bytes:
    """The content of a file or of standard input, unless there is far too much of it."""
    try:
        place = place_of(file)
        if place == STDIN:
            return _bounded(sys.stdin.buffer.read(MAX_FILE + 1))
        with open(place, "rb") as stream:
            if os.fstat(stream.fileno()).st_size > MAX_FILE:
                raise Unreadable(f"larger than {MAX_FILE} bytes")
            return _bounded(stream.read(MAX_FILE + 1))
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None


def read_sources(file: str) -> Iterator[Source]:
    """The objects of a file, in order; a lone object has no position. What comes before a bad part is kept."""
    objects = _objects(file)
    first = next(objects, None)
    if first is None:
        raise Unreadable("holds no object")
    second, broken = None, None
    try:
        second = next(objects, None)
    except Unreadable as error:
        broken = error
    yield Source(file, 0 if second or broken else None, *first)
    if broken is not None:
        raise broken
    if second is not None:
        for position, found in enumerate(chain([second], objects), start=1):
            yield Source(file, position, *found)


def _objects(file: str) -> Iterator[tuple[Raw, bool]]:
    for document in read_documents(file):
        inner, of_case = _unpack(document)
        for raw in (document,) if inner is None else inner:
            yield raw, of_case


def read_documents(file: str) -> Iterator[bytes]:
    """The documents of a file as JSON: one of a JSON file, any number of a YAML file."""
    data = read_bytes(file).removeprefix(_BYTE_ORDER_MARK)
    start = data[:64].lstrip()[:1]
    if file.lower().endswith(".json") or start in (b"{", b"["):
        problem = _json_problem(data)
        if problem is None:
            yield data
            return
        if file.lower().endswith(".json"):
            raise Unreadable(problem)
    yield from _from_yaml(data)


def read_case_file(document: bytes) -> CaseFile | None:
    """The case that a document is, or None."""
    if document.lstrip()[:1] != b"{" or _cut(document, Heading).kind:
        return None
    case = _cut(document, CaseFile)
    return case if case.objects is not None else None


def _unpack(document: bytes) -> tuple[list[msgspec.Raw] | None, bool]:
    """The objects inside a document, if it is a list or a case, and whether it is a case."""
    if document.lstrip()[:1] == b"[":
        return _cut(document, list[msgspec.Raw]), False
    case = read_case_file(document)
    if case is not None:
        return case.objects, True
    if document.lstrip()[:1] == b"{" and _cut(document, Heading).kind.endswith("List"):
        return _cut(document, ObjectList).items, False
    return None, False


def _cut(document: bytes, shape: type[Shape]) -> Shape:
    try:
        return msgspec.json.decode(document, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(": ".join(part for part in explain(error) if part)) from None


def _bounded(data: bytes) -> bytes:
    if len(data) > MAX_FILE:
        raise Unreadable(f"larger than {MAX_FILE} bytes")
    return data


def _json_problem(data: bytes) -> str | None:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return f"not JSON: {error}"
    except RecursionError:
        return "nested too deeply"
    return None


def _from_yaml(data: bytes) -> Iterator[bytes]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 text: byte {data[error.start]:#04x} at {error.start}") from None
    for document in documents(text):
        try:
            yield msgspec.json.encode(document)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Unreadable(f"holds a value that JSON cannot: {error}") from None
