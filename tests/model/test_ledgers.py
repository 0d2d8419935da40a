"""A further ledger is reached from everywhere by the methods of `Ledger`: nothing else has to know of it."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stromboli.api.errors import BadObject
from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.pod import PodSpec
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import Job
from stromboli.model.ledgers import Fact, Grant, Ledger, Unsettled
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.scheduler.mirror.consistency import compare
from tests.manifests import decoded, group, node, pod, queue
from tests.properties.held_grants import ledger_sums

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
LICENSE = "example.com/license"


class LicenseGrant(Grant, frozen=True):
    name: str


class Licenses(Ledger):
    """Licenses that a ConfigMap lists and that pods show in an annotation."""

    kinds = (ConfigMap,)

    def __init__(self) -> None:
        self.listed: dict[str, str] = {}
        self.sites: list[str] = []
        self.held: Counter[str] = Counter()
        self.of_queue: Counter[str] = Counter()

    def concerns(self, spec: PodSpec) -> bool:
        return any(LICENSE in container.resources.requests for container in spec.containers)

    def add(self, task: Task, status: Status, node: Node) -> None:
        self.held.update(grant.name for grant in task.grants if isinstance(grant, LicenseGrant))

    def remove(self, task: Task, status: Status, node: Node) -> None:
        self.held.subtract(grant.name for grant in task.grants if isinstance(grant, LicenseGrant))

    def shown(self, task: Task, assumed: tuple[Grant, ...]) -> tuple[Grant, ...]:
        return (LicenseGrant(task.annotations[LICENSE]),) if LICENSE in task.annotations else assumed

    def recharge(self, job: Job, queue: Queue, sign: int) -> None:
        self.of_queue[queue.name] += sign * len(job.tasks)

    def node_changed(self, node: Node, before: NodeObject | None) -> None:
        self.sites.append(
            f"{node.name} {'went' if node.object is None else 'came' if before is None else ''}"
        )

    def put(self, obj: Object) -> None:
        assert isinstance(obj, ConfigMap)
        if "bad" in obj.data:
            raise BadObject("data", "bad")

    def changed(self, obj: Object) -> None:
        assert isinstance(obj, ConfigMap)
        self.listed = dict(obj.data)

    def facts(self, unsettled: Unsettled) -> Iterator[Fact]:
        for name, count in (+self.held).items():
            yield ("License", name), f"held {count} times"


def intake(*manifests: object) -> tuple[Intake, Licenses]:
    made, licenses = Intake(), Licenses()
    made.cluster.ledgers += (licenses,)
    for manifest in manifests:
        made.put(decoded(manifest))  # type: ignore[arg-type]
    return made, licenses


def holder(name: str, license: str) -> object:
    requests = {"cpu": 1, LICENSE: 1}
    return pod(name, "g", on="n", annotations={LICENSE: license}, **requests)


def config(**data: str) -> object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "licenses"}, "data": data}


WORLD = (queue("a"), queue("b"), node("n"), group("g", 1, queue="a"))


def test_it_hears_of_nodes_and_of_objects_of_its_kinds() -> None:
    made, licenses = intake(*WORLD, config(a="1"))
    assert licenses.listed == {"a": "1"}
    made.drop(decoded(node("n")))
    assert licenses.sites == ["n came", "n went"]


def test_an_object_that_it_refuses_changes_nothing() -> None:
    made, licenses = intake(config(a="1"))
    with pytest.raises(BadObject):
        made.put(decoded(config(bad="x")))
    assert licenses.listed == {"a": "1"}
    assert [each.data for each in made.cluster.objects.config_maps.values()] == [{"a": "1"}]


def test_it_counts_the_grants_that_pods_show_and_knows_their_queues() -> None:
    made, licenses = intake(*WORLD, holder("g-0", "a"), holder("g-1", "a"))
    assert licenses.held == {"a": 2}
    made.put(decoded(group("g", 1, queue="b")))
    assert +licenses.of_queue == {"b": 2}
    made.drop(decoded(holder("g-0", "a")))
    assert licenses.held == {"a": 1}


def test_the_consistency_check_compares_what_it_counts() -> None:
    live, _ = intake(*WORLD, holder("g-0", "a"))
    fresh, licenses = intake(*WORLD, holder("g-0", "a"))
    assert compare(live.cluster, fresh.cluster) == []
    licenses.held["a"] += 1
    (difference,) = compare(live.cluster, fresh.cluster)
    assert (difference.kind, difference.model, difference.server) == (
        "License",
        "held 1 times",
        "held 2 times",
    )


def test_explanations_may_import_no_package_of_a_ledger() -> None:
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["id"] == "remedies-by-refusals")
    packages = {type(ledger).__module__.rpartition(".")[0] for ledger in Intake().cluster.ledgers}
    missing = sorted(packages - set(contract["forbidden_modules"]))
    assert not missing, f"add {missing} to forbidden_modules of the contract remedies-by-refusals"


def test_the_sums_of_the_property_tests_lack_no_ledger() -> None:
    assert len(ledger_sums(Intake().cluster)) == len(Intake().cluster.ledgers)
    made, _ = intake()
    with pytest.raises(AssertionError, match="Licenses: add a function to SUMS"):
        ledger_sums(made.cluster)
