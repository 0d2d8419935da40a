"""`stromboli jobtemplate`: jobs under a name, for flows to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.cli.cluster.cluster_kinds import JOB_TEMPLATES, Manifest
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.object_output import NAME_COLUMN, Column
from stromboli.cli.command_group import subcommands
from stromboli.cli.objects.common_columns import AGE_COLUMN, begun, items, nested, with_events
from stromboli.cli.objects.kind_commands import ObjectKind, add_create, add_delete, add_showing

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

MOST_JOBS = 50
"""Jobs of a template that are named."""


def _tasks(template: Manifest) -> list[Manifest]:
    return items(nested(template, "spec", "tasks"))


def _pods(template: Manifest) -> int:
    counts = [task.get("replicas", 1) for task in _tasks(template)]
    return sum(count for count in counts if isinstance(count, int))


def _jobs(template: Manifest) -> list[str]:
    listed = nested(template, "status", "jobDependsOnList")
    return [str(job) for job in listed] if isinstance(listed, list) else []


COLUMNS = (
    NAME_COLUMN,
    Column("TASKS", lambda template: len(_tasks(template))),
    Column("PODS", _pods),
    Column("MIN", lambda template: nested(template, "spec", "minAvailable")),
    Column("QUEUE", lambda template: nested(template, "spec", "queue") or "default"),
    Column("JOBS", lambda template: len(_jobs(template))),
    AGE_COLUMN,
)


async def describe(session: ClusterSession, template: Manifest) -> Description:
    description = begun(template)
    spec = template.get("spec") or {}
    for title, key in (
        ("Queue", "queue"),
        ("Min available", "minAvailable"),
        ("Scheduler", "schedulerName"),
        ("Priority", "priorityClassName"),
        ("Max retry", "maxRetry"),
    ):
        description.field(title, spec.get(key))
    plugins = spec.get("plugins")
    description.field("Plugins", ", ".join(sorted(plugins)) if isinstance(plugins, dict) else "")
    description.table(
        "Tasks", ["NAME", "PODS", "IMAGE", "REQUESTS"], [_task_row(task) for task in _tasks(template)]
    )
    jobs = _jobs(template)
    more = [f"and {len(jobs) - MOST_JOBS} more"] if len(jobs) > MOST_JOBS else []
    description.section("Jobs made of it", jobs[:MOST_JOBS] + more)
    return await with_events(session, description, template)


def _task_row(task: Manifest) -> list[object]:
    containers = items(nested(task, "template", "spec", "containers"))
    requests = nested(containers[0], "resources", "requests") if containers else None
    text = ",".join(f"{name}={amount}" for name, amount in sorted((requests or {}).items()))
    images = ",".join(str(container.get("image") or "") for container in containers)
    return [task.get("name"), task.get("replicas", 1), images, text]


KIND = ObjectKind(JOB_TEMPLATES, lambda _: COLUMNS, describe)
jobtemplate = subcommands("Create, show and delete jobs under a name, for flows to start.")
add_create(jobtemplate, KIND)
add_showing(jobtemplate, KIND)
add_delete(jobtemplate, KIND)
