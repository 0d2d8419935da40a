"""Who submits what, and when: the manifests of `examples/demo`, one file after the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from stromboli.embedded.nodes.durations import parse_duration
from stromboli.embedded.nodes.node_annotations import RUN_TIME
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

NODES = "8x4cpu,16Gi"
Thing = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A file, the second at which it is submitted, what to say about it, and whose start it waits for."""

    at: float
    file: str
    says: str
    after: str = ""


CHAPTERS = (
    Chapter(
        0, "00-teams.yaml", "two teams, research and production: a queue of equal weight and a quota each"
    ),
    Chapter(0, "01-sweep.yaml", "research submits sweep: 12 pods of 2 CPU, at least 2 at a time"),
    Chapter(
        3,
        "02-nightly.yaml",
        "production submits nightly: 2 x 4 CPU; the cluster is full now",
        "research/sweep",
    ),
    Chapter(
        6,
        "03-train.yaml",
        "production submits train, a gang of 2 x 4 CPU, and deserves the room",
        "production/nightly",
    ),
    Chapter(
        12, "04-incident.yaml", "production submits incident, an urgent gang of 2 x 2 CPU", "production/train"
    ),
    Chapter(
        14, "05-heartbeat.yaml", "production submits heartbeat, which asks for nothing", "production/incident"
    ),
    Chapter(16, "06-model.yaml", "research submits model, a gang of 4 x 4 CPU: all four or none"),
    Chapter(18, "07-greedy.yaml", "research submits greedy, 2 x 48 CPU"),
)
_PLURALS = {"PriorityClass": "priorityclasses"}
_CLUSTER = ("Namespace", "Queue", "PriorityClass")


def folder() -> Path:
    """Where the manifests are: beside us where we are installed, in `examples` where we are developed."""
    here = Path(__file__).parent
    for place in (here / "manifests", here.parents[3] / "examples" / "demo"):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"{here / 'manifests'}: the manifests of the demo are missing")


def manifests(file: str, speed: float = 1.0) -> list[Thing]:
    """What is in a file, with pods that run so much faster."""
    things = [one for one in yaml.safe_load_all((folder() / file).read_text()) if one]
    for thing in things:
        marks = thing["metadata"].get("annotations", {})
        if RUN_TIME in marks and speed != 1.0:
            marks[RUN_TIME] = f"{parse_duration(marks[RUN_TIME]).low / speed:.3f}s"
    return things


async def submit(client: Client, things: list[Thing]) -> str:
    """Create all of them, as `kubectl create` would; why the first that was refused was, if one was."""
    for thing in things:
        meta = thing["metadata"]
        try:
            await client.create(_resource(thing), thing, meta.get("namespace", ""))
        except ApiError as error:
            return str(error)
    return ""


def _resource(thing: Thing) -> Resource:
    group, _, version = thing["apiVersion"].rpartition("/")
    kind = thing["kind"]
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    return Resource(group, version, plural, kind, kind not in _CLUSTER)
