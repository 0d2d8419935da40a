"""Reads files, folders and standard input into single objects, each as raw JSON.

JSON is split into objects without decoding them or copying; YAML is converted to JSON first.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, BinaryIO, TypeVar

import msgspec

from stromboli.api.decoding import Raw, TypeMeta, explain
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents

MAX_FILE = 1024**3
STDIN = "-"
SUFFIXES = (".json", ".yaml", ".yml")

Target = TypeVar("Target")

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source(msgspec.Struct, gc=False):
    """One object: its file, its position there, its JSON, and whether the file is a case."""

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
    time: Any = None
    """When a dump was written, as text."""
    observed: dict[str, Any] | None = None


class ObjectList(msgspec.Struct, gc=False):
    """A document of kind `List`, `PodList` and so on."""

    items: list[msgspec.Raw] | None = None


_copies: dict[str, str] = {}


@contextmanager
def rereadable(paths: Iterable[str]) -> Iterator[None]:
    """Within this context, standard input (`-`) and pipes can be read more than once: from copies."""
    streams = [path for path in dict.fromkeys(paths) if path == STDIN or _is_pipe(path)]
    with tempfile.TemporaryDirectory(prefix="stromboli-") as folder:
        for number, path in enumerate(streams):
            copy = os.path.join(folder, str(number))
            with open(copy, "wb") as file:
                _copy(path, file)
            _copies[path] = copy
        try:
            yield
        finally:
            _copies.clear()


def content_path(file: str) -> str:
    """The path to read a file from: its copy if there is one."""
    return _copies.get(file, file)


def _copy(path: str, file: BinaryIO) -> None:
    if path == STDIN:
        shutil.copyfileobj(sys.stdin.buffer, file)
        return
    with open(path, "rb") as stream:
        shutil.copyfileobj(stream, file)


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False  # the error is raised when it is opened


def find_files(path: str) -> list[str]:
    """The path itself, or all manifests below a folder, sorted by name."""
    if path == STDIN or not os.path.isdir(path):
        return [path]
    manifests = []
    for folder, subfolders, files in os.walk(path):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        manifests += [os.path.join(folder, name) for name in files if name.lower().endswith(SUFFIXES)]
    if not manifests:
        raise Unreadable("no *.yaml, *.yml or *.json in this folder")
    return sorted(manifests)


def read_bytes(file: str) -> bytes:
    """The content of a file or of standard input, up to a limit."""
    try:
        path = content_path(file)
        if path == STDIN:
            return _checked_size(sys.stdin.buffer.read(MAX_FILE + 1))
        with open(path, "rb") as stream:
            if os.fstat(stream.fileno()).st_size > MAX_FILE:
                raise Unreadable(f"larger than {MAX_FILE} bytes")
            return _checked_size(stream.read(MAX_FILE + 1))
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None


def read_sources(file: str) -> Iterator[Source]:
    """The objects of a file, in order; a single object has no position. Objects before a bad part are read."""
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
        for position, following in enumerate(chain([second], objects), start=1):
            yield Source(file, position, *following)


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
    if document.lstrip()[:1] != b"{" or _decode(document, TypeMeta).kind:
        return None
    case = _decode(document, CaseFile)
    return case if case.objects is not None else None


def _unpack(document: bytes) -> tuple[list[msgspec.Raw] | None, bool]:
    """The objects inside a document, if it is a list or a case, and whether it is a case."""
    if document.lstrip()[:1] == b"[":
        return _decode(document, list[msgspec.Raw]), False
    case = read_case_file(document)
    if case is not None:
        return case.objects, True
    if document.lstrip()[:1] == b"{" and _decode(document, TypeMeta).kind.endswith("List"):
        return _decode(document, ObjectList).items, False
    return None, False


def _decode(document: bytes, target: type[Target]) -> Target:
    try:
        return msgspec.json.decode(document, type=target)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(": ".join(part for part in explain(error) if part)) from None


def _checked_size(data: bytes) -> bytes:
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
