"""Small worlds whose jobs are explained."""

from __future__ import annotations

from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.explain.cluster_explanation import ClusterExplainer
from stromboli.simulator.explain.explanation_document import (
    JobExplanation,
    NodeExplanation,
    QueueExplanation,
    Subject,
)
from stromboli.simulator.explain.subject_lookup import look_up
from stromboli.testing.policy_text import known_extensions, policy_of
from stromboli.testing.world import NOON, World

HOUR = {"stromboli.sh/time-limit": "1h"}


def explain(world: World, name: str, actions: str = "", plugins: str = "", policy: str = "") -> Subject:
    """What is said of a subject at noon, under a policy as `World.run` takes it."""
    catalog = known_extensions()
    loaded = Loaded(world.rehearsal.intake, 0.0, 0, [], {}, {})
    found, _ = look_up(world.cluster, name)
    explainer = ClusterExplainer(loaded, policy_of(catalog, actions, plugins, policy), catalog, NOON)
    return explainer.explain([found]).subjects[0]


def explain_job(
    world: World, name: str, actions: str = "", plugins: str = "", policy: str = ""
) -> JobExplanation:
    subject = explain(world, name, actions, plugins, policy)
    assert isinstance(subject, JobExplanation)
    return subject


def explain_queue(world: World, name: str) -> QueueExplanation:
    subject = explain(world, f"queue/{name}")
    assert isinstance(subject, QueueExplanation)
    return subject


def explain_node(world: World, name: str) -> NodeExplanation:
    subject = explain(world, f"node/{name}")
    assert isinstance(subject, NodeExplanation)
    return subject


def remedies(job: JobExplanation) -> dict[str, str]:
    """What would let a job start, by kind."""
    return {remedy.kind: remedy.text for remedy in job.remedies}


def holding(job: JobExplanation) -> str:
    """The gate that holds a job."""
    return next((gate.gate for gate in job.gates if gate.state == "holds"), "")
