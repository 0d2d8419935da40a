"""The `stromboli` command."""

import io
import sys

import typer

from stromboli import __version__
from stromboli.cli.cli_errors import set_up_log
from stromboli.cli.command_group import CommandEntry, CommandGroup

FREE_FORM = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""For flags as Go programs take them, which the commands parse themselves."""
COMMAND_LINE = {"allow_interspersed_args": False}
"""For commands that end with another command line: what follows its first word belongs to it."""


class Commands(CommandGroup):
    """All commands, in the order of `stromboli --help`."""

    sections = {  # noqa: RUF012 (it is never changed)
        "Work on a cluster": {
            "run": CommandEntry(
                "stromboli.cli.run.run_command:run",
                "Run a command as a job on a cluster, and show what it prints.",
                COMMAND_LINE,
            ),
            "submit": CommandEntry(
                "stromboli.cli.run.submit_command:submit",
                "Submit a script with options in comments, Slurm's too.",
                COMMAND_LINE,
            ),
            "job": CommandEntry(
                "stromboli.cli.job.job_commands:job",
                "Submit, list, describe, read and steer jobs of a cluster.",
            ),
            "queue": CommandEntry(
                "stromboli.cli.queue.queue_commands:queue",
                "Create, list, change, open and close queues of a cluster.",
            ),
            "explain": CommandEntry(
                "stromboli.cli.explain.explain_command:explain",
                "Say why a job waits, and what would let it start.",
            ),
            "top": CommandEntry(
                "stromboli.cli.top.top_command:top", "Watch queues, jobs, nodes and what waits, live."
            ),
            "dashboard": CommandEntry(
                "stromboli.cli.dashboard.dashboard_command:dashboard",
                "Show a cluster in a browser, live, and steer its jobs.",
            ),
            "status": CommandEntry(
                "stromboli.cli.status.status_command:status",
                "Show what is used, deserved and free, by queue and nodes.",
            ),
            "pods": CommandEntry(
                "stromboli.cli.objects.pods_command:pods",
                "Show the pods of a job, of a queue, or of all jobs.",
            ),
            "events": CommandEntry(
                "stromboli.cli.objects.events_command:events",
                "Tell what happened to a job, its pods and its queue.",
            ),
            "podgroup": CommandEntry(
                "stromboli.cli.objects.podgroup_commands:podgroup",
                "Show jobs as the scheduler sees them, and why they wait.",
            ),
            "jobflow": CommandEntry(
                "stromboli.cli.objects.jobflow_commands:jobflow", "Create, show and await flows of jobs."
            ),
            "jobtemplate": CommandEntry(
                "stromboli.cli.objects.jobtemplate_commands:jobtemplate",
                "Create and show jobs under a name, for flows.",
            ),
            "cronjob": CommandEntry(
                "stromboli.cli.objects.cronjob_commands:cronjob",
                "Create, show, hold and start jobs by the clock.",
            ),
            "hypernode": CommandEntry(
                "stromboli.cli.objects.hypernode_commands:hypernode",
                "Show the tree of the network, and how full it is.",
            ),
        },
        "Look after a cluster": {
            "check": CommandEntry(
                "stromboli.cli.check.check_command:check",
                "Say whether the installation on a cluster is healthy.",
            ),
            "metrics": CommandEntry(
                "stromboli.cli.metrics.metrics_command:metrics",
                "Say what the metrics of a scheduler mean, in words.",
            ),
            "decisions": CommandEntry(
                "stromboli.cli.objects.decisions_command:decisions",
                "Tell what the last cycles did, and how long actions took.",
            ),
            "policy": CommandEntry(
                "stromboli.cli.policy.policy_commands:policy",
                "Show, check and compare policies, and put one in force.",
            ),
        },
        "A cluster on this machine": {
            "up": CommandEntry(
                "stromboli.cli.up.up_command:up", "Start a cluster on this machine, for your kubectl."
            ),
            "down": CommandEntry("stromboli.cli.up.down:down", "Stop a cluster that `stromboli up` started."),
            "node": CommandEntry(
                "stromboli.cli.up.node_commands:node",
                "Let nodes of a cluster of `stromboli up` die and come back.",
            ),
            "service": CommandEntry(
                "stromboli.cli.service:service",
                "Let systemd run `stromboli up` for you, from when you log in.",
            ),
            "demo": CommandEntry(
                "stromboli.cli.demo:demo", "Watch two teams share a small GPU cluster, in under a minute."
            ),
        },
        "Without a cluster": {
            "plan": CommandEntry(
                "stromboli.cli.plan:plan", "Say what a cycle would decide for a cluster, and why."
            ),
            "lint": CommandEntry(
                "stromboli.cli.lint:lint", "Say what an API server would refuse in manifests."
            ),
            "simulate": CommandEntry(
                "stromboli.cli.simulate:simulate",
                "Run a workload in virtual time: what would happen?",
            ),
            "compare": CommandEntry(
                "stromboli.cli.compare:compare",
                "Put simulated runs side by side, tested over seeds.",
            ),
            "sweep": CommandEntry(
                "stromboli.cli.sweep:sweep", "Simulate a grid of policies, loads and seeds, on all cores."
            ),
            "workload": CommandEntry(
                "stromboli.cli.workload.workload_commands:workload",
                "Show a workload in numbers, or save it for others to repeat.",
            ),
        },
        "Plugins and actions": {
            "plugins": CommandEntry(
                "stromboli.cli.plugin_listing:plugins",
                "List the plugins that a policy may name, or show one in full.",
            ),
            "actions": CommandEntry(
                "stromboli.cli.plugin_listing:actions",
                "List the actions that a policy may name, or show one in full.",
            ),
            "plugin": CommandEntry(
                "stromboli.cli.plugin.plugin_commands:plugin", "Begin a plugin or an action of your own."
            ),
        },
        "Components of an installation": {
            "scheduler": CommandEntry(
                "stromboli.cli.scheduler:scheduler",
                "Schedule a real cluster in the place of Volcano's scheduler.",
                FREE_FORM,
            ),
            "controllers": CommandEntry(
                "stromboli.cli.controllers:controllers",
                "Look after jobs, PodGroups, queues and flows on a cluster.",
                FREE_FORM,
            ),
            "admission": CommandEntry(
                "stromboli.cli.admission:admission",
                "Complete and check what users submit, as a webhook server.",
                FREE_FORM,
            ),
        },
    }


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"stromboli {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: bool = typer.Option(
        False, "--version", callback=show_version, is_eager=True, help="Show the version."
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show where in a plugin or in Stromboli an error arose."
    ),
) -> None:
    """Volcano's batch scheduler in Python: plan, run and explain it, on a cluster or on this machine."""
    set_up_log(debug)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without our marks shows a question mark
