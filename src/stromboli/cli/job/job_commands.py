"""The commands of `stromboli job`."""

from __future__ import annotations

from stromboli.cli.command_group import Command, subcommands
from stromboli.cli.job.job_deletion import delete
from stromboli.cli.job.job_description import describe
from stromboli.cli.job.job_listing import get_jobs, list_jobs
from stromboli.cli.job.job_log_command import logs
from stromboli.cli.job.job_scaling import scale
from stromboli.cli.job.job_submission import run
from stromboli.cli.job.job_suspension import resume, suspend
from stromboli.cli.job.job_wait_command import wait

job = subcommands("Submit, list, describe, read, suspend, resume, scale, delete and await jobs.")
for name, command in (
    ("run", run),
    ("list", list_jobs),
    ("get", get_jobs),
    ("describe", describe),
    ("logs", logs),
    ("suspend", suspend),
    ("resume", resume),
    ("scale", scale),
    ("delete", delete),
    ("wait", wait),
):
    job.command(name, cls=Command)(command)
