"""`stromboli lint`: what is wrong with manifests, without a cluster."""

import typer
from rich.text import Text

from stromboli.cli.cli_errors import Usage
from stromboli.cli.output import Format, console, write_as

PATHS = typer.Argument(None, metavar="[PATH]...", show_default=False, help="More paths, as after -f.")
FILES = typer.Option(
    [],
    "-f",
    "--filename",
    metavar="PATH",
    help="A manifest file, a folder, or - for standard input; repeatable.",
)
FORMAT = typer.Option(Format.TABLE, "-o", "--output", help="How the problems are shown.")
SCHEDULERS = typer.Option(["volcano"], "--scheduler-name", help="Names of your schedulers; repeatable.")
PLUGINS = typer.Option([], "--job-plugin", help="Job plugins of your own; repeatable.")

MAX_KINDS = 10
"""How many of the kinds that are passed over are named."""


def lint(
    paths: list[str] | None = PATHS,
    files: list[str] = FILES,
    output: Format = FORMAT,
    scheduler_name: list[str] = SCHEDULERS,
    job_plugin: list[str] = PLUGINS,
) -> None:
    """Say what an API server and admission would refuse in manifests, without either.

    Warnings are what has no effect, or another one than it seems: what no plugin of ours honours, and slips.

    Exit status 0 if there are no problems, 1 if there are, 2 for a wrong command line.
    """
    from stromboli.admission.rules.rule_context import JOB_PLUGINS, Settings
    from stromboli.cli.manifest_lint import lint_paths

    settings = Settings(scheduler_names=tuple(scheduler_name), job_plugins=(*JOB_PLUGINS, *job_plugin))
    if not (all_paths := [*files, *(paths or [])]):
        raise Usage("nothing to check: give a file or a folder, or - for standard input")
    result = lint_paths(all_paths, settings)
    if output is not Format.TABLE:
        document = {
            "checked": result.checked,
            "passedOver": result.passed_over,
            "problems": [finding.as_json() for finding in result.findings],
        }
        warnings = [warning.as_json() for warning in result.warnings]
        write_as(output, {**document, "warnings": warnings} if warnings else document)
    else:
        screen = console()
        for finding in result.findings:
            screen.print(Text(str(finding)), soft_wrap=True)
        for warning in result.warnings:
            screen.print(Text(f"warning: {warning}"), soft_wrap=True)
        noun = "object" if result.checked == 1 else "objects"
        count = len(result.findings)
        if result.unknown:
            kinds = [f"{number} {kind}" for kind, number in result.unknown.most_common(MAX_KINDS)]
            kinds += ["others"] if len(result.unknown) > MAX_KINDS else []
            screen.print(Text(f"not known here, and passed over: {', '.join(kinds)}"), soft_wrap=True)
        over = f" {result.passed_over} passed over," if result.passed_over else ""
        screen.print(f"{result.checked} {noun} checked,{over} {count} problem{'' if count == 1 else 's'}")
    raise typer.Exit(1 if result.findings else 0)
