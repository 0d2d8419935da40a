"""Who submits what, and when: the manifests of `examples/demo`, one file after the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stromboli.api.durations import parse_duration
from stromboli.api.manifests.yaml_reader import documents
from stromboli.embedded.nodes.node_annotations import RUN_TIME
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import resource_of
from stromboli.kube.request import ApiError

NODES = "8x4cpu,16Gi"
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A file, the second at which it is submitted, the line about it, and the job that has to run before."""

    at: float
    file: str
    line: str
    after: str = ""


CHAPTERS = (
    Chapter(0, "00-teams.yaml", "two teams with equal rights, research and production, get a queue each"),
    Chapter(0, "01-sweep.yaml", "research submits sweep: 12 pods of 2 CPUs, at least 2 at a time"),
    Chapter(
        3,
        "02-nightly.yaml",
        "production submits nightly: 2 pods of 4 CPUs; now the cluster is full",
        "research/sweep",
    ),
    Chapter(
        6,
        "03-train.yaml",
        "production submits train: 2 pods of 4 CPUs, both or none (a gang)",
        "production/nightly",
    ),
    Chapter(
        12,
        "04-incident.yaml",
        "production submits incident: 2 pods of 2 CPUs, both or none, and urgent",
        "production/train",
    ),
    Chapter(
        14,
        "05-heartbeat.yaml",
        "production submits heartbeat: 1 pod that asks for no CPU at all",
        "production/incident",
    ),
    Chapter(16, "06-model.yaml", "research submits model: 4 pods of 4 CPUs, all or none"),
    Chapter(18, "07-greedy.yaml", "research submits greedy: 2 pods of 48 CPUs, more than its quota"),
)


def folder() -> Path:
    """The folder of the manifests: in the package if installed, else `examples/demo` of the repository."""
    here = Path(__file__).parent
    for candidate in (here / "manifests", here.parents[3] / "examples" / "demo"):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{here / 'manifests'}: the manifests of the demo are missing")


def manifests(file: str, speed: float = 1.0) -> list[Manifest]:
    """The objects of a file; their pods run `speed` times as fast."""
    objects = list(documents((folder() / file).read_text()))
    for content in objects:
        annotations = content["metadata"].get("annotations", {})
        if RUN_TIME in annotations and speed != 1.0:
            annotations[RUN_TIME] = f"{parse_duration(annotations[RUN_TIME]).low / speed:.3f}s"
    return objects


async def submit(client: Client, objects: list[Manifest]) -> str:
    """Create all of them, as `kubectl create` would; the message of the first refusal, if there is one."""
    for content in objects:
        try:
            await client.create(resource_of(content), content, content["metadata"].get("namespace", ""))
        except ApiError as error:
            return str(error)
    return ""
