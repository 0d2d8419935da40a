"""`stromboli cronjob`: jobs by the clock, held, released and started at once."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import typer

from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    WAIT,
    ChangeReport,
    DryRun,
    report_changes,
    seconds_of,
    tell_change,
    wait_until,
)
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import CRON_JOBS, JOBS, Manifest, full_name, name_of, namespace_of
from stromboli.cli.cluster.description import Description
from stromboli.cli.cluster.object_output import NAME_COLUMN, OUTPUT, Column, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.command_group import Command, subcommands
from stromboli.cli.objects.common_columns import (
    AGE_COLUMN,
    age_of,
    ago_of,
    begun,
    items,
    listed,
    nested,
    with_events,
)
from stromboli.cli.objects.cron_run_times import RunTimes, now_text
from stromboli.cli.objects.kind_commands import (
    ObjectKind,
    add_create,
    add_delete,
    add_showing,
    for_each,
    named,
)

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
"""With it, the controller counts a job among those of its CronJob."""
STARTED_BY_HAND = "stromboli.sh/started-by-hand"
MOST_JOBS = 10
"""Jobs that a description lists, the latest ones."""
LONGEST_PREFIX = 40
"""Characters of the CronJob's name in that of a job: pods and services need names of their own."""


def _times(session: ClusterSession) -> RunTimes:
    return RunTimes(controllers_are_here=session.running is not None)


def columns(session: ClusterSession) -> tuple[Column, ...]:
    times = _times(session)
    return (
        NAME_COLUMN,
        Column("SCHEDULE", lambda cron: nested(cron, "spec", "schedule")),
        Column("SUSPENDED", lambda cron: "yes" if nested(cron, "spec", "suspend") is True else "no"),
        Column("ACTIVE", lambda cron: len(items(nested(cron, "status", "active")))),
        Column("LAST RUN", lambda cron: ago_of(nested(cron, "status", "lastScheduleTime"))),
        Column("NEXT RUN", times.next_run),
        AGE_COLUMN,
        Column("ZONE", lambda cron: nested(cron, "spec", "timeZone"), wide=True),
        Column("CONCURRENCY", lambda cron: nested(cron, "spec", "concurrencyPolicy") or "Allow", wide=True),
        Column("SUCCEEDED", lambda cron: ago_of(nested(cron, "status", "lastSuccessfulTime")), wide=True),
    )


async def describe(session: ClusterSession, cron: Manifest) -> Description:
    description, spec = begun(cron), cron.get("spec") or {}
    suspended = spec.get("suspend") is True
    description.field("Schedule", spec.get("schedule"))
    description.field("Time zone", spec.get("timeZone"))
    description.field("Suspended", "yes: nothing is started until `resume`" if suspended else "no")
    description.field("Concurrency", spec.get("concurrencyPolicy") or "Allow")
    description.field("Deadline", _seconds(spec.get("startingDeadlineSeconds")))
    limits = [spec.get(f"{which}JobsHistoryLimit") for which in ("successful", "failed")]
    description.field(
        "Kept", "{} succeeded, {} failed".format(*("all" if limit is None else limit for limit in limits))
    )
    description.field("Last run", ago_of(nested(cron, "status", "lastScheduleTime")))
    description.field("Succeeded", ago_of(nested(cron, "status", "lastSuccessfulTime")))
    description.section(
        "Next runs", ["none while it is suspended"] if suspended else _times(session).upcoming(cron)
    )
    uid = nested(cron, "metadata", "uid")
    jobs = [
        job
        for job in await listed(session, description, JOBS, namespace_of(cron))
        if any(owner.get("uid") == uid for owner in items(nested(job, "metadata", "ownerReferences")))
    ]
    latest = sorted(jobs, key=lambda job: str(nested(job, "metadata", "creationTimestamp")))[-MOST_JOBS:]
    rows = [
        [name_of(job), nested(job, "status", "state", "phase") or "Pending", age_of(job)] for job in latest
    ]
    description.table("Jobs", ["NAME", "PHASE", "AGE"], rows)
    return await with_events(session, description, cron)


