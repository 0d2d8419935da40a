"""What manifests ask of the placement of their pods that no plugin of ours honours: told without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from stromboli.api.resources.quantity import QuantityError
from stromboli.api.schemas.schema_problems import Problem, sentence
from stromboli.api.types.pod import PodSpec
from stromboli.api.types.scheduling import NetworkTopology, QueueSpec
from stromboli.model.requirements.group_demands import annotation_demands, queue_demands, topology_demand
from stromboli.model.requirements.placement_requirement import Demand
from stromboli.model.requirements.pod_demands import metadata_demands, spec_demands

T = TypeVar("T")


class Part(NamedTuple):
    """A mapping somewhere in a manifest, with its path."""

    path: str
    content: Mapping[str, Any]

    def value(self, key: str) -> Mapping[str, Any]:
        value = self.content.get(key)
        return value if isinstance(value, Mapping) else {}


def ignored_demands(
    content: Mapping[str, Any], of_volcano: bool, schedulers: Iterable[str]
) -> Iterator[Problem]:
    """What has no effect, and what will keep pods waiting; of pods, those that our schedulers place."""
    for demand in dict.fromkeys(_demands(content, of_volcano, frozenset(schedulers))):
        requirement = demand.requirement
        if not requirement.plugin and not requirement.depends_on_cluster:
            effect = "its pods will wait" if requirement.hard else "it has no effect"
            text = f"{demand.asks}: no plugin that comes with stromboli honours it, so {effect}"
            yield sentence(text, demand.field, requirement.remedy)


def _demands(content: Mapping[str, Any], of_volcano: bool, schedulers: frozenset[str]) -> Iterator[Demand]:
    """What a manifest and all that is in it ask for, however deep."""
    for part in parts_of(content):
        if of_volcano:
            yield from _of_volcano(part)
        yield from _of_pods(part, of_volcano, schedulers)


def parts_of(content: Mapping[str, Any]) -> Iterator[Part]:
    """A manifest and all mappings in it, however deep."""
    parts = [Part("", content)]
    while parts:
        part = parts.pop()
        yield part
        parts += reversed([Part(path, inner) for path, inner in _inner(part)])


def _of_volcano(part: Part) -> Iterator[Demand]:
    topology = converted(part.content.get("networkTopology"), NetworkTopology)
    if topology is not None:
        yield topology_demand(joined(part.path, "networkTopology"), topology)
    if part.content.get("kind") == "Queue":
        yield from queue_demands(converted(part.content.get("spec"), QueueSpec) or QueueSpec())
    annotations = part.value("metadata").get("annotations")
    for demand in annotation_demands(texts(annotations)):
        yield demand._replace(field=joined(part.path, demand.field))


def _of_pods(part: Part, of_volcano: bool, schedulers: frozenset[str]) -> Iterator[Demand]:
    """A pod, or the template of one."""
    spec = converted(part.content.get("spec"), PodSpec) if "containers" in part.value("spec") else None
    if spec is not None and (spec.scheduler_name in schedulers or (of_volcano and not spec.scheduler_name)):
        annotations = texts(part.value("metadata").get("annotations"))
        yield from _of_pod(part.path, spec, annotations)


def _of_pod(path: str, spec: PodSpec, annotations: Mapping[str, str]) -> Iterator[Demand]:
    try:
        for demand in (*spec_demands(spec), *metadata_demands(spec, {}, annotations)):
            yield demand._replace(field=joined(path, demand.field))
    except QuantityError:
        return  # reported as what it is


def _inner(part: Part) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in part.content.items():
        if isinstance(value, Mapping):
            yield joined(part.path, key), value
        elif isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(item, Mapping):
                    yield f"{joined(part.path, key)}[{number}]", item


def joined(path: str, field: str) -> str:
    """The path of a field of a part."""
    return f"{path}.{field}" if path and not field.startswith("annotation") else f"{path} {field}".strip()


def converted(value: Any, kind: type[T]) -> T | None:
    """A part of a manifest as its type; none if it is absent or not sound, which is reported as what it is."""
    if not isinstance(value, Mapping):
        return None
    try:
        return msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, ValueError):
        return None


def texts(value: Any) -> Mapping[str, str]:
    """The entries of a mapping that are texts."""
    if not isinstance(value, Mapping):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}
