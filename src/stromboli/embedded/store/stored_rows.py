"""Rows of a store's file as they are read at the start, and what is said of a file that is damaged.

A row that cannot be read is never left out: whatever refers to the object, such as the pods of a namespace or the jobs
of a CustomResourceDefinition, would be deleted as garbage. The server does not start until somebody decides.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stromboli.embedded.data_files import WRITABLE, DataError
from stromboli.embedded.store.records import Key, Record

_OUT_OF_ORDER = ("readonly", "disk", "full", "unable to open", "locked")
"""Words of SQLite's messages about a file system, and not about the content of a file."""


def read_row(path: str, row: tuple[Any, ...]) -> tuple[Record, bool]:
    """A version, and whether it is the last state of a deleted object; `DataError` if it cannot be read."""
    revision, resource, namespace, name, deleted, data = row
    record = Record(Key(resource, namespace, name), revision, data)
    try:
        if not isinstance(data, bytes) or not all(isinstance(part, str) for part in record.key):
            raise ValueError("not an object as it was written")
        record.check()
    except (ValueError, RecursionError) as error:
        raise _damaged_row(path, record, error) from None
    return record, bool(deleted)


@contextmanager
def explained_row(path: str, record: Record) -> Iterator[None]:
    """Turn an error about an object that the server itself has to understand into words about its row."""
    try:
        yield
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        raise _damaged_row(path, record, f"{type(error).__name__}: {error}") from None


def _damaged_row(path: str, record: Record, problem: object) -> DataError:
    resource, namespace, name = record.key
    full_name = f"{namespace}/{name}" if namespace else name
    statement = f"DELETE FROM versions WHERE revision = {record.revision}"
    return DataError(
        f"{path}: row {record.revision} ({resource} {full_name}) is damaged: {problem}; restore the file from a copy,"
        f' or, if you can do without that object, sqlite3 {path} "{statement}"'
    )


@contextmanager
def explained_damage(path: Path | str) -> Iterator[None]:
    """Turn an error of SQLite into words about the file and a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        if any(word in str(error) for word in _OUT_OF_ORDER) and "malformed" not in str(error):
            raise DataError(f"{path}: cannot be used: {error}; {WRITABLE}") from None
        raise DataError(
            f"{path}: is damaged: {error}; restore it from a copy, or move it away with {path}-wal and {path}-shm and"
            f" begin with an empty cluster; sqlite3 {path} .recover may save what is left"
        ) from None