def _seconds(value: Any) -> str:
    return f"{value} seconds after a time, its run is left out" if isinstance(value, int) else ""


KIND = ObjectKind(CRON_JOBS, columns, describe)
cronjob = subcommands("Create, show, hold, start and delete jobs that run by the clock.")
add_create(cronjob, KIND)
add_showing(cronjob, KIND)


def _add_switch(verb: str, suspended: bool, help: str) -> None:
    """`suspend` and `resume`."""

    @on_cluster()
    async def switch(
        session: ClusterSession,
        names: list[str] = KIND.names,
        dry_run: DryRun = DRY_RUN,
        output: ObjectFormat = OUTPUT,
    ) -> None:
        report = ChangeReport(CRON_JOBS, verb, output, dry_run)

        async def change(name: str) -> None:
            cron = await named(session, KIND, name)
            past = f"{verb}d" if verb.endswith("e") else f"{verb}ed"
            if (nested(cron, "spec", "suspend") is True) is suspended:
                past = f"was {past} already"
            elif dry_run is DryRun.CLIENT:
                cron = {**cron, "spec": {**cron["spec"], "suspend": suspended}}
            else:
                patch = {"spec": {"suspend": suspended}}
                cron = await session.patch(CRON_JOBS, name_of(cron), patch, dry_run=dry_run is DryRun.SERVER)
            report.add(cron, verb=past)

        try:
            await for_each(names, change)
        finally:
            report.end()

    cronjob.command(verb, cls=Command, help=help)(switch)


_add_switch("suspend", True, "Start no more jobs; those that run go on.")
_add_switch("resume", False, "Start jobs by the clock again.")


@cronjob.command("trigger", cls=Command)
@on_cluster()
async def trigger(
    session: ClusterSession,
    name: str = KIND.single_name,
    job_name: str = typer.Option(
        "", "--name", metavar="JOB", show_default=False, help="What to call the job."
    ),
    dry_run: DryRun = DRY_RUN,
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Start a job now, whatever the clock says; it counts as a run of the CronJob.

    Exit status 0, 1 if the cluster refuses or, with --wait, the job does not complete.
    """
    seconds = seconds_of(timeout)
    cron = await named(session, KIND, name)
    job = job_of(cron, job_name or f"{name_of(cron)[:LONGEST_PREFIX].rstrip('-.')}-{secrets.token_hex(3)}")
    if dry_run is not DryRun.CLIENT:
        job = await session.create(JOBS, job, dry_run=dry_run is DryRun.SERVER)
    report_changes(JOBS, [job], "created", output, dry_run)
    if wait and dry_run is DryRun.NONE:
        await wait_until(session, JOBS, name_of(job), _completed, seconds, meaning="it has completed")
        tell_change(JOBS, name_of(job), "completed")


def job_of(cron: Manifest, name: str) -> Manifest:
    """A job of the template, owned and counted as those that the controller starts."""
    template = nested(cron, "spec", "jobTemplate") or {}
    metadata, moment = template.get("metadata") or {}, now_text()
    owner = {
        "apiVersion": CRON_JOBS.api_version,
        "kind": CRON_JOBS.kind,
        "name": name_of(cron),
        "uid": nested(cron, "metadata", "uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    marks = {SCHEDULED_AT: moment, STARTED_BY_HAND: "true"}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": name,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": {**(metadata.get("annotations") or {}), **marks},
            "ownerReferences": [owner],
        },
        "spec": template.get("spec") or {},
    }


def _completed(job: Manifest | None) -> bool:
    phase = nested(job or {}, "status", "state", "phase")
    if job is None or phase in ("Failed", "Aborted", "Terminated"):
        name = full_name(JOBS, name_of(job)) if job else "the job"
        raise ClusterError(
            f"{name} is {phase}; `stromboli job describe` says why" if job else f"{name} was deleted"
        )
    return bool(phase == "Completed")


add_delete(cronjob, KIND)
