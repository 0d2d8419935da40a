"""All controllers that there are."""

from __future__ import annotations

from typing import Any

from stromboli.controllers.controller import Controller

CONTROLLERS: tuple[type[Controller[Any]], ...] = ()
"""In the order in which they are started."""
