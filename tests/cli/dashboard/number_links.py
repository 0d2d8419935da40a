"""Numbers on pages, followed to the pages that they lead to: those must show as many."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import NamedTuple
from urllib.parse import urlsplit

from stromboli.cli.dashboard.pages.page_content import PageContent, ViewRequest
from stromboli.cli.dashboard.pages.page_routes import PAGES
from stromboli.cli.dashboard.server.page_addresses import AddressBook
from tests.cli.dashboard.view_requests import html_of, rendered

BOOK = AddressBook(PAGES)
UNCOUNTED = re.compile(r"/decisions|/policy|.*[?&]sort=-by-|/queues/[^?]*#region-below$")
"""Where numbers lead that count no objects: to what the leader tells, and from amounts to who has most of them."""
_LINK = re.compile(r'<a href="([^"]*)"[^>]*>(?:[^<]* )?([\d,]+)</a>')
_CAPTION = re.compile(r"<caption[^>]*>([^<]*)</caption>")
_COUNT = re.compile(r"([\d,]+)(?: more| of (?:their|[\d,]+))? (jobs?|nodes?|pods?|HyperNodes?)\b")


class NumberLink(NamedTuple):
    """A number that is a link, alone or at the end of words."""

    target: str
    number: int


def numbers_of(markup: str) -> list[NumberLink]:
    """Those of a page, or of a part of it."""
    return [
        NumberLink(unescape(target), int(number.replace(",", ""))) for target, number in _LINK.findall(markup)
    ]


def assert_numbers_lead_to_as_many(request: ViewRequest, page: PageContent) -> list[NumberLink]:
    """Follow each number within the dashboard, with the same records; the numbers that were compared."""
    compared = []
    for each in numbers_of(html_of(page)):
        if UNCOUNTED.match(each.target):
            continue
        counts = counts_at(request, each.target)
        assert each.number in counts.values(), f"{each.number} leads to {each.target}, which has {counts}"
        compared.append(each)
    return compared


def counts_at(request: ViewRequest, target: str) -> dict[str, int]:
    """How many of what the tables at an address have, by their captions; of the region alone that it names."""
    destination = BOOK.find(target)
    assert destination is not None, f"{target} leads nowhere"
    there = replace(request, path=destination.path, names=destination.names, query=destination.query)
    page = rendered(destination.route.render, there)
    markup = html_of(page)
    if fragment := urlsplit(target).fragment:
        regions = {f"region-{name}": text for name, text in page.regions.items()}
        assert fragment in regions, f"{target} names no region"
        markup = regions[fragment]
    counts: dict[str, int] = {}
    for caption in _CAPTION.findall(markup):
        counted = [(kind.rstrip("s"), int(count.replace(",", ""))) for count, kind in _COUNT.findall(caption)]
        assert counted, f"the caption {caption!r} at {target} counts nothing"
        counts = {**dict(counted), **counts}
    return counts
