"""What the YAML of a workload generator says, read strictly: an error names the field, the value and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from stromboli.api.name_rules import dns_label_errors, dns_subdomain_errors
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.simulator.workloads.arrival_processes import Process
from stromboli.simulator.workloads.distributions import (
    MAX_CHOICES,
    Amount,
    Choice,
    Distribution,
    Span,
    Weight,
    check_amount,
)
from stromboli.simulator.workloads.time_spans import seconds

API_VERSION = "simulator.stromboli.sh/v1"
GENERATOR = "WorkloadGenerator"
MAX_CLASSES = 100
"""Classes of jobs of a generator."""
MAX_NODES = 100_000
"""Nodes of a generator, of all groups together."""
MAX_GENERATED = 2_000_000
"""Jobs that are generated."""


class _Schema(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class WeightedName(_Schema, frozen=True):
    """A queue or a user, and how often it is chosen in relation to others."""

    name: str
    weight: Weight = 1.0


class Users(_Schema, frozen=True):
    """So many users of whom few submit most: the n-th submits n to the power of -zipf times as much as the first."""

    count: Annotated[int, Meta(ge=1, le=MAX_CHOICES)]
    zipf: Annotated[float, Meta(ge=0, le=10)] = 1.0
    prefix: str = "user-"


class TimeLimit(_Schema, frozen=True):
    """What the scheduler is told of run times."""

    factor: Amount = 1.0
    """So many times the run time."""
    round: bool = False
    """Up to what people ask for: 5m, 15m, 30m, 1h, 2h, 4h, 8h, 12h, then whole days."""
    max: Span | None = None


class Elastic(_Schema, frozen=True):
    """Jobs that start with a part of their pods."""

    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """How many of the jobs are so."""
    minimum: Annotated[float, Meta(ge=0, le=1)] = 0.5
    """The part of the pods that must start together, rounded up."""


class JobClass(_Schema, frozen=True):
    """Jobs of a kind."""

    name: str
    share: Weight = 1.0
    """How many of the jobs of the common `arrivals` are of this class, in relation to others."""
    arrivals: Process | None = None
    """Its own, instead of the common ones."""
    count: Annotated[int, Meta(ge=1, le=MAX_GENERATED)] | None = None
    """At most so many of this class."""
    start: Span = 0.0
    """When its own arrivals begin."""
    pods: Amount = 1.0
    run_time: Amount | None = None
    """None: it never ends."""
    time_limit: TimeLimit | None = None
    """None: the scheduler is told nothing."""
    requests: dict[str, int | float | str | Distribution] = {}
    """Of each pod."""
    queue: str | tuple[WeightedName, ...] = ""
    user: str | Users | tuple[WeightedName, ...] = ""
    namespace: str = "default"
    priority: int | Distribution = 0
    elastic: Elastic | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: dict[str, Any] = {}


class GeneratedQueue(_Schema, frozen=True):
    """A queue that exists from the start."""

    name: str
    spec: dict[str, Any] = {}


class NodeGroup(_Schema, frozen=True, kw_only=True):
    """Nodes that are alike."""

    name: str
    count: Annotated[int, Meta(ge=1, le=MAX_NODES)] = 1
    allocatable: dict[str, int | str]
    labels: dict[str, str] = {}


class Generator(_Schema, frozen=True, kw_only=True):
    """A workload to be drawn: `count` jobs, or all of a `span`, whichever ends it first."""

    api_version: str
    kind: str
    name: str = "generated"
    seed: int = 0
    count: Annotated[int, Meta(ge=1, le=MAX_GENERATED)] | None = None
    span: Span | None = None
    arrivals: Process | None = None
    classes: Annotated[tuple[JobClass, ...], Meta(min_length=1, max_length=MAX_CLASSES)]
    queues: Annotated[tuple[GeneratedQueue, ...], Meta(max_length=MAX_CHOICES)] = ()
    nodes: Annotated[tuple[NodeGroup, ...], Meta(max_length=MAX_CHOICES)] = ()


class BadField(ValueError):
    """A field whose value cannot be used."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")


