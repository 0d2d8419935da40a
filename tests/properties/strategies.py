"""Random small clusters as API objects: everything a scheduler meets, in odd mixtures.

`STROMBOLI_EXAMPLES=20 pytest tests/properties` looks at twenty times as many worlds as usual.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec import structs

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Taint
from stromboli.api.types.pod import Pod, SchedulingGroup, Toleration
from stromboli.api.types.scheduling import PodGroup
from tests.manifests import (
    EPOCH,
    decoded,
    group,
    native_group,
    node,
    pod,
    priority_class,
    queue,
    sub_group_policy,
)
from tests.number_of_examples import scaled

ZONES = ("east", "west", "")
NODES = ("n0", "n1", "n2", "n3", "n4")
QUEUES = ("default", "research", "closed")
CLASSES = {"high": 100, "low": -5}
SHAPES: tuple[dict[str, Any], ...] = (
    {"cpu": 1, "memory": "1Gi"},
    {"cpu": 2, "memory": "1Gi"},
    {"cpu": "500m", "memory": "3Gi"},
    {"cpu": 1, "memory": "1Gi", "gpu": 1},
    {"cpu": 0},
    {"cpu": 1, "memory": "512Mi", "spec": {"nodeSelector": {names.ZONE: "east"}}},
    {"cpu": 1, "memory": "512Mi", "spec": {"tolerations": [Toleration("dedicated", "Exists")]}},
    {"cpu": 0, "memory": "2Gi", "labels": {"app": "web"}},
)
# How a pod may stand: its phase, whether it names a node, whether it is being deleted.
PENDING = ("Pending", False, False)
STANDINGS = (
    ("Running", True, False),
    ("Running", True, True),
    ("Pending", True, False),
    ("Pending", False, True),
    ("Succeeded", True, False),
    ("Failed", True, False),
    ("Unknown", True, False),
)
TAINT = Taint("dedicated", "team", "NoSchedule")
POLICY = sub_group_policy("rack", "rack", size=2, least=1)


def examples(usual: int) -> settings:
    """How many worlds a property looks at; slow machines are no failures."""
    return settings(
        max_examples=scaled(usual),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Object:
    return decoded(
        node(
            name,
            cpu=draw(st.sampled_from((4, 2, 8, "1500m"))),
            memory=draw(st.sampled_from(("8Gi", "4Gi"))),
            pods=draw(st.sampled_from((110, 2, 3))),
            gpu=draw(st.sampled_from((0, 0, 2))),
            labels={names.ZONE: zone} if (zone := draw(st.sampled_from(ZONES))) else {},
            created=draw(st.integers(0, 2)),
            spec={"taints": (TAINT,) if draw(st.integers(0, 4)) == 4 else ()},
        )
    )


@st.composite
def groups(draw: st.DrawFn, name: str) -> Object:
    roles = draw(st.sampled_from(({}, {}, {"ps": 1, "worker": 1}, {"worker": 2}, {"worker": 0})))
    return decoded(
        group(
            name,
            draw(st.integers(0, 4)),
            queue=draw(st.sampled_from((*QUEUES, "default", "missing", ""))),
            minTaskMember=roles,
            phase=draw(
                st.sampled_from(("Inqueue", "Pending", "", "Running", "Inqueue", "Unknown", "Completed"))
            ),
            minResources=draw(st.sampled_from((None, None, {"cpu": "2"}, {"cpu": "100", "memory": "1Gi"}))),
            priorityClassName=draw(st.sampled_from(("", "", "high", "low", "unknown"))),
            subGroupPolicy=(POLICY,) if draw(st.integers(0, 5)) == 5 else (),
            created=draw(st.integers(0, 2)),
        )
    )


@st.composite
def pods(draw: st.DrawFn, name: str, groups: tuple[str, ...], pending: bool | None = None) -> Object:
    if pending is None:
        pending = draw(st.booleans())
    phase, placed, dying = PENDING if pending else draw(st.sampled_from(STANDINGS))
    where = draw(st.sampled_from((*NODES, "unknown-node"))) if placed else ""
    shape = dict(draw(st.sampled_from(SHAPES)))
    labels = shape.pop("labels", {}) | draw(st.sampled_from(({}, {}, {"rack": "1"}, {"rack": "2"})))
    # A pod that is neither placed nor ours is none of our business, but its object may be there all the same.
    scheduler = names.OTHER_SCHEDULER_NAME if draw(st.integers(0, 9)) == 9 else names.SCHEDULER_NAME
    return decoded(
        pod(
            name,
            draw(st.sampled_from((*groups * 4, "no-such-group", ""))),
            phase=phase,
            on=where,
            terminating=dying,
            role=draw(st.sampled_from(("", "worker", "ps"))),
            priority=draw(st.sampled_from((None, None, 10))),
            gates=("wait",) if phase == "Pending" and not placed and draw(st.integers(0, 7)) == 7 else (),
            scheduler=scheduler,
            labels=labels,
            created=draw(st.integers(0, 2)),
            **shape,
        )
    )


@st.composite
def worlds(draw: st.DrawFn, most_pods: int = 10, mostly_pending: bool = False) -> list[Object]:
    """A whole cluster: queues, classes, nodes, PodGroups and pods, in that order; busy if most pods are pending."""
    objects: list[Object] = [decoded(queue("default")), decoded(queue("root"))]
    objects.append(decoded(queue("research", weight=3, created=1)))
    objects.append(decoded(queue("closed", state="Closed")))
    objects.extend(decoded(priority_class(name, value)) for name, value in CLASSES.items())
    for name in NODES[: draw(st.integers(0, 4))]:
        objects.append(draw(nodes(name)))
    some_groups = tuple(f"g{number}" for number in range(draw(st.integers(1, 2 if mostly_pending else 4))))
    for name in some_groups:
        objects.append(draw(groups(name)))
    for number in range(draw(st.integers(0, most_pods))):
        pending = True if mostly_pending and draw(st.integers(0, 3)) else None
        objects.append(draw(pods(f"pod-x-{number}", some_groups, pending)))
    return nativised(objects, random.Random(draw(st.integers(0, 2**16))))


# -- native groups


def nativised(
    objects: list[Object], chance: random.Random, share: float = 0.3, mode: str | None = None
) -> list[Object]:
    """The same world with some of its PodGroups, and the pods in them, as Kubernetes' own."""
    chosen = {
        obj.name
        for obj in objects
        if isinstance(obj, PodGroup) and not obj.spec.sub_group_policy and chance.random() < share
    }
    if chance.random() < share:
        chosen.add("no-such-group")
    return [_as_native(obj, chosen, chance, mode) for obj in objects]


