"""Addresses of pages, and what they carry on."""

from __future__ import annotations

import pytest

from stromboli.cli.dashboard.pages.job_list_page import job_list
from tests.cli.dashboard.served_cluster import job_manifest
from tests.cli.dashboard.view_requests import html_of, rendered, view_request


@pytest.mark.parametrize(
    ("changes", "address"),
    [
        ({}, "/jobs?queue=a&page=2"),
        ({"page": ""}, "/jobs?queue=a"),
        ({"page": 3, "q": "b c"}, "/jobs?queue=a&page=3&q=b+c"),
        ({"done": "scaled"}, "/jobs?queue=a&page=2&done=scaled"),
    ],
)
def test_an_address_keeps_what_is_chosen_and_not_what_has_just_happened(
    changes: dict[str, object], address: str
) -> None:
    query = {"queue": "a", "done": "deleted", "page": "2"}
    assert view_request("/jobs", query=query).address(**changes) == address


def test_a_page_after_an_action_says_so_and_nothing_on_it_says_so_again() -> None:
    request = view_request("/jobs", job_manifest(), query={"namespace": "default", "done": "deleted"})
    shown = html_of(rendered(job_list, request))
    assert "The job is being deleted" in shown
    assert "done=" not in shown
    assert 'name="done"' not in shown
