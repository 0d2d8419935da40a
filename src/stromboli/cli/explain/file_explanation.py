"""The explanation of subjects in a cluster from files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

import typer

from stromboli.api.errors import printable
from stromboli.api.manifests.manifest_sources import rereadable
from stromboli.cli.cli_errors import Usage, print_error, print_warning
from stromboli.cli.explain.explain_command import NOT_FOUND, ExplainOptions
from stromboli.cli.policy_options import chosen_policy
from stromboli.cli.present_files import present_in_files
from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog
from stromboli.model.cluster import Cluster
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.explain.cluster_explanation import ClusterExplainer
from stromboli.simulator.explain.explanation_document import Explanation
from stromboli.simulator.explain.subject_lookup import Found, NotFound, UnknownType, look_up
from stromboli.simulator.what_if.submitted_objects import Refused

NotedSubject = tuple[Found, list[str]]


def explain_files(options: ExplainOptions) -> Explanation:
    """Load the files once, and explain every name."""
    catalog = load_catalog(options.plugins_dir)
    chosen = chosen_policy(options.policy, options.preset, catalog, options.lenient)
    with rereadable(options.files):
        present, choose = present_in_files(options.files, catalog, chosen, options.lenient, options.now)
        try:
            loaded = present.load()
        except Refused as error:
            raise Usage(str(error)) from None
        policy, _ = choose(loaded)
        for warning in (*loaded.warnings, *(f"left out: {problem}" for problem in loaded.problems)):
            print_warning(printable(warning))
        with lookups_as_exits():
            subjects = subjects_in(loaded.intake.cluster, options.names, options.target.namespace)
        explainer = explainer_of(loaded, policy, catalog, present.now, options.trials)
        return explained(explainer, subjects, present.name)


def explainer_of(
    loaded: Loaded, policy: Policy, catalog: Catalog, now: float, trials: bool
) -> ClusterExplainer:
    return ClusterExplainer(loaded, policy, catalog, now, with_remedies=trials, with_forecast=trials)


def explained(explainer: ClusterExplainer, subjects: Sequence[NotedSubject], cluster: str) -> Explanation:
    """Explain what names mean in a loaded cluster, with a note on others of the same name."""
    with redirect_stdout(sys.stderr):  # a plugin may print
        explanation = explainer.explain([found for found, _ in subjects], cluster)
    for subject, (_, notes) in zip(explanation.subjects, subjects, strict=True):
        subject.notes[:0] = notes
    return explanation


@contextmanager
def lookups_as_exits() -> Iterator[None]:
    """A name that means nothing ends the command with exit status 1, a type that is none is wrong usage."""
    try:
        yield
    except UnknownType as error:
        raise Usage(printable(str(error))) from None
    except NotFound as error:
        print_error(printable(str(error)))
        raise typer.Exit(NOT_FOUND) from None


def subjects_in(cluster: Cluster, names: list[str], namespace: str) -> list[NotedSubject]:
    """What the names mean, each with a note if other objects have the same name; `NotFound` if there is none."""
    subjects: list[NotedSubject] = []
    for name in names:
        found, others = look_up(cluster, name, namespace)
        subjects.append(
            (found, [f"Other objects with this name: {', '.join(others[:5])}."] if others else [])
        )
    return subjects
