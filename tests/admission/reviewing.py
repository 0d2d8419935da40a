"""Builds objects and reviews them in one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.admission.rules.admission_table import CREATE, REVIEWS, AdmissionResult, admit, validate
from stromboli.admission.rules.rule_context import Context, QueueIndex, Settings
from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.scheduling import Guarantee, Queue, QueueSpec, QueueStatus

GROUPS = {review.resource.kind: review.resource.group for review in REVIEWS.values()}


def queue(
    name: str, parent: str = "root", state: str = "Open", pods: int = 0, **amounts: dict[str, Any]
) -> Queue:
    """A queue that exists."""
    return Queue(
        metadata=ObjectMeta(name=name),
        spec=QueueSpec(
            parent=parent,
            capability=amounts.get("capability", {}),
            deserved=amounts.get("deserved", {}),
            guarantee=Guarantee(resource=amounts.get("guarantee", {})),
        ),
        status=QueueStatus(state=state, allocated={"pods": pods}),
    )


def cluster(*queues: Queue, **settings: Any) -> Context:
    """A cluster with the default queue and these."""
    root = Queue(metadata=ObjectMeta(name="root"), status=QueueStatus(state="Open"))
    return Context(QueueIndex([root, queue("default"), *queues]), settings=Settings(**settings))


def submitted(kind: str, content: dict[str, Any], context: Context | None = None) -> AdmissionResult:
    """The object with defaults, and its problems, when it is created."""
    return admit(GROUPS[kind], kind, content, context or cluster())


def texts(
    path: str, content: Any, old: Any = None, operation: str = CREATE, context: Context | None = None
) -> list[str]:
    """The messages of one endpoint about an object."""
    report = validate(REVIEWS[path], content, old, operation, context or cluster())
    return [str(problem).strip(" ;") for problem in report]


def fields(path: str, content: Any, context: Context | None = None) -> list[str]:
    """The fields that one endpoint finds problems with."""
    return [problem.field for problem in validate(REVIEWS[path], content, None, CREATE, context or cluster())]


def job(*tasks: dict[str, Any], name: str = "train", **spec: Any) -> dict[str, Any]:
    """A job in the default queue."""
    return {"metadata": {"name": name}, "spec": {"queue": "default", "tasks": list(tasks), **spec}}


def task(
    name: str = "worker", replicas: int = 1, containers: Iterable[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    """A task of one container."""
    pods = list(containers) if containers is not None else [{"name": "main", "image": "busybox"}]
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": pods}}, **more}
