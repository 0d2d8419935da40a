"""Manifests of workloads as users write them."""

from typing import Any

Manifest = dict[str, Any]


def template(cpu: int = 1, **spec: Any) -> Manifest:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container], **spec}}


def job(name: str = "train", tasks: list[Manifest] | None = None, cpu: int = 1, **spec: Any) -> Manifest:
    tasks = tasks or [{"name": "worker", "replicas": 3, "template": template(cpu)}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": tasks, **spec},
    }


def workload(kind: str, name: str = "web", version: str = "apps/v1", **spec: Any) -> Manifest:
    spec.setdefault("template", template(schedulerName="volcano"))
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def flow_objects() -> list[Manifest]:
    spec = job()["spec"]
    steps = [
        {"name": "a"},
        {"name": "b", "dependsOn": {"targets": ["a"]}},
        {"name": "c", "dependsOn": {"targets": ["a", "b"]}},
    ]
    return [
        *(flow("JobTemplate", name, spec) for name in "abc"),
        flow("JobFlow", "night", {"flows": steps, "jobRetainPolicy": "retain"}),
    ]


def flow(kind: str, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
