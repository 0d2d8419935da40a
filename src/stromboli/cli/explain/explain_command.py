"""The `stromboli explain` command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.on_cluster import (
    CLUSTER_PARAMETERS,
    ClusterTarget,
    complete_namespaces,
)
from stromboli.cli.output import Format
from stromboli.cli.policy_options import LENIENT, PLUGINS_DIR, POLICY, PRESET

if TYPE_CHECKING:
    from stromboli.simulator.explain.explanation_document import Explanation

NOT_FOUND = 1
"""Exit status if an object is not found or the API server denies access."""
COMPLETED = {
    "pod": "PODS",
    "po": "PODS",
    "queue": "QUEUES",
    "node": "NODES",
    "podgroup": "POD_GROUPS",
    "pg": "POD_GROUPS",
}
"""What is completed after a type; else jobs are."""


class ExplainOptions(NamedTuple):
    """The options of the command."""

    names: list[str]
    files: list[str]
    target: ClusterTarget
    policy: Path | None
    preset: str | None
    lenient: bool
    plugins_dir: Path | None
    now: str | None
    trials: bool
    leader: str


def complete_subjects(ctx: Any, incomplete: str) -> list[str]:
    """Completions of names: of jobs, or of the type that is written before a slash."""
    from stromboli.cli.cluster import cluster_kinds
    from stromboli.cli.cluster.name_completion import names_in_cluster

    kind, slash, begun = incomplete.rpartition("/")
    resource = getattr(cluster_kinds, COMPLETED.get(kind, "JOBS"))
    return [f"{kind}{slash}{name}" for name in names_in_cluster(ctx, resource, begun)]


_DATA, _KUBECONFIG, _CONTEXT = (parameter.default for parameter in CLUSTER_PARAMETERS)


def explain(
    names: list[str] = typer.Argument(
        ...,
        metavar="[TYPE/]NAME...",
        show_default=False,
        help="A job, a PodGroup, a workload that owns pods, a pod, a queue or a node.",
        autocompletion=complete_subjects,
    ),
    files: list[str] = typer.Option(
        [],
        "-f",
        "--filename",
        metavar="PATH",
        help="Read the cluster from a file, a directory or a dump. Can be repeated.",
    ),
    namespace: str = typer.Option(
        "",
        "--namespace",
        "-n",
        metavar="NAME",
        show_default=False,
        help="Namespace. Default: that of the context; with -f, all namespaces.",
        autocompletion=complete_namespaces,
    ),
    output: Format = typer.Option(Format.TABLE, "-o", "--output", help="Output format."),
    policy: Path | None = POLICY,
    preset: str | None = PRESET,
    trials: bool = typer.Option(
        True, "--trials/--no-trials", help="Try remedies and forecast when the job starts."
    ),
    now: str | None = typer.Option(
        None, "--now", metavar="TIME", help="Current time with -f, such as 2026-11-01T12:00:00Z."
    ),
    leader: str = typer.Option(
        "", "--leader", metavar="URL", show_default=False, help="Address of the leading scheduler."
    ),
    data: Path | None = _DATA,
    kubeconfig: str = _KUBECONFIG,
    context: str = _CONTEXT,
    lenient: bool = LENIENT,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """Explain why a job waits, what would let it start and when; also explains pods, queues and nodes.

    A plain name is looked up as a job or workload, then as a PodGroup, a pod, a queue and a node; job/NAME, pod/NAME,
    queue/NAME and so on select a type. Nothing is changed: remedies are tried on a copy in memory.
    Exit status: 0 explained, 1 not found or access denied, 2 invalid usage.
    """
    target = ClusterTarget(data, kubeconfig, context, namespace)
    options = ExplainOptions(names, files, target, policy, preset, lenient, plugins_dir, now, trials, leader)
    _check(options)
    if files:
        from stromboli.cli.explain.file_explanation import explain_files

        _show(explain_files(options), output)
    else:
        from stromboli.cli.explain.live_explanation import explain_live

        explain_live(options, lambda explanation: _show(explanation, output))


def _check(options: ExplainOptions) -> None:
    target = options.target
    live = {
        "--kubeconfig": target.kubeconfig,
        "--context": target.context,
        "--data": target.data,
        "--leader": options.leader,
    }
    if options.files and (named := [name for name, value in live.items() if value]):
        raise Usage(f"{', '.join(named)} cannot be combined with -f")
    if options.now is not None and not options.files:
        raise Usage("--now requires -f")


def _show(explanation: Explanation, output: Format) -> None:
    if output is Format.TABLE:
        from stromboli.cli.explain.explanation_text import print_explanation
        from stromboli.cli.output import console

        print_explanation(console(), explanation)
    else:
        from stromboli.cli.output import write_as
        from stromboli.simulator.explain.explanation_document import as_builtins

        write_as(output, as_builtins(explanation))