def check_generator(generator: Generator) -> None:
    """Raise `BadField` for what types alone do not refuse."""
    if (
        generator.count is None
        and generator.span is None
        and any(each.count is None for each in generator.classes)
    ):
        raise BadField("count", "is missing, and so is span: give one, or a count for every class")
    if generator.span is not None:
        _checked("span", seconds, generator.span)
    if generator.arrivals is not None:
        _checked("arrivals", lambda process: process.check(), generator.arrivals)
    for index, each in enumerate(generator.classes):
        _check_class(f"classes[{index}]", each, generator)
    for kind in (generator.classes, generator.queues, generator.nodes):
        _check_names(kind)
    if (nodes := sum(group.count for group in generator.nodes)) > MAX_NODES:
        raise BadField("nodes", f"{nodes} nodes; at most {MAX_NODES} of all groups together")


def _check_class(field: str, each: JobClass, generator: Generator) -> None:
    if each.arrivals is None and generator.arrivals is None:
        raise BadField(f"{field}.arrivals", "is missing, and there are no common arrivals: give one of both")
    if each.arrivals is not None:
        _checked(f"{field}.arrivals", lambda process: process.check(), each.arrivals)
    _checked(f"{field}.start", seconds, each.start)
    _checked(f"{field}.pods", check_amount, each.pods)
    if each.run_time is not None:
        _checked(f"{field}.runTime", check_amount, each.run_time)
    if each.time_limit is not None:
        _check_limit(f"{field}.timeLimit", each)
    for name, amount in each.requests.items():
        _checked(f"{field}.requests.{name}", _check_request, amount)
    if not isinstance(each.priority, int):
        _checked(f"{field}.priority", check_amount, each.priority)
    for name, names in (("queue", each.queue), ("user", each.user)):
        if isinstance(names, tuple) and not (
            any(option.weight for option in names) and len(names) <= MAX_CHOICES
        ):
            raise BadField(f"{field}.{name}", f"expected 1 to {MAX_CHOICES} names, one with a weight above 0")
    _check_name(f"{field}.namespace", each.namespace)


def _check_limit(field: str, each: JobClass) -> None:
    assert each.time_limit is not None
    if each.run_time is None:
        raise BadField(field, "is a multiple of runTime, which is missing")
    _checked(f"{field}.factor", check_amount, each.time_limit.factor)
    if each.time_limit.max is not None:
        _checked(f"{field}.max", seconds, each.time_limit.max)


def _check_request(amount: int | float | str | Distribution) -> None:
    if isinstance(amount, Choice):
        for each in amount.values:
            _check_quantity(each.value)
    elif isinstance(amount, int | float | str):
        _check_quantity(amount)
    else:
        amount.check()


def _check_quantity(amount: float | str) -> None:
    try:
        negative = exact(amount) < 0
    except QuantityError as error:
        raise ValueError(str(error)) from None
    if negative:
        raise ValueError(f"{amount} is below 0")


def _check_names(kind: tuple[JobClass | GeneratedQueue | NodeGroup, ...]) -> None:
    seen: set[str] = set()
    for index, each in enumerate(kind):
        what = {JobClass: "classes", GeneratedQueue: "queues", NodeGroup: "nodes"}[type(each)]
        _check_name(f"{what}[{index}].name", each.name)
        if each.name in seen:
            raise BadField(
                f"{what}[{index}].name", f'"{each.name}" is there twice; give each a name of its own'
            )
        seen.add(each.name)


def _check_name(field: str, name: str) -> None:
    errors = dns_label_errors(name) if len(name) > 40 or dns_subdomain_errors(name) else ()
    if errors or not name:
        raise BadField(field, f'"{name[:63]}" is no name: {(errors or ("it is empty",))[0]}')


def _checked(field: str, check: Callable[[Any], object], value: object) -> None:
    try:
        check(value)
    except ValueError as error:
        raise BadField(field, str(error)) from None
