"""`--submit`: when a job would start on a cluster, whom it would delay and who would be evicted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

import typer

from stromboli.api.manifests.manifest_sources import rereadable
from stromboli.cli.cli_errors import INTERRUPTED, Usage
from stromboli.cli.output import StatusFormat, console, write_as
from stromboli.cli.policy_options import chosen_policy
from stromboli.cli.present_files import present_in_files
from stromboli.cli.simulate.form_settings import assumed_run_time
from stromboli.cli.simulate.moment_text import span_text
from stromboli.cli.simulate.simulate_options import SimulateOptions
from stromboli.cli.simulate.simulation_policies import with_backfill
from stromboli.cli.status.cluster_policy import PolicyInForce
from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.what_if.answer_document import answer_document
from stromboli.simulator.what_if.future_run import Progress
from stromboli.simulator.what_if.present_cluster import PresentCluster
from stromboli.simulator.what_if.submitted_objects import Refused, read_submitted
from stromboli.simulator.what_if.what_if_answer import Answer, ChoosePolicy, WhatIf

if TYPE_CHECKING:
    from rich.status import Status

DOES_NOT_START = 3
"""Exit status if something that is submitted would not start."""
FAILED = 1
"""Exit status if a plugin failed, so that the answer is not what the policy says."""


def run_submit(options: SimulateOptions) -> None:
    """Answer for what is submitted to a dump, to manifests or to the live cluster."""
    _check(options)
    assumed = assumed_run_time(options)
    catalog = load_catalog(options.plugins_dir)
    chosen = chosen_policy(options.policy, options.preset, catalog, options.lenient)
    paths = options.files
    with rereadable([*paths, *options.submit]), _progress(options.quiet) as progress:
        try:
            submitted = read_submitted(options.submit)
            present, choose = _cluster(options, paths, catalog, chosen)
            with redirect_stdout(sys.stderr):  # a plugin may print
                answer = WhatIf(present, submitted, choose, catalog, assumed, progress).answer()
        except Refused as error:
            raise Usage(str(error)) from None
    _show(answer, options.output)
    if status := exit_status(answer):
        raise typer.Exit(status)


def exit_status(answer: Answer) -> int:
    """0 if all that is submitted would start."""
    if answer.partial:
        return INTERRUPTED
    if answer.failures:
        return FAILED
    return 0 if answer.starts else DOES_NOT_START


def _show(answer: Answer, output: StatusFormat) -> None:
    if output in (StatusFormat.TABLE, StatusFormat.WIDE):
        from stromboli.cli.simulate.what_if_text import AnswerText

        AnswerText(console(), answer, wide=output is StatusFormat.WIDE).print()
    else:
        write_as(output, answer_document(answer))


# -- what was asked


def _check(options: SimulateOptions) -> None:
    """A cluster comes from one place."""
    live = {"--kubeconfig": options.kubeconfig, "--context": options.context, "--data": options.data}
    if options.files and (named := [name for name, value in live.items() if value]):
        raise Usage(f"{', '.join(named)}: a cluster comes from files or is live; give one of them")
    if options.now is not None and not options.files:
        raise Usage("--now: a live cluster has its own clock; give it with -f")


def _cluster(
    options: SimulateOptions, paths: list[str], catalog: Catalog, chosen: Policy | None
) -> tuple[PresentCluster, ChoosePolicy]:
    """The cluster, and how its policy is chosen once it is loaded."""
    if not paths:
        from stromboli.cli.simulate.live_cluster import read_live_cluster

        live = read_live_cluster(options.data, options.kubeconfig, options.context, catalog)
        in_force = live.policy if chosen is None else PolicyInForce(chosen, chosen.source_name)
        return live.present, lambda _: (_with_backfill(in_force.policy, options, catalog), in_force.origin)
    present, choose_in_files = present_in_files(paths, catalog, chosen, options.lenient, options.now)

    def choose(loaded: Loaded) -> tuple[Policy, str]:
        policy, origin = choose_in_files(loaded)
        return _with_backfill(policy, options, catalog), origin

    return present, choose


def _with_backfill(policy: Policy, options: SimulateOptions, catalog: Catalog) -> Policy:
    """The policy with the backfill that is asked for, if any is."""
    if options.backfill is None:
        return policy
    return with_backfill(policy, options.backfill, catalog, options.lenient)


# -- progress


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], Progress | None]]:
    """Which run it is and how far it has come, on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda title: None
        return
    from rich.console import Console

    with Console(stderr=True).status("Reading the cluster") as status:
        yield lambda title: _Reporter(status, title)


class _Reporter:
    def __init__(self, status: Status, title: str) -> None:
        self._status = status
        self._title = title

    def __call__(self, seconds: float, waiting: int) -> None:
        self._status.update(f"{self._title}: {span_text(seconds)} from now, {waiting} jobs wait")
