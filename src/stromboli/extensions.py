"""Actions and plugins: built in, from installed packages, and from files in a directory of the user.

A user's action or plugin is one Python file in the directory given by `--plugins-dir`, or an installed package with an
entry point in the group `stromboli.plugins`. Both run as code, so neither is ever named in a configuration file.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

import stromboli.actions
import stromboli.plugins
from stromboli.engine.catalog import Action, Catalog
from stromboli.engine.plugin import Plugin
from stromboli.extension_loading import ExtensionError, import_file, load_entry_points, python_files
from stromboli.policy.arguments import declared

GROUP = "stromboli.plugins"
Extension = Action | type[Plugin]


def load_catalog(plugins_dir: Path | None = None) -> Catalog:
    """Everything that a policy may name: built-in, installed, and from `plugins_dir`."""
    extensions = _Extensions()
    for module in _modules_under(stromboli.actions, stromboli.plugins):
        extensions.add(_defined_in(module), module.__name__)
    for origin, value in load_entry_points(GROUP):
        extensions.add(_extensions_of(value, origin), origin)
    for path in python_files(plugins_dir) if plugins_dir else []:
        extensions.add(_defined_in(import_file(path)), str(path), required=True)
    return Catalog(extensions.actions, extensions.plugins)


class _Extensions:
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


def _extensions_of(value: object, origin: str) -> list[Extension]:
    """What an entry point names: a module of extensions, or one extension."""
    if isinstance(value, ModuleType):
        extensions = _defined_in(value)
    else:
        extensions = [cast(Extension, value)] if _is_extension(value) else []
    if not extensions:
        raise ExtensionError(
            f"{origin}: is neither a Plugin with a name, nor an @action, nor a module of them"
        )
    return extensions
