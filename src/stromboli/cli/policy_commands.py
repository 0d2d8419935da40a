"""`stromboli policy`: the policies that come along, and whether one of yours is right."""

from pathlib import Path

import typer

from stromboli.cli.cli_errors import print_error, print_warning
from stromboli.cli.command_group import Command, subcommands
from stromboli.cli.output import Format, write_as
from stromboli.cli.policy_options import PLUGINS_DIR, preset_names, preset_source, read_policy
from stromboli.extensions import load_catalog
from stromboli.policy.policy import PolicyError
from stromboli.policy.presets import PRESETS

policy = subcommands("Show the policies that come along, or check one of yours.")


@policy.command()
def show(
    name: str | None = typer.Argument(
        None,
        help="A preset, or `default` for the built-in policy; without it, all names.",
        autocompletion=preset_names,
    ),
) -> None:
    """Print a policy as a file that you could have written."""
    if name is None:
        typer.echo("\n".join(PRESETS))
    else:
        typer.echo(preset_source(name), nl=False)


@policy.command(cls=Command)
def check(
    file: str = typer.Argument(help="Volcano's scheduler configuration file, or - for standard input."),
    output: Format = typer.Option(Format.TABLE, "-o", "--output"),
    lenient: bool = typer.Option(
        False,
        "--lenient-policy/--no-lenient-policy",
        show_default=False,
        help="Only warn of what Volcano ignores in a policy, such as unknown keys.",
    ),
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """Say what is wrong with a policy, by file and line. The exit status is 1 if anything is."""
    errors: tuple[str, ...] = ()
    try:
        checked = read_policy(file, load_catalog(plugins_dir), lenient)
        warnings = checked.warnings
    except PolicyError as error:
        errors, warnings = error.errors, error.warnings
    if output is not Format.TABLE:
        write_as(output, {"schema": 1, "ok": not errors, "errors": list(errors), "warnings": list(warnings)})
    else:
        for message in errors:
            print_error(message)
        for message in warnings:
            print_warning(message)
        if not errors:
            typer.echo(f"{file}: right, {', '.join(checked.actions) or 'no actions'}")
    if errors:
        raise typer.Exit(1)
