"""The story: which manifests of `examples/demo` are submitted, when, and the text about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stromboli.api.durations import parse_duration
from stromboli.api.manifests.yaml_reader import documents
from stromboli.embedded.nodes.node_annotations import RUN_TIME
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import resource_of

NODES = "8x32cpu,256Gi,4gpu"
DURATION = 45
"""Seconds that the story takes, about, at speed 1."""
START_UP = 5
"""Seconds that the demo takes in addition, whatever the speed."""
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A file, the second at which it is submitted at the earliest, the text about it, and what must happen before."""

    at: float
    file: str
    text: str
    after: str = ""
    """The job of which all pods must have run at once."""
    restarted: str = ""
    """The job that must have lost pods and restarted them."""


CHAPTERS = (
    Chapter(
        0,
        "00-teams.yaml",
        """\
Two teams, research and production, share 8 machines with 4 GPUs each.
Each team owns half of the GPUs. The teams submit jobs. A job consists of
pods: copies of one program, each with its own GPUs. The scheduler decides
when and where they run. Watch four of its rules at work:
  1. A team may borrow GPUs that the other team leaves idle.
  2. Borrowed GPUs go back when their owner needs them: the action reclaim.
  3. Urgent jobs come first: the action preempt.
  4. A gang (a job whose pods start together or not at all) never starts
     with only a part of its pods.""",
    ),
    Chapter(
        8,
        "01-sweep.yaml",
        "1. Borrowing: research submits sweep, 12 pods with 2 GPUs each. That is more than its own "
        "half, but the other GPUs are idle.",
    ),
    Chapter(
        12,
        "02-nightly.yaml",
        "1. Borrowing: production submits nightly, 2 pods with 4 GPUs each. They take the last idle GPUs.",
        "research/sweep",
    ),
    Chapter(
        16,
        "03-train.yaml",
        "2. Giving back: production submits train, a gang of 2 pods with 4 GPUs each. No GPU is idle, "
        "but production uses only 8 of its own 16, so research must return what it borrowed.",
        "production/nightly",
    ),
    Chapter(
        21,
        "04-incident.yaml",
        "3. Urgent first: production submits incident, an urgent gang of 2 pods with 2 GPUs each. "
        "Production uses its whole half, so a less urgent job of its own must make way.",
        "production/train",
    ),
    Chapter(
        27,
        "05-model.yaml",
        "4. All or nothing: research submits model, a gang of 4 pods with 4 GPUs each. It needs 16 idle "
        "GPUs at once. With fewer it waits, and takes none of them.",
        "production/incident",
        # The restarted pods leave fewer than 16 GPUs idle; the moment before, model could start at once.
        restarted="research/sweep",
    ),
)


def directory() -> Path:
    """Return where the manifests are: in the package if installed, else in `examples/demo` of the repository."""
    here = Path(__file__).parent
    for candidate in (here / "manifests", here.parents[3] / "examples" / "demo"):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"{here / 'manifests'}: the manifests of the demo are missing")


def manifests(file: str, speed: float = 1.0) -> list[Manifest]:
    """Read the objects of a file; the pods of its jobs run `speed` times as fast."""
    objects = list(documents((directory() / file).read_text()))
    for content in objects:
        for task in content.get("spec", {}).get("tasks", ()):
            annotations = task["template"]["metadata"]["annotations"]
            annotations[RUN_TIME] = f"{parse_duration(annotations[RUN_TIME]).low / speed:.3f}s"
    return objects


async def submit(client: Client, objects: list[Manifest]) -> None:
    """Create the objects, as `kubectl create` would."""
    for content in objects:
        await client.create(resource_of(content), content, content["metadata"].get("namespace", ""))
