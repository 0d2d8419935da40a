"""Elements of HTML and SVG as text. All content and all values are escaped, wherever they come from."""

from __future__ import annotations

import html
from collections.abc import Iterable

from stromboli.api.errors import printable


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def escaped(content: object) -> str:
    return content if isinstance(content, Markup) else html.escape(printable(str(content)))


def joined(parts: Iterable[object], separator: str = "") -> Markup:
    return Markup(separator.join(escaped(part) for part in parts))


VOID = frozenset({"img", "input", "link", "meta"})
"""Elements of HTML that have no content, and no end."""


def element(tag: str, /, *content: object, **attributes: object) -> Markup:
    """`class_` is `class`, an underscore within a name is a hyphen; attributes that are None are left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{joined(content)}</{tag}>")


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else escaped(value)


def number(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
