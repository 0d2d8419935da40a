"""Attribute an error to the plugin that was called; if plugins call each other, to the innermost."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from stromboli.api.errors import error_text

Method = Callable[..., Any]


class PluginExit(Exception):
    """An exception of a plugin that would stop the process or thread, such as `SystemExit`: a failure like others."""


def raise_attributed(error: BaseException, plugin: str, point: str) -> NoReturn:
    """Raise an error again, with the plugin and the extension point that were called noted on it.

    What would stop the process becomes a `PluginExit`, except an interrupt, which may come from the user.
    """
    if isinstance(error, Exception | KeyboardInterrupt):
        _note(error, plugin, point)
        raise error
    failure = PluginExit(error_text(error))
    _note(failure, plugin, point)
    raise failure from error


def _note(error: BaseException, plugin: str, point: str) -> None:
    if not hasattr(error, "__asked__"):
        error.__asked__ = (plugin, point)  # type: ignore[attr-defined]


def take_attribution(error: BaseException) -> tuple[str, str]:
    """Remove the plugin and the point that are noted on an error, as a plugin may raise the same object again."""
    plugin, point = vars(error).pop("__asked__", ("", ""))
    return plugin, point


class SuppressedErrors:
    """Suppresses errors of these types with what is noted on them: they are reported when they are raised again."""

    __slots__ = ("_types",)

    def __init__(self, types: tuple[type[BaseException], ...]):
        self._types = types

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, self._types):
            return False
        take_attribution(error)
        return True


def raise_attributed_to(method: Method, error: BaseException) -> NoReturn:
    """Raise an error again, with this method of a plugin noted on it."""
    raise_attributed(error, plugin_of(method), method.__name__)


def plugin_of(method: Method) -> str:
    """The name of the plugin that a method belongs to."""
    return getattr(getattr(method, "__self__", None), "name", "")
