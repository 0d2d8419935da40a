"""All pages, by their addresses."""

from __future__ import annotations

from stromboli.cli.dashboard.pages import job_list_page, overview_page, queue_pages
from stromboli.cli.dashboard.pages.page_content import PageRoute

PAGES: tuple[PageRoute, ...] = (
    *overview_page.ROUTES,
    *queue_pages.ROUTES,
    *job_list_page.ROUTES,
)
