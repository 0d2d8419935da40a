"""`stromboli run`: the shortest way from a command to a running gang."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import DRY_RUN, DryRun
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.run.run_options import with_settings
from stromboli.submission.bad_request import BadRequest
from stromboli.submission.run_settings import RunSettings, request_of

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

QUIET = typer.Option(
    False, "--quiet", show_default=False, help="Only what the job prints, and an error if it fails."
)


@on_cluster()
@with_settings
async def run(
    session: ClusterSession,
    settings: RunSettings,
    command: list[str] = typer.Argument(None, metavar="[--] COMMAND...", show_default=False),
    detach: bool = typer.Option(
        False, "--detach", "-d", show_default=False, help="Only submit it; print its name."
    ),
    quiet: bool = QUIET,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Run a command as a job: in one pod, or in a gang of them that start together.

    Prints what the pods print, each line with the rank of its pod where there are several, and on standard error why
    it waits, until the job has ended. A pod that fails ends the job. Ctrl-C asks whether to cancel the job or to
    leave it running; a second Ctrl-C leaves it running, and so does Ctrl-C where there is no terminal, SIGTERM
    or SIGHUP.

    Exit status: that of the container that failed, 0 if the job completed, 1 if it did not otherwise or the cluster
    refuses, 2 for a wrong command line, 130 after Ctrl-C (129, 143 after SIGHUP, SIGTERM,
    141 if nobody reads its output any more).
    """
    from stromboli.cli.following.follow_screen import FollowScreen
    from stromboli.cli.run.local_surroundings import surroundings
    from stromboli.cli.run.submitted_job import Submission, submit_job

    here = await surroundings(session)
    if len(command or ()) == 1 and " " in command[0] and not quiet:
        FollowScreen().tell(
            "note: that is a single word with spaces; a line for a shell is given with: -- sh -c '...'"
        )
    try:
        request = request_of(settings, command or (), here.surroundings)
    except BadRequest as error:
        raise Usage(str(error)) from None
    await submit_job(session, request, here, Submission(dry_run, output, not detach, quiet))
