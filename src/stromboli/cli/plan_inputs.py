"""The inputs of a plan: one cluster in manifests, or case files that are one cluster each."""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from stromboli.api.decoding import PartialObject, Raw
from stromboli.api.errors import Unreadable
from stromboli.api.manifests.case_files import is_case, read_case
from stromboli.api.manifests.manifest_reader import Item, Manifests, open_paths
from stromboli.api.manifests.manifest_sources import find_files, read_sources
from stromboli.api.manifests.yaml_lines import MAX_BYTES

PROGRESS_FROM = 5_000
"""The number of objects from which on loading shows a progress bar."""

_NODE = re.compile(rb"""kind['"]?\s*:\s*['"]?Node\b""")
_WORK = re.compile(rb"""kind['"]?\s*:\s*['"]?(Pod|PodGroup|Job)\b""")


class Input:
    """One cluster to plan: its name and, once its files were read, the policy it brings along."""

    is_case = False

    def __init__(self, name: str, paths: list[str], keep_going: bool) -> None:
        self.name = name
        self.config: str | None = None
        self._paths = paths
        self._keep_going = keep_going

    def open(self) -> Manifests:
        """Read the files; objects are decoded while iterating."""
        return open_paths(self._paths, self._keep_going)


class CaseInput(Input):
    """A case file."""

    is_case = True

    def open(self) -> Manifests:
        case = read_case(self._paths[0], self._keep_going)
        self.name, self.config = case.name, case.config
        return case.objects


def inputs_of(paths: list[str], keep_going: bool) -> list[Input]:
    """The cases among the paths, and the clusters of a folder of clusters, one by one; all else is one cluster."""
    inputs: list[Input] = []
    plain: list[str] = []
    for path in paths:
        files = _files(path)
        if any(map(is_case, files)):
            inputs += [CaseInput(_case_name(path, file), [file], keep_going) for file in files]
        elif clusters := _clusters(files):
            shared = [file for file in files if file not in clusters]
            inputs += [Input(_case_name(path, file), [file, *shared], keep_going) for file in clusters]
        else:
            plain.append(path)
    if plain:
        inputs.append(Input(", ".join(plain), plain, keep_going))
    return inputs


def _files(path: str) -> list[str]:
    try:
        return find_files(path)
    except Unreadable:
        return []  # the error is raised when it is opened


def _clusters(files: list[str]) -> list[str]:
    """The files that are a cluster each, nodes and work, where these nodes have the same names; else none."""
    nodes: Counter[str] = Counter()
    with_nodes = [file for file in files if len(files) > 1 and _is_cluster(file)]
    if len(with_nodes) < 2:
        return []
    for file in with_nodes:
        try:
            nodes.update({name for source in read_sources(file) if (name := _node_name(source.raw))})
        except (Unreadable, msgspec.DecodeError):
            return []  # told when it is opened
    return with_nodes if any(count > 1 for count in nodes.values()) else []


def _is_cluster(file: str) -> bool:
    """Whether a file of a size that people write seems to define nodes and something to run."""
    try:
        with open(file, "rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError:
        return False
    return len(text) <= MAX_BYTES and all(kind.search(text) for kind in (_NODE, _WORK))


def _node_name(raw: Raw) -> str:
    partial = msgspec.json.decode(raw, type=PartialObject)
    meta = partial.metadata if partial.kind == "Node" else None
    name = meta.get("name") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def _case_name(path: str, file: str) -> str:
    """What a case is called that cannot be read: its path below the folder that was given."""
    relative = Path(file).relative_to(path) if file != path else Path(Path(file).name)
    return relative.with_suffix("").as_posix()


def with_progress(items: Iterable[Item], count: int) -> Iterable[Item]:
    """Show a progress bar for a long load on a terminal."""
    if count < PROGRESS_FROM or not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, "Loading", count, console=Console(stderr=True), transient=True)
