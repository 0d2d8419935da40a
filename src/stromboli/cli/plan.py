"""`stromboli plan`: what would a cycle decide for this cluster?"""

import math
import sys
from contextlib import redirect_stdout
from datetime import MAXYEAR, UTC, datetime
from pathlib import Path
from typing import NamedTuple

import typer

from stromboli.api.manifests.manifest_sources import rereadable
from stromboli.cli.cli_errors import Usage, is_expected, print_error
from stromboli.cli.output import PlanFormat, console, write_as
from stromboli.cli.plan_inputs import Input, inputs_of, with_progress
from stromboli.cli.plan_text import print_plan
from stromboli.cli.policy_options import (
    LENIENT,
    PLUGINS_DIR,
    POLICY,
    PRESET,
    case_policy,
    chosen_policy,
    policy_beside,
)
from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import PERIOD
from stromboli.simulator.cluster_loading import load
from stromboli.simulator.cycle_plan import Plan, document, make_plan

CASE_CLOCK = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()


class PlanOptions(NamedTuple):
    """The options of the command."""

    catalog: Catalog
    policy: Policy | None
    lenient: bool
    keep_going: bool
    now: float | None
    cycles: int
    period: float
    output: PlanFormat


def plan(
    paths: list[str] | None = typer.Argument(
        None, metavar="[PATH]...", show_default=False, help="More paths, as after -f."
    ),
    files: list[str] = typer.Option(
        [],
        "-f",
        "--filename",
        metavar="PATH",
        help="A manifest file, a folder, a case file, or - for standard input; more may follow.",
    ),
    policy: Path | None = POLICY,
    preset: str | None = PRESET,
    cycles: int = typer.Option(
        1, "--cycles", min=1, help="Cycles to run; in between, what was decided comes true."
    ),
    output: PlanFormat = typer.Option(PlanFormat.TABLE, "-o", "--output", help="jsonl: one line per case."),
    keep_going: bool = typer.Option(
        False, "--keep-going", help="Leave out what cannot be used, and list it."
    ),
    lenient: bool = LENIENT,
    now: str | None = typer.Option(
        None, "--now", metavar="TIME", help="The clock, such as 2026-11-01T12:00:00Z."
    ),
    period: float = typer.Option(
        PERIOD, "--period", min=0, metavar="SECONDS", help="Time from cycle to cycle."
    ),
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """What would a cycle decide for this cluster? Nothing outside this process is touched.

    Jobs, JobFlows and Kubernetes' workloads among the files are expanded as controllers would:
    `stromboli plan -f cluster.yaml job.yaml` says whether the job would start.
    """
    if not math.isfinite(period):
        raise Usage(f"--period {period:g}: no number of seconds")
    catalog = load_catalog(plugins_dir)
    options = PlanOptions(
        catalog,
        chosen_policy(policy, preset, catalog, lenient),
        lenient,
        keep_going,
        None if now is None else clock_of(now),
        cycles,
        period,
        output,
    )
    all_paths = [*files, *(paths or [])]
    if not all_paths:
        raise Usage("nothing to plan: give a file or a folder with -f")
    with rereadable(all_paths):
        inputs = inputs_of(all_paths, keep_going)
        if output is PlanFormat.JSON and len(inputs) > 1:
            raise Usage(
                f"these are {len(inputs)} clusters, and JSON holds one: take -o jsonl, a line for each"
            )
        many = len(inputs) > 1 or output is PlanFormat.JSONL
        failed = _plan_all(inputs, options) if many else _show(_plan_one(inputs[0], options), output)
    if failed:
        raise typer.Exit(1)


def clock_of(text: str) -> float:
    """Seconds since 1970 from a time as Kubernetes writes it (UTC unless it has a zone), or from seconds."""
    try:
        time = datetime.fromtimestamp(float(text), UTC) if _is_number(text) else datetime.fromisoformat(text)
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        if time.year < MAXYEAR:  # what is made in a plan is younger still
            return time.timestamp()
        raise OverflowError
    except (ValueError, OverflowError):
        raise Usage(f"--now {text}: no time; write it as 2026-11-01T12:00:00Z") from None


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _plan_one(source: Input, options: PlanOptions) -> Plan:
    now = options.now
    if now is None:
        now = CASE_CLOCK if source.is_case else datetime.now(UTC).timestamp()
    loaded = load(source.open, options.keep_going, with_progress, by_hand=not source.is_case, now=now)
    policy = policy_beside(loaded, options.policy, options.catalog, options.lenient)
    if policy is None:
        policy = case_policy(source.config, options.catalog, source.name, options.lenient)
    name = source.name if source.is_case else ""
    with redirect_stdout(
        sys.stdout if options.output is PlanFormat.TABLE else sys.stderr
    ):  # a plugin may print
        return make_plan(loaded, policy, options.catalog, now, options.cycles, options.period, name)


def _plan_all(inputs: list[Input], options: PlanOptions) -> bool:
    """Plan one after the other, printing errors in their place; whether there were any."""
    failed, output = False, options.output
    for source in inputs:
        try:
            plan = _plan_one(source, options)
            if plan.lost and output is PlanFormat.JSONL:
                failed = True
                write_as(output, {"name": source.name, "error": f"the cycle is lost: {plan.lost}"})
            else:
                failed |= _show(plan, output, source.name)
        except Exception as error:
            if not is_expected(error):
                raise
            failed = True
            if output is PlanFormat.JSONL:
                write_as(output, {"name": source.name, "error": str(error)})
            else:
                print_error(f"{source.name}: {error}")
    return failed


def _show(plan: Plan, output: PlanFormat, title: str = "") -> bool:
    """Print a plan; whether a plugin failed in it."""
    if output is PlanFormat.TABLE:
        print_plan(console(), plan, title)
    else:
        if output is PlanFormat.YAML and title:
            typer.echo("---")
        write_as(output, {"name": title, **document(plan)} if title else document(plan))
    return plan.failed
