"""The actions, by the addresses of their pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from stromboli.cli.dashboard.pages.page_content import Render, ViewRequest


class ActionRoute(NamedTuple):
    """An action: a page that says what it does, and what its form carries out."""

    pattern: str
    render: Render
    perform: Callable[[ViewRequest, Mapping[str, str]], Awaitable[str]]
    """Carries it out with the fields of the form; the address to go to then."""
    section: str = "jobs"


ACTIONS: tuple[ActionRoute, ...] = ()