def _as_native(obj: Object, chosen: set[str], chance: random.Random, mode: str | None) -> Object:
    if isinstance(obj, PodGroup) and obj.name in chosen:
        spec, version = obj.spec, chance.choice(("v1alpha2", "v1beta1"))
        modes: dict[str, Any] = {"": "", "Pod": "Pod", "PodGroup": "PodGroup"}
        if version == "v1beta1":
            modes = {"": "", "Pod": {"single": {}}, "PodGroup": {"all": {}}}
        return decoded(
            native_group(
                obj.name,
                spec.min_member,
                disruptionMode=modes[chance.choice(tuple(modes)) if mode is None else mode],
                priorityClassName=spec.priority_class_name,
                preemptionPolicy="Never" if chance.random() < 0.1 else "",
                annotations={names.QUEUE_NAME: spec.queue} if spec.queue else {},
                version=version,
                created=obj.metadata.creation_timestamp.timestamp() - EPOCH,
            )
        )
    if isinstance(obj, Pod) and (group := obj.metadata.annotations.get(names.GROUP_NAME)) in chosen:
        notes = {key: value for key, value in obj.metadata.annotations.items() if key != names.GROUP_NAME}
        meta = structs.replace(obj.metadata, annotations=notes)
        spec = structs.replace(obj.spec, scheduling_group=SchedulingGroup(group))
        return structs.replace(obj, metadata=meta, spec=spec)
    return obj


# -- clusters in which somebody has to go

SLOTS = 4
LEVELS = {"high": 100, "middle": 10, "low": -5}
SIZES: tuple[dict[str, Any], ...] = (
    {"cpu": 1, "memory": "1Gi"},
    {"cpu": 2, "memory": "1Gi"},
    {"cpu": 1, "memory": "3Gi"},
    {"cpu": 0},
)


def contested_queues() -> list[Object]:
    """An ordinary one, a heavy one, one that gives nothing back, one with a guarantee, and one that is full soon."""
    queues = [
        queue("default"),
        queue("root"),
        queue("heavy", weight=3, created=1),
        queue("firm", reclaimable=False),
        queue("sure", guarantee={"resource": {"cpu": "2", "memory": "2Gi"}}),
        queue("small", capability={"cpu": "2", "memory": "4Gi"}),
    ]
    return [decoded(manifest) for manifest in queues]


