"""What news are about, as links: a job by its PodGroup, a pod that was evicted."""

from __future__ import annotations

from stromboli.cli.dashboard.pages.job_links import NAME_SHOWN, job_link
from stromboli.cli.dashboard.pages.page_content import pod_address
from stromboli.cli.dashboard.pages.page_elements import Row, link, short_text
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.simulator.reports.page.markup import Markup, joined

NO_NEWS = "No start, end or eviction has been seen yet."


def news_subject(records: ClusterRecords, row: Row) -> Markup | str:
    """Of a row of `ClusterContent.news`; without a link where it has gone, or the viewer cannot see it."""
    if row["what"] != "evicted":
        return job_link(records, row["group"]) if row["group"] in records.groups else _text(row)
    if row["subject"] in records.pods:
        namespace, _, name = row["subject"].partition("/")
        return link(pod_address(namespace, name), _text(row))
    if row["group"] in records.groups:
        return joined([_text(row), " of ", job_link(records, row["group"])])
    return _text(row)


def _text(row: Row) -> Markup | str:
    return short_text(row["subject"], NAME_SHOWN)
