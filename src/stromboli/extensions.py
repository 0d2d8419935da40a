"""Where actions and plugins come from: the built-in ones, installed packages, and files in a folder of the user.

An own action or plugin is one Python file in the folder given by `--plugins-dir`, or an installed package with an
entry point in the group `stromboli.plugins`. Both run as code, so neither is ever named in a configuration file.
"""

import hashlib
import importlib
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

import stromboli.actions
import stromboli.plugins
from stromboli.engine.catalog import Action, Catalog
from stromboli.engine.plugin import Plugin
from stromboli.policy.arguments import declared

GROUP = "stromboli.plugins"
Extension = Action | type[Plugin]


class ExtensionError(Exception):
    """An action or plugin that cannot be taken in; says which file or package, and why."""


def load_catalog(plugins_dir: Path | None = None) -> Catalog:
    """Everything that a policy may name: built-in, installed, and from `plugins_dir`."""
    found = _Found()
    for module in _modules_under(stromboli.actions, stromboli.plugins):
        found.add(_defined_in(module), module.__name__)
    for entry_point in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        origin = f'entry point "{entry_point.name}" ({entry_point.value})'
        found.add(_loaded(entry_point, origin), origin)
    for path in _files_in(plugins_dir) if plugins_dir else []:
        found.add(_defined_in(import_file(path)), str(path), required=True)
    return Catalog(found.actions, found.plugins)


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


class _Found:
    """Actions and plugins by name, with where each came from."""

    def __init__(self) -> None:
        self.actions: dict[str, Action] = {}
        self.plugins: dict[str, type[Plugin]] = {}
        self._origins: dict[tuple[str, str], str] = {}

    def add(self, extensions: list[Extension], origin: str, required: bool = False) -> None:
        """Take in what one place defines; a name may be taken only once."""
        if required and not extensions:
            raise ExtensionError(f"{origin}: defines neither a Plugin with a name nor an @action")
        for extension in extensions:
            kind = "action" if isinstance(extension, Action) else "plugin"
            self._claim(kind, extension, origin)
            if isinstance(extension, Action):
                self.actions[extension.name] = extension
            else:
                self.plugins[extension.name] = extension

    def _claim(self, kind: str, extension: Extension, origin: str) -> None:
        taken = self._origins.setdefault((kind, extension.name), origin)
        if taken != origin or extension.name in (self.actions if kind == "action" else self.plugins):
            raise ExtensionError(
                f'{origin}: {kind} "{extension.name}" is already defined by {taken}; rename it'
            )
        try:
            declared(extension.Arguments)
        except (TypeError, NameError) as error:
            raise ExtensionError(f'{origin}: arguments of {kind} "{extension.name}": {error}') from error


def _modules_under(*packages: ModuleType) -> Iterator[ModuleType]:
    """Every module of the packages, in the order of their names."""
    for package in packages:
        for info in sorted(
            pkgutil.walk_packages(package.__path__, f"{package.__name__}."), key=lambda i: i.name
        ):
            yield importlib.import_module(info.name)


def _files_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ExtensionError(f"{folder}: is not a folder; --plugins-dir needs one")
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")


def _defined_in(module: ModuleType) -> list[Extension]:
    """The actions and plugins that a module defines itself, not those it imports."""
    values = {id(value): value for value in vars(module).values()}.values()
    return [value for value in values if _is_extension(value) and _home(value) == module.__name__]


def _is_extension(value: object) -> bool:
    if isinstance(value, type):
        return issubclass(value, Plugin) and bool(vars(value).get("name"))
    return isinstance(value, Action)


def _home(extension: Extension) -> str:
    return extension.run.__module__ if isinstance(extension, Action) else extension.__module__


def _loaded(entry_point: EntryPoint, origin: str) -> list[Extension]:
    """What an entry point names: a module of extensions, or one extension."""
    try:
        value = entry_point.load()
    except (Exception, SystemExit) as error:
        raise ExtensionError(f"{origin}: cannot be loaded: {_cause(error)}") from error
    found = _defined_in(value) if isinstance(value, ModuleType) else [value] if _is_extension(value) else []
    if not found:
        raise ExtensionError(
            f"{origin}: is neither a Plugin with a name, nor an @action, nor a module of them"
        )
    return found


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


def _line_of(error: BaseException, path: Path) -> str:
    """`:LINE` of the file in which the error arose, as far as it is known."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f":{error.lineno}" if error.lineno else ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f":{frames[-1].lineno}" if frames else ""
