"""A request as a Job on the cluster: tried, created, followed to its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cluster.change_options import DryRun, report_changes
from stromboli.cli.cluster.cluster_errors import ClusterError, shown
from stromboli.cli.cluster.cluster_kinds import JOBS, PRIORITY_CLASSES, Manifest, full_name, name_of
from stromboli.cli.cluster.object_output import ObjectFormat
from stromboli.cli.following.follow_screen import FollowScreen
from stromboli.cli.following.job_follower import follow_job
from stromboli.cli.following.job_wait import phase_of
from stromboli.cli.run.interruption import Interrupted, Wish, until_interrupted
from stromboli.cli.run.local_surroundings import Here
from stromboli.kube.request import ApiError
from stromboli.submission.job_manifest import job_manifest
from stromboli.submission.job_request import JobRequest

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

CONFLICT = 409
SHOWN_CLASSES = 10
"""Names of priority classes in a message."""


@dataclass(frozen=True, slots=True)
class Submission:
    """How a job is submitted, and what is shown of it."""

    dry_run: DryRun
    output: ObjectFormat
    follow: bool
    quiet: bool = False
    announcement: str = ""
    """Printed in place of `job.batch.volcano.sh/NAME created`, with the name in the place of {name}."""


async def submit_job(
    session: ClusterSession, request: JobRequest, here: Here, submission: Submission
) -> None:
    """Create the job and follow it; ends the command with the job's exit code."""
    manifest = job_manifest(request, session.namespace, here.node_selector, here.host)
    if submission.dry_run is DryRun.CLIENT:
        report_changes(JOBS, [manifest], "created", _shown(submission), submission.dry_run)
        return
    await _check_predecessors(session, request)
    await _check_priority(session, request.priority)
    created = await _create(session, manifest, submission.dry_run is DryRun.SERVER)
    if submission.dry_run is DryRun.SERVER:
        report_changes(JOBS, [created], "created", _shown(submission), submission.dry_run)
        return
    screen = FollowScreen(submission.quiet)
    _announce(submission, created, screen, here)
    if submission.follow:
        raise typer.Exit(await follow_to_end(session, created, screen))


def _shown(submission: Submission) -> ObjectFormat:
    """A manifest that is only tried is shown in full."""
    plain = submission.output is ObjectFormat.TABLE and submission.dry_run is DryRun.CLIENT
    return ObjectFormat.YAML if plain else submission.output


async def _create(session: ClusterSession, manifest: Manifest, dry_run: bool) -> Manifest:
    try:
        return await session.create(JOBS, manifest, dry_run=dry_run)
    except ApiError as error:
        if error.status == CONFLICT:
            name = full_name(JOBS, name_of(manifest))
            raise ClusterError(
                f"{name} exists already in namespace {session.namespace}: give another --name, or delete it"
            ) from None
        raise


async def _check_predecessors(session: ClusterSession, request: JobRequest) -> None:
    """A job that is waited for must exist, or be awaited in vain."""
    found = await asyncio.gather(*(session.find(JOBS, each.name) for each in request.after))
    for each, job in zip(request.after, found, strict=True):
        if job is None:
            raise ClusterError(
                f"--after {each.name}: {full_name(JOBS, each.name)} does not exist in namespace {session.namespace}"
            )
        if each.verdict(phase_of(job)) == "never":
            raise ClusterError(f"--after {each}: {full_name(JOBS, each.name)} is {phase_of(job)} already")


async def _check_priority(session: ClusterSession, name: str) -> None:
    """Without its PriorityClass a job is accepted, but never gets a pod; who may not read classes is not stopped."""
    if not name:
        return
    try:
        if await session.find(PRIORITY_CLASSES, name) is not None:
            return
        known = sorted(map(name_of, (await session.list(PRIORITY_CLASSES)).items))
    except ApiError:
        return
    there = f"there are {', '.join(known[:SHOWN_CLASSES])}" if known else "there is none"
    raise ClusterError(
        shown(f"--priority {name}: {full_name(PRIORITY_CLASSES, name)} does not exist; {there}")
    )


def _announce(submission: Submission, created: Manifest, screen: FollowScreen, here: Here) -> None:
    """What was created: on standard output unless logs go there."""
    if submission.output is not ObjectFormat.TABLE and not submission.follow:
        report_changes(JOBS, [created], "created", submission.output)
    elif submission.announcement:
        typer.echo(submission.announcement.format(name=name_of(created)))
    elif not submission.follow:
        report_changes(JOBS, [created], "created", submission.output)
    elif not submission.quiet:
        screen.tell(f"{full_name(JOBS, name_of(created))} created")
    if here.is_simulated and not submission.quiet:
        screen.tell(
            "note: the nodes of this cluster are simulated and run nothing; `stromboli up --real` does"
        )


async def follow_to_end(session: ClusterSession, job: Manifest, screen: FollowScreen) -> int:
    """The exit code of the job, or of a command that ends before it."""
    name = name_of(job)
    where = f" -n {session.namespace}"
    goes_on = (
        f"{full_name(JOBS, name)} goes on: `stromboli job logs -f{where} {name}` shows it again,"
        f" `stromboli job delete{where} {name}` ends it"
    )
    try:
        following = follow_job(session, session.namespace, name, screen, created=job)
        end = await until_interrupted(following, screen)
    except (ApiError, ClusterError):
        screen.tell(goes_on)
        raise
    if not isinstance(end, Interrupted):
        if end.exit_code:
            screen.tell(
                f"error: {full_name(JOBS, name)} {_outcome(end.phase)}: {end.message or 'no reason given'}"
            )
        return end.exit_code
    if end.wish is Wish.CANCEL:
        await session.delete(JOBS, name)
        screen.tell(f"{full_name(JOBS, name)} cancelled and deleted")
    else:
        screen.tell(goes_on)
    return end.exit_code


def _outcome(phase: str) -> str:
    return f"is {phase}" if phase else "is gone"
