"""Links to jobs: to the page of a Job of Volcano's, else to that of the PodGroup."""

from __future__ import annotations

from stromboli.cli.dashboard.pages.page_content import job_address
from stromboli.cli.dashboard.pages.page_elements import Row, link, short_text
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.simulator.reports.page.markup import Markup

NAME_SHOWN = 120
"""Characters of a namespace and a name."""


def row_address(records: ClusterRecords, row: Row) -> str:
    """The page of a row of the list of jobs."""
    return _address(records, row["kind"], f"{row['namespace']}/{row['name']}", row["group"])


def job_link(records: ClusterRecords, group: str) -> Markup | str:
    """A job by `namespace/name` of its PodGroup; without a link where the viewer cannot see that, or it has gone."""
    record = records.groups.get(group)
    if record is None:
        return short_text(group, NAME_SHOWN)
    job = f"{record.namespace}/{record.name}"
    return link(_address(records, record.kind, job, group), short_text(job, NAME_SHOWN))


def _address(records: ClusterRecords, kind: str, job: str, group: str) -> str:
    if kind == "job" and job in records.jobs:
        namespace, _, name = job.partition("/")
        return job_address(namespace, name)
    namespace, _, name = group.partition("/")
    return job_address(namespace, name, "podgroup")
