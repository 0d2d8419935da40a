"""Whether what is drawn on pages of the dashboard can be told from what is around it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stromboli.cli.dashboard

CSS = (Path(stromboli.cli.dashboard.__file__).parent / "assets" / "dashboard.css").read_text()
LEAST = 3.0
"""What WCAG asks for where nothing has to be read."""


def colours(dark: bool) -> dict[str, str]:
    """The variables of a scheme."""
    light, darker = re.findall(r":root \{(.*?)\}", CSS, re.S)[:2]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light + (darker if dark else "")))


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, other: str) -> float:
    darker, lighter = sorted((luminance(colour), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def colour_of(rule: str, property_name: str) -> str:
    """The variable that a rule of the stylesheet uses."""
    match = re.search(rf"{re.escape(rule)} \{{[^}}]*\b{property_name}: [^;]*var\(--(\w+)\)", CSS)
    assert match is not None, rule
    return match[1]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("rule", "property_name", "grounds"),
    [
        ("input, select, button, textarea", "border", ("page", "card")),
        (".action", "border", ("page", "card")),
        (".axis", "stroke", ("card",)),
        (".key-hollow", "stroke", ("card",)),
        (".span-wait", "fill", ("grid", "card")),
        (".span-start", "fill", ("grid", "card")),
        (".span-run", "fill", ("grid", "card")),
        (".bar-used", "fill", ("grid",)),
    ],
)
def test_edges_and_drawings_stand_out(
    rule: str, property_name: str, grounds: tuple[str, ...], dark: bool
) -> None:
    scheme = colours(dark)
    colour = scheme[colour_of(rule, property_name)]
    assert {ground: contrast(colour, scheme[ground]) >= LEAST for ground in grounds} == dict.fromkeys(
        grounds, True
    )
