"""Loads users' own Python code: entry points of installed packages, and the files in a directory."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any


class ExtensionError(Exception):
    """An action or plugin that cannot be loaded; the message names the file or package, and the reason."""


def load_entry_points(group: str) -> Iterator[tuple[str, Any]]:
    """The entry points of a group as (description, value), in the order of their names."""
    for entry_point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        origin = f'entry point "{entry_point.name}" ({entry_point.value})'
        try:
            value = entry_point.load()
        except (Exception, SystemExit) as error:
            raise ExtensionError(f"{origin}: cannot be loaded: {_cause(error)}") from error
        yield origin, value


def python_files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise ExtensionError(f"{directory}: is not a directory; --plugins-dir needs one")
    return sorted(path for path in directory.glob("*.py") if path.name != "__init__.py")


def import_file(path: Path) -> ModuleType:
    """Run a Python file as a module of a private name; `ExtensionError` with file, line and cause if it fails."""
    name = f"stromboli_extension_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses and type hints look their module up there
    try:
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ExtensionError(f"{path}{_line_of(error, path)}: cannot be imported: {_cause(error)}") from error
    return module


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


def _line_of(error: BaseException, path: Path) -> str:
    """`:LINE` of the file in which the error arose; empty if it is unknown."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f":{error.lineno}" if error.lineno else ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f":{frames[-1].lineno}" if frames else ""
