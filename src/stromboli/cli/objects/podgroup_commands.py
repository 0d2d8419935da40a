"""`stromboli podgroup`: jobs as the scheduler sees them, and why they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.cli.cluster.cluster_kinds import POD_GROUPS, PODS, Manifest, name_of, namespace_of
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.group_members import (
    condition_message,
    members_of,
    queue_of,
    wait_reason,
)
from stromboli.cli.cluster.object_output import NAME_COLUMN, Column
from stromboli.cli.command_group import subcommands
from stromboli.cli.objects.common_columns import (
    AGE_COLUMN,
    age_of,
    begun,
    listed,
    nested,
    owner_of,
    with_events,
)
from stromboli.cli.objects.kind_commands import ObjectKind, add_showing
from stromboli.embedded.tables.pod_rows import state_text

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

MOST_MEMBERS = 50
"""Pods that a description lists."""


def _phase(group: Manifest) -> str:
    return str(nested(group, "status", "phase") or "Pending")


COLUMNS = (
    NAME_COLUMN,
    Column("QUEUE", queue_of),
    Column("PHASE", _phase),
    Column("MIN", lambda group: nested(group, "spec", "minMember") or 0),
    Column("RUNNING", lambda group: nested(group, "status", "running") or 0),
    AGE_COLUMN,
    Column("WAITS FOR", wait_reason),
    Column("OWNER", owner_of, wide=True),
    Column("PRIORITY", lambda group: nested(group, "spec", "priorityClassName"), wide=True),
    Column("SUCCEEDED", lambda group: nested(group, "status", "succeeded") or 0, wide=True),
    Column("FAILED", lambda group: nested(group, "status", "failed") or 0, wide=True),
)


async def describe(session: ClusterSession, group: Manifest) -> Description:
    description, seen = begun(group), Description()
    members = members_of(group, await listed(session, seen, PODS, namespace_of(group)))
    description.field("Queue", queue_of(group))
    description.field("Phase", _phase(group))
    description.field("Priority", nested(group, "spec", "priorityClassName"))
    description.field("Min members", nested(group, "spec", "minMember") or 0)
    description.field("Members", "" if seen.lines else _counts(members))
    if minimums := nested(group, "spec", "minTaskMember"):
        description.entries("Min of tasks", minimums)
    if resources := nested(group, "spec", "minResources"):
        description.entries("Min resources", resources)
    description.field("Waits", wait_reason(group, None if seen.lines else members))
    description.field("In full", condition_message(nested(group, "status", "conditions")))
    rows = [
        [name_of(pod), state_text(pod), nested(pod, "spec", "nodeName") or "<none>", age_of(pod)]
        for pod in members[:MOST_MEMBERS]
    ]
    if len(members) > MOST_MEMBERS:
        rows.append([f"and {len(members) - MOST_MEMBERS} more", "", "", ""])
    description.lines += seen.lines
    description.table("Pods", ["NAME", "STATUS", "NODE", "AGE"], rows)
    return await with_events(session, description, group)


def _counts(members: list[Manifest]) -> str:
    """`4: 3 Running, 1 Pending`."""
    phases = [str(nested(pod, "status", "phase") or "Pending") for pod in members]
    parts = [f"{phases.count(phase)} {phase}" for phase in dict.fromkeys(phases)]
    return f"{len(members)}: {', '.join(parts)}" if parts else "0"


KIND = ObjectKind(POD_GROUPS, lambda _: COLUMNS, describe)
podgroup = subcommands("Show PodGroups: jobs as the scheduler sees them, and why they wait.")
add_showing(podgroup, KIND)
