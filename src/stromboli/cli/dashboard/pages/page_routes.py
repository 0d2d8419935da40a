"""All pages, by their addresses."""

from __future__ import annotations

from stromboli.cli.dashboard.pages import (
    job_list_page,
    job_page,
    overview_page,
    pod_page,
    queue_pages,
)
from stromboli.cli.dashboard.pages.leader import decisions_page, policy_page
from stromboli.cli.dashboard.pages.network import node_list_page, node_page, topology_page
from stromboli.cli.dashboard.pages.page_content import PageRoute

PAGES: tuple[PageRoute, ...] = (
    *overview_page.ROUTES,
    *queue_pages.ROUTES,
    *job_list_page.ROUTES,
    *job_page.ROUTES,
    *pod_page.ROUTES,
    *node_list_page.ROUTES,
    *node_page.ROUTES,
    *topology_page.ROUTES,
    *policy_page.ROUTES,
    *decisions_page.ROUTES,
)
