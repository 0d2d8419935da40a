"""`stromboli jobflow`: jobs that follow one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import JOB_FLOWS, JOB_TEMPLATES, Manifest, full_name, name_of
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.object_output import NAME_COLUMN, Column
from stromboli.cli.command_group import subcommands
from stromboli.cli.objects.common_columns import AGE_COLUMN, begun, items, nested, with_events
from stromboli.cli.objects.kind_commands import (
    ObjectKind,
    add_create,
    add_delete,
    add_showing,
    add_wait,
)

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

SUCCEEDED, FAILED, TERMINATING = "Succeed", "Failed", "Terminating"


def phase_of(flow: Manifest) -> str:
    return str(nested(flow, "status", "state", "phase") or "Pending")


def _done(flow: Manifest) -> str:
    """How many of its steps are complete: `2/3`."""
    completed = nested(flow, "status", "completedJobs")
    count = len(completed) if isinstance(completed, list) else 0
    return f"{count}/{len(items(nested(flow, 'spec', 'flows')))}"


def _jobs(key: str) -> Column:
    def names(flow: Manifest) -> str:
        listed = nested(flow, "status", f"{key}Jobs")
        return ",".join(map(str, listed)) if isinstance(listed, list) else ""

    return Column(key.upper(), names, wide=True)


COLUMNS = (
    NAME_COLUMN,
    Column("PHASE", phase_of),
    Column("DONE", _done),
    AGE_COLUMN,
    Column("RETAIN", lambda flow: nested(flow, "spec", "jobRetainPolicy"), wide=True),
    *(_jobs(key) for key in ("running", "pending", "failed")),
)


def ended(flow: Manifest) -> bool:
    """Whether a flow has succeeded; `ClusterError` if it failed."""
    phase = phase_of(flow)
    if phase == FAILED:
        failed = ", ".join(map(str, nested(flow, "status", "failedJobs") or ()))
        raise ClusterError(f"{full_name(JOB_FLOWS, name_of(flow))} failed: {failed or 'see its events'}")
    return phase == SUCCEEDED


async def describe(session: ClusterSession, flow: Manifest) -> Description:
    from stromboli.cli.objects.flow_steps import step_tree

    description = begun(flow)
    description.field("Phase", phase_of(flow))
    description.field("Steps done", _done(flow))
    description.field("Jobs then", nested(flow, "spec", "jobRetainPolicy"))
    description.section("Steps", step_tree(flow))
    return await with_events(session, description, flow)


KIND = ObjectKind(JOB_FLOWS, lambda _: COLUMNS, describe, ended)
jobflow = subcommands("Create, show, await and delete flows of jobs.")
add_create(jobflow, KIND, JOB_TEMPLATES)
add_showing(jobflow, KIND)
add_wait(
    jobflow,
    KIND,
    "Exit status 0 when all have succeeded, 1 if one failed or is deleted, 124 after --timeout.",
)
add_delete(jobflow, KIND)
