"""What pages are made of: what forms keep of an address, and what they leave."""

from __future__ import annotations

import re
from pathlib import Path

from stromboli.cli.dashboard import pages
from stromboli.cli.dashboard.pages.page_elements import (
    KEPT_PARAMETERS,
    FilterField,
    TableColumn,
    amount,
    data_table,
    filter_form,
    plain_table,
)
from tests.cli.dashboard.view_requests import HOSTILE, view_request

OF_ITS_OWN = {"page", "done", "container", "tail", "previous", "cycle", "leader", "since"}
"""Parameters that mean nothing once another filter is chosen, or that pages without filters have."""


def fields_of(**query: str) -> list[str]:
    form = filter_form(view_request("/jobs", query=query), [FilterField("q", "Search")])
    return re.findall(r' name="([^"]*)"', form)


def test_a_form_keeps_the_rest_of_the_address() -> None:
    assert fields_of(sort="-age", phase="Running", q="a") == ["sort", "phase", "q"]


def test_a_form_begins_at_the_first_page_and_forgets_what_was_said_once() -> None:
    assert fields_of(page="3", done="scaled") == ["q"]


def test_a_form_keeps_no_parameter_that_no_page_has() -> None:
    assert fields_of(attributes="x", **{HOSTILE: "x"}) == ["q"]


def test_forms_keep_every_parameter_that_pages_read() -> None:
    sources = "\n".join(file.read_text() for file in Path(pages.__path__[0]).rglob("*.py"))
    read = set(re.findall(r'request\.(?:query\.get|choice|number)\(\s*"(\w+)"', sources))
    assert len(read) > 10
    assert read - OF_ITS_OWN <= KEPT_PARAMETERS


def test_a_table_without_rows_says_so() -> None:
    columns = [TableColumn("Job", lambda row: row["name"]), TableColumn("Queue", lambda row: row["queue"])]
    assert '<td colspan="2">None.</td>' in data_table(view_request("/"), "0 jobs", columns, [])
    assert plain_table("jobs", ("Job",), []) == '<p class="note">None.</p>'


def test_bytes_of_any_kind_are_shown_with_their_unit() -> None:
    shown = [amount(100 * 2.0**30, name) for name in ("memory", "ephemeral-storage", "hugepages-2Mi")]
    assert shown == ["100Gi"] * 3
    assert amount(2048.0, "example.com/port") == "2,048"
