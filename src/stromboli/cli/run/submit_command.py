"""`stromboli submit`: a script with its options in comments, as batch systems take it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import DRY_RUN, DryRun
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.run.run_command import QUIET
from stromboli.cli.run.run_options import LISTS, SETTINGS, with_settings
from stromboli.submission.bad_request import BadRequest
from stromboli.submission.job_request import RUN_ONCE, JobRequest
from stromboli.submission.run_settings import MAX_COMMAND_BYTES, RunSettings, request_of

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

OPTIONS = {*SETTINGS, *LISTS, "export", "wait", "follow", "quiet", "dry-run", "output", "namespace"}
"""Options that a user may mean for this command."""


@on_cluster()
@with_settings
async def submit(
    session: ClusterSession,
    settings: RunSettings,
    script: str = typer.Argument(..., metavar="SCRIPT", help="A file; - for standard input."),
    arguments: list[str] = typer.Argument(None, metavar="[ARGUMENTS]...", show_default=False),
    wait: bool = typer.Option(
        False, "--wait", "--follow", "-W", "-f", show_default=False, help="Show what it prints, to its end."
    ),
    export: str = typer.Option(
        "",
        "--export",
        metavar="ALL|NONE|NAME[=VALUE],...",
        show_default=False,
        help="Environment variables to pass to the script, as with sbatch. Default: $SBATCH_EXPORT, then"
        " #SBATCH --export, then ALL on this machine and NONE on other clusters.",
    ),
    quiet: bool = QUIET,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
) -> None:
    """Submit a script as a job, with options from its comments: #STROMBOLI, and Slurm's #SBATCH.

    Options of the command line count more than those of the script, and stand before its name: what follows is given
    to the script. What #SBATCH asks for and cannot be had is told on
    standard error. The script runs in every pod of the job, with the variables SLURM_* that it would have on Slurm.

    Exit status 0 once it is submitted, 1 if the cluster refuses, 2 for a wrong command line or script; with --wait
    as `stromboli run`.
    """
    from stromboli.cli.following.follow_screen import FollowScreen
    from stromboli.cli.run.local_surroundings import surroundings
    from stromboli.cli.run.submitted_job import Submission, submit_job
    from stromboli.submission.exported_environment import exported

    text, name = read_script(script)
    try:
        asked, notes, waits = _from_comments(text, name)
        here = await surroundings(session)
        around = here.surroundings
        settings = replace(settings, export=export or around.env.get("SBATCH_EXPORT", "")).over(asked)
        on_this_machine = here.node_selector is not None
        passed = exported(
            settings.export or ("ALL" if on_this_machine else "NONE"), around.env, on_this_machine
        )
        if "\n#SBATCH" in text and not (settings.export or on_this_machine or here.is_simulated):
            notes.append(
                "your environment is not passed to this cluster; --export=ALL or --export=NAME passes it"
            )
        around = replace(around, defaults={**around.defaults, **passed.variables})
        request = request_of(settings, arguments or (), around, text)
        notes = [*notes, *passed.notes, *_check_for_gang(request, text, name)]
    except BadRequest as error:
        raise Usage(str(error)) from None
    if not quiet:
        for note in (*_late_options(arguments or ()), *notes):
            FollowScreen().tell(f"note: {note}")
    follow = wait or waits
    announcement = "" if output is not ObjectFormat.TABLE else "Submitted job {name}"
    await submit_job(session, request, here, Submission(dry_run, output, follow, quiet, announcement))


def _check_for_gang(request: JobRequest, text: str, name: str) -> list[str]:
    """Refuse a script of several pods that would do something else than on Slurm; notes where it may."""
    from stromboli.submission.script_steps import gang_findings

    if request.array is not None or request.replicas == 1:
        return []
    problems, notes = gang_findings(text, request.plugin)
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise Usage(f"{name} cannot run in {request.replicas} pods:{listed}")
    if "\n#SBATCH" in text and request.plugin not in RUN_ONCE:
        notes.insert(
            0,
            f"the script runs in each of the {request.replicas} pods, not only in the first; `srun` starts the"
            " tasks of its pod",
        )
    return notes


def _late_options(arguments: Sequence[str]) -> list[str]:
    """Options of this command that stand after the script: they are the script's, as with sbatch, perhaps unwished."""
    late = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    return [
        f"{option} stands after the script, so the script gets it; options of `stromboli submit` come before"
        for option in dict.fromkeys(late)
        if option.removeprefix("--") in OPTIONS
    ]


def _from_comments(text: str, name: str) -> tuple[RunSettings, list[str], bool]:
    """The options of a script, what of them cannot be had, and whether to wait for the end."""
    from stromboli.submission.comment_options import settings_in
    from stromboli.submission.script_comments import check_script, read_comments
    from stromboli.submission.slurm_request import slurm_request

    check_script(text, name)
    comments = read_comments(text, name)
    title = RunSettings(title=name.removesuffix(".sh"))
    settings, notes, waits = title, list[str](), False
    if comments.sbatch:
        slurm = slurm_request(comments.sbatch)
        settings, notes, waits = slurm.settings.over(title), slurm.notes, slurm.waits
    if comments.stromboli:
        settings = settings_in(comments.stromboli).over(settings)
    return settings, notes, waits


def read_script(path: str) -> tuple[str, str]:
    """The text of a script, and what to call it; no more is read than a job can have."""
    try:
        if path == "-":
            content, name = sys.stdin.buffer.read(MAX_COMMAND_BYTES + 1), "script"
        else:
            with Path(path).open("rb") as file:
                content, name = file.read(MAX_COMMAND_BYTES + 1), Path(path).name
    except OSError as error:
        raise Usage(f"{path}: {error.strerror or error}") from None
    if len(content) > MAX_COMMAND_BYTES:
        raise Usage(
            f"{path}: larger than {MAX_COMMAND_BYTES} bytes, which is the most that travels in a job;"
            " put it into the image or a volume, and submit a script that calls it"
        )
    try:
        return content.decode(), name
    except UnicodeDecodeError:
        raise Usage(f"{path}: no script: it is not text in UTF-8") from None
