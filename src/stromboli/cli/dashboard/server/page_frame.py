"""What is around every page: its head, the navigation, who looks at which cluster, and what is wrong with the view."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from stromboli import __version__
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.cli.dashboard.pages.page_elements import link
from stromboli.simulator.reports.page.markup import Markup, element, joined

NAVIGATION = (
    ("Overview", "/", "o"),
    ("Queues", "/queues", "q"),
    ("Jobs", "/jobs", "j"),
    ("Nodes", "/nodes", "n"),
    ("Topology", "/topology", "t"),
    ("Policy", "/policy", "p"),
    ("Decisions", "/decisions", "d"),
)
"""Title, address, and the key that leads there after `g`."""
SCRIPTS = ("dashboard.js", "heat_map.js")


_AGE = re.compile(r"(<time [^>]*>)[^<]*")


def lasting(markup: Markup) -> str:
    """A region without what the browser keeps up to date by itself: how long ago things were."""
    return _AGE.sub(r"\1", markup)


def digest(regions: Mapping[str, str]) -> str:
    """Of what a page shows, as `lasting` has its regions, so that a browser need not be sent it twice."""
    text = "\0".join(f"{name}\0{text}" for name, text in regions.items())
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def framed(page: PageContent, section: str, where: str, who: str, now: float, live: bool = True) -> str:
    """The whole document."""
    regions = [region(name, markup) for name, markup in page.regions.items()]
    main = element(
        "main",
        element("h1", page.title, id="title"),
        joined(regions, "\n"),
        id="main",
        tabindex="-1",
        data_digest=digest({name: lasting(markup) for name, markup in page.regions.items()})
        if live
        else None,
        data_now=f"{now:.0f}",
    )
    body = joined(
        [
            element("a", "Skip to the content", href="#main", class_="skip"),
            _header(section, where, who),
            element("p", id="connection", class_="warn", role="status", hidden=""),
            *(
                [
                    element(
                        "noscript", element("p", f"As of {_moment(now)}; reload it for news.", class_="note")
                    )
                ]
                if live
                else []
            ),
            main,
            _footer(),
        ],
        "\n",
    )
    head = _head(page.title)
    return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'


def region(name: str, markup: Markup) -> Markup:
    """A part of a page that is updated on its own."""
    return element("div", markup, id=f"region-{name}", class_="region")


def _head(title: str) -> Markup:
    return joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            Markup('<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">'),
            Markup('<link rel="stylesheet" href="/assets/dashboard.css">'),
            *(Markup(f'<script type="module" src="/assets/{name}"></script>') for name in SCRIPTS),
            element("title", f"{title} - Stromboli"),
        ],
        "\n",
    )


def _header(section: str, where: str, who: str) -> Markup:
    entries = (
        link(
            address,
            title,
            aria_current="page" if title.lower() == section else None,
            title=f"keys: g {key}",
            data_key=key,
        )
        for title, address, key in NAVIGATION
    )
    place = [element("span", where, class_="where", title=f"the cluster: {where}")]
    if who:
        button = element("button", "Leave", type="submit")
        place.append(
            element("form", element("span", who, class_="who"), button, method="post", action="/leave")
        )
    parts = [
        element("nav", joined(entries, " "), aria_label="pages of the dashboard"),
        element("div", *place, class_="place"),
    ]
    return element(
        "header",
        link(
            "/",
            element("img", src="/assets/icon.svg", alt="", width="24", height="24"),
            "Stromboli",
            class_="brand",
        ),
        *(parts if where else ()),  # who is not known yet can go nowhere
    )


def _moment(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _footer() -> Markup:
    keys = "Keys: / goes to the search field where there is one, g and a letter (o q j n t p d) to a page."
    return element("footer", f"Stromboli {__version__}. {keys}")
