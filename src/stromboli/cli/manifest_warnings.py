"""What manifests say that is allowed and cannot be meant: it has no effect, or another one than it seems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stromboli.api.card_names import VGPU_CORES
from stromboli.api.device_messages import DEVICE_CLASS_PREFIX
from stromboli.api.errors import quoted
from stromboli.api.manifests.object_defaults import fill_requests_from_limits
from stromboli.api.resources.qos import GUARANTEED, qos_class
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.schemas.schema_problems import Problem, sentence
from stromboli.api.types.pod import PodSpec
from stromboli.cli.manifest_demands import Part, converted, joined, parts_of, texts
from stromboli.model.cards.card import ALL_CORES
from stromboli.model.devices.claim_use import COUNT_PREFIX, class_of
from stromboli.plugins.task_topology import BadRoleList, read_affinities
from stromboli.policy.policy_problems import nearest

_AMOUNTS = ("spec.capability", "spec.deserved", "spec.guarantee.resource")


def odd_requests(content: Mapping[str, Any], of_volcano: bool) -> Iterator[Problem]:
    """Warnings about a manifest and all that is in it."""
    for part in parts_of(content):
        if of_volcano:
            yield from _of_job(part)
        yield from _of_containers(part)
    if of_volcano and content.get("kind") == "Queue":
        yield from _of_queue(content)


def _warning(field: str, text: str, remedy: str) -> Problem:
    return sentence(f"{field}: {text}", field, remedy)


def _of_job(part: Part) -> Iterator[Problem]:
    """A job, or the template of one."""
    listed = part.value("spec").get("tasks")
    tasks = [task for task in listed if isinstance(task, Mapping)] if isinstance(listed, list) else []
    if not tasks:
        return
    roles = [str(task.get("name") or f"default{number}") for number, task in enumerate(tasks)]
    try:
        read_affinities(texts(part.value("metadata").get("annotations")), roles)
    except BadRoleList as error:
        path = f"{part.path}: " if part.path else ""
        text = f"{path}{error}, so task-topology will ignore these annotations"
        remedy = f"its tasks: {', '.join(roles[:10])}"
        yield sentence(text, "metadata.annotations", remedy)
    for number, task in enumerate(tasks):
        yield from _of_task(Part(joined(part.path, f"spec.tasks[{number}]"), task))


def _of_task(task: Part) -> Iterator[Problem]:
    policy = task.content.get("topologyPolicy")
    spec = converted(task.value("template").get("spec"), PodSpec)
    if policy in (None, "", "none") or not isinstance(policy, str) or spec is None:
        return
    try:
        for container in (*spec.containers, *spec.init_containers):
            fill_requests_from_limits(container.resources)
        if qos_class(spec) == GUARANTEED:
            return
    except QuantityError:
        return  # reported as what it is
    text = f"{quoted(policy)} has no effect: its pods are not of the class Guaranteed"
    yield _warning(
        joined(task.path, "topologyPolicy"),
        text,
        "limit cpu and memory of all containers to what they request",
    )


def _of_containers(part: Part) -> Iterator[Problem]:
    limits = part.value("limits")
    try:
        cores = exact(limits.get(VGPU_CORES, 0))
    except QuantityError:
        return  # reported as what it is
    if cores > ALL_CORES:
        field = joined(part.path, f"limits.{VGPU_CORES}")
        text = f"{limits[VGPU_CORES]} is more than the {ALL_CORES} percent of a card, so its pods will wait"
        remedy = f"ask for at most {ALL_CORES}, and for more cards with volcano.sh/vgpu-number"
        yield _warning(field, text, remedy)


def _of_queue(queue: Mapping[str, Any]) -> Iterator[Problem]:
    """Keys that look like limits on devices and are none."""
    for path in _AMOUNTS:
        amounts: Any = queue
        for step in path.split("."):
            amounts = amounts.get(step) if isinstance(amounts, Mapping) else None
        for key in amounts if isinstance(amounts, Mapping) else ():
            if isinstance(key, str) and (meant := _meant(key)):
                yield _warning(
                    f"{path}.{key}", "does not count devices of ResourceClaims", f'did you mean "{meant}"?'
                )


def _meant(key: str) -> str:
    """The limit on devices that a key was probably meant to be; empty if it is such a limit, or another resource."""
    if class_of(key):
        return ""
    if key.startswith(DEVICE_CLASS_PREFIX):
        return COUNT_PREFIX + key.removeprefix(DEVICE_CLASS_PREFIX)
    prefix, slash, name = key.partition("/")
    capacity, dot, word = prefix.rpartition(".")
    right = COUNT_PREFIX.removesuffix("/")
    return f"{capacity}{dot}{right}/{name}" if slash and name and nearest(word, [right]) else ""
