"""Judge an object in one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.admission.rules.admission_table import CREATE, REVIEWS, Verdict, admit, judge
from stromboli.admission.rules.rule_context import Context, KnownQueues, Settings
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


def world(*queues: Queue, **settings: Any) -> Context:
    """A cluster with the default queue and these."""
    root = Queue(metadata=ObjectMeta(name="root"), status=QueueStatus(state="Open"))
    return Context(KnownQueues([root, queue("default"), *queues]), settings=Settings(**settings))


def submitted(kind: str, thing: dict[str, Any], context: Context | None = None) -> Verdict:
    """What becomes of an object that is created: completed, then judged."""
    return admit(GROUPS[kind], kind, CREATE, thing, None, context or world())


def texts(
    path: str, thing: Any, old: Any = None, operation: str = CREATE, context: Context | None = None
) -> list[str]:
    """What one endpoint says about an object."""
    report = judge(REVIEWS[path], thing, old, operation, context or world())
    return [problem.text.strip(" ;") for problem in report]


def fields(path: str, thing: Any, context: Context | None = None) -> list[str]:
    """Where one endpoint finds fault."""
    return [problem.field for problem in judge(REVIEWS[path], thing, None, CREATE, context or world())]


def job(*tasks: dict[str, Any], name: str = "train", **spec: Any) -> dict[str, Any]:
    """A job in the default queue."""
    return {"metadata": {"name": name}, "spec": {"queue": "default", "tasks": list(tasks), **spec}}


def task(
    name: str = "worker", replicas: int = 1, containers: Iterable[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    """A task of one container."""
    pods = list(containers) if containers is not None else [{"name": "main", "image": "busybox"}]
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": pods}}, **more}
