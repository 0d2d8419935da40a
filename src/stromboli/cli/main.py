"""The `stromboli` command."""

import typer

from stromboli import __version__

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"stromboli {__version__}")
        raise typer.Exit


@app.callback()
def main(version: bool = typer.Option(False, "--version", callback=show_version, is_eager=True)) -> None:
    """Volcano's batch scheduler, in Python."""
