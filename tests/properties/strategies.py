"""Random small clusters as API objects: everything a scheduler meets, in odd mixtures.

`STROMBOLI_EXAMPLES=20 pytest tests/properties` looks at twenty times as many worlds as usual.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.meta import Object
from stromboli.api.node import Taint
from stromboli.api.pod import Toleration
from tests.building import group, node, pod, policy_of, priority_class, queue

ZONES = ("east", "west", "")
NODES = ("n0", "n1", "n2", "n3", "n4")
QUEUES = ("default", "research", "closed")
CLASSES = {"high": 100, "low": -5}
SHAPES: tuple[dict[str, Any], ...] = (
    {"cpu": 1, "memory": "1Gi"},
    {"cpu": 2, "memory": "1Gi"},
    {"cpu": "500m", "memory": "3Gi"},
    {"cpu": 1, "memory": "1Gi", "gpu": 1},
    {"cpu": None, "memory": None},
    {"cpu": 1, "memory": "512Mi", "selector": {names.ZONE: "east"}},
    {"cpu": 1, "memory": "512Mi", "tolerations": (Toleration("dedicated", "Exists"),)},
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
POLICY = policy_of("rack", "rack", size=2, least=1)


def examples(usual: int) -> settings:
    """How many worlds a property looks at; slow machines are no failures."""
    count = int(usual * float(os.environ.get("STROMBOLI_EXAMPLES", "1")))
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Object:
    return node(
        name,
        cpu=draw(st.sampled_from((4, 2, 8, "1500m"))),
        memory=draw(st.sampled_from(("8Gi", "4Gi"))),
        pods=draw(st.sampled_from((110, 2, 3))),
        gpu=draw(st.sampled_from((0, 0, 2))),
        labels={names.ZONE: zone} if (zone := draw(st.sampled_from(ZONES))) else {},
        taints=(TAINT,) if draw(st.integers(0, 4)) == 4 else (),
        created=draw(st.integers(0, 2)),
    )


@st.composite
def groups(draw: st.DrawFn, name: str) -> Object:
    roles = draw(st.sampled_from(({}, {}, {"ps": 1, "worker": 1}, {"worker": 2}, {"worker": 0})))
    return group(
        name,
        draw(st.integers(0, 4)),
        queue=draw(st.sampled_from((*QUEUES, "default", "missing", ""))),
        roles=roles,
        phase=draw(st.sampled_from(("Inqueue", "Pending", "", "Running", "Inqueue", "Unknown", "Completed"))),
        resources=draw(st.sampled_from((None, None, {"cpu": "2"}, {"cpu": "100", "memory": "1Gi"}))),
        priority_class=draw(st.sampled_from(("", "", "high", "low", "unknown"))),
        policies=(POLICY,) if draw(st.integers(0, 5)) == 5 else (),
        created=draw(st.integers(0, 2)),
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
    return pod(
        name,
        draw(st.sampled_from((*groups * 4, "no-such-group", ""))),
        phase=phase,
        node=where,
        dying=dying,
        role=draw(st.sampled_from(("", "worker", "ps"))),
        priority=draw(st.sampled_from((None, None, 10))),
        gates=("wait",) if phase == "Pending" and not placed and draw(st.integers(0, 7)) == 7 else (),
        scheduler=scheduler,
        labels=labels,
        created=draw(st.integers(0, 2)),
        **shape,
    )


@st.composite
def worlds(draw: st.DrawFn, most_pods: int = 10, mostly_pending: bool = False) -> list[Object]:
    """A whole cluster: queues, classes, nodes, PodGroups and pods, in that order; busy if most pods are pending."""
    things: list[Object] = [queue("default"), queue("root")]
    things.append(queue("research", weight=3, created=1))
    things.append(queue("closed", state="Closed"))
    things.extend(priority_class(name, value) for name, value in CLASSES.items())
    for name in NODES[: draw(st.integers(0, 4))]:
        things.append(draw(nodes(name)))
    some_groups = tuple(f"g{number}" for number in range(draw(st.integers(1, 2 if mostly_pending else 4))))
    for name in some_groups:
        things.append(draw(groups(name)))
    for number in range(draw(st.integers(0, most_pods))):
        pending = True if mostly_pending and draw(st.integers(0, 3)) else None
        things.append(draw(pods(f"pod-x-{number}", some_groups, pending)))
    return things
