"""A whole page: its head with the style and a policy that lets a browser load and run nothing, its tables, its body."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib.resources import files

from stromboli import __version__
from stromboli.simulator.reports.page.markup import Markup, element, joined


def document(title: str, header: Markup, sections: Iterable[Markup]) -> str:
    """The page as text."""
    style = files(__package__).joinpath("page.css").read_text()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<link rel="icon" href="data:,">'),
            element("title", f"{title} - Stromboli"),
            Markup(f"<style>{style}</style>"),
        ],
        "\n",
    )
    footer = element("footer", f"Made by Stromboli {__version__}. Times are virtual.")
    body = joined([header, element("main", joined(sections, "\n")), footer], "\n")
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], class_: str | None = None) -> Markup:
    """The first column has the names of rows."""
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    body = (
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:]))
        for row in rows
    )
    return element("table", element("thead", head), element("tbody", joined(body, "\n")), class_=class_)