def contest(
    chance: random.Random, nodes: int = 3, waiting: int = 3, levels: Sequence[str] = tuple(LEVELS)
) -> list[Object]:
    """A small cluster that is mostly full, and jobs that want in; no node carries more than it has."""
    objects = contested_queues()
    objects.extend(decoded(priority_class(name, value)) for name, value in LEVELS.items())
    queues = ("default", chance.choice(("default", "heavy", "heavy", "sure", "firm", "small")))
    settled = [f"old{number}" for number in range(chance.randint(1, 3))]
    hungry = [f"new{number}" for number in range(waiting)]
    for name in settled:
        objects.append(_contested_group(chance, name, chance.choice((1, 1, 2, 3, 0)), queues, levels[::-1]))
    serial = count()
    for name in NODES[:nodes]:
        cpu = chance.choice((2, 4, 3))
        zone = {names.ZONE: "east"} if chance.random() < 0.4 else {}
        objects.append(
            decoded(node(name, cpu=cpu, memory="8Gi", pods=SLOTS, labels=zone, created=chance.randint(0, 1)))
        )
        left = (cpu, 8, SLOTS)
        while chance.random() < 0.95:
            shape = chance.choice(SIZES)
            left = tuple(have - part for have, part in zip(left, _weight(shape), strict=True))
            if min(left) < 0:
                break
            owner = chance.choice((*settled * 3, *hungry))
            objects.append(_contested_pod(chance, f"pod-x-{next(serial)}", owner, shape, name))
    for name in hungry:
        minimum = chance.choice((1, 1, 2, 3, 0))
        objects.append(_contested_group(chance, name, minimum, queues, levels))
        shape = chance.choice(SIZES)
        for _ in range(minimum + chance.choice((0, 0, 1))):
            some = shape if chance.random() < 0.8 else chance.choice(SIZES)
            objects.append(_contested_pod(chance, f"pod-x-{next(serial)}", name, some))
    if chance.random() < 0.2:
        objects.append(_contested_pod(chance, f"pod-x-{next(serial)}", settled[0], SIZES[0]))
    return objects


def contests(levels: Sequence[str] = tuple(LEVELS)) -> st.SearchStrategy[list[Object]]:
    """Made from a seed, so that a failure is told by one number and shrinks in seconds."""
    return st.builds(
        lambda seed, nodes, waiting: nativised(
            contest(random.Random(seed), nodes, waiting, levels), random.Random(seed + 1)
        ),
        st.integers(0, 2**32),
        st.integers(1, 4),
        st.integers(1, 3),
    )


def _weight(shape: dict[str, Any]) -> tuple[int, int, int]:
    return (shape["cpu"] or 0, int(str(shape.get("memory") or "0Gi")[:-2]), 1)


def _contested_group(
    chance: random.Random, name: str, minimum: int, queues: Sequence[str], levels: Sequence[str]
) -> Object:
    """Of the levels the first is the likeliest."""
    return decoded(
        group(
            name,
            minimum,
            queue=chance.choice(queues),
            minTaskMember={"ps": 1, "worker": 1} if chance.random() < 0.1 else {},
            phase=chance.choice(("Inqueue", "Inqueue", "Running", "Pending")),
            minResources={"cpu": "2"} if chance.random() < 0.2 else None,
            priorityClassName=chance.choice((levels[0], levels[0], *levels)),
            subGroupPolicy=(POLICY,) if chance.random() < 0.1 else (),
            created=chance.randint(0, 2),
        )
    )


def _contested_pod(
    chance: random.Random, name: str, owner: str, shape: dict[str, Any], where: str = ""
) -> Object:
    return decoded(
        pod(
            name,
            owner,
            phase="Running" if where and chance.random() < 0.9 else "Pending",
            on=where,
            terminating=bool(where) and chance.random() < 0.1,
            role=chance.choice(("worker", "ps", "")),
            priority=chance.choice((None, None, 10, 3)),
            labels=chance.choice(({}, {}, {"rack": "1"}, {"rack": "2"})),
            annotations={names.PREEMPTABLE: "false"} if where and chance.random() < 0.1 else {},
            created=chance.randint(0, 2),
            **shape,
            spec={"nodeSelector": {names.ZONE: "east"}} if not where and chance.random() < 0.1 else {},
        )
    )
