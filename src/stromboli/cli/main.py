"""The `stromboli` command."""

import io
import sys

import typer

from stromboli import __version__
from stromboli.cli import admission, controllers, demo, lint, plan, plugin_listing, scheduler, up
from stromboli.cli.cli_errors import Commands, set_up_log
from stromboli.cli.daemon_command import FREE_FORM
from stromboli.cli.policy_commands import policy

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan")(plan.plan)
app.add_typer(policy, name="policy")
app.command("plugins")(plugin_listing.plugins)
app.command("actions")(plugin_listing.actions)
app.command("lint")(lint.lint)
app.command("demo")(demo.demo)
app.command("up")(up.up)
app.command("down")(up.down)
app.command("status")(up.status)
app.add_typer(up.node, name="node")
app.command("scheduler", context_settings=FREE_FORM)(scheduler.scheduler)
app.command("controllers", context_settings=FREE_FORM)(controllers.controllers)
app.command("admission", context_settings=FREE_FORM)(admission.admission)


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
