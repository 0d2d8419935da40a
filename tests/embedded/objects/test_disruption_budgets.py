"""Budgets know the pods that they select without reading all of them for each eviction."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.objects import disruption_budgets
from stromboli.embedded.objects.disruption_budgets import BUDGETS, DisruptionBudgets
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Key, Record

SELECTOR = {"matchLabels": {"app": "x"}}


def pod(store: Store, name: str, app: str = "x", phase: str = "Running", **meta: Any) -> Record:
    metadata = {"name": name, "namespace": "team", "labels": {"app": app}, **meta}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
    return store.put(Key("pods", "team", name), {"metadata": metadata, "status": status})


def budget(store: Store, **spec: Any) -> Record:
    content = {"metadata": {"name": "b"}, "spec": {"selector": SELECTOR, **spec}}
    return store.put(Key(BUDGETS, "team", "b"), content)


def decoded_pods(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many pods are decoded for ten evictions in a namespace with so many pods."""
    decode, decoded = disruption_budgets.stored_pod, 0

    def counted(record: Record) -> Any:
        nonlocal decoded
        decoded += 1
        return decode(record)

    async def scenario() -> int:
        store = Store(folder / f"{count}")
        budgets = DisruptionBudgets(store, KindRegistry())
        budget(store, maxUnavailable="100%")
        pods = [pod(store, f"p{number}") for number in range(count)]
        budgets.check_eviction(pods[0])
        with monkeypatch.context() as patching:
            patching.setattr(disruption_budgets, "stored_pod", counted)
            for victim in pods[:10]:
                budgets.check_eviction(victim)
                store.remove(victim.key, victim.object())
        await store.close()
        return decoded

    return asyncio.run(scenario())


def test_an_eviction_costs_the_same_in_a_namespace_of_many_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert decoded_pods(tmp_path, 200, monkeypatch) == decoded_pods(tmp_path, 20, monkeypatch) > 0


@pytest.mark.parametrize("seed", range(6))
def test_counts_kept_up_to_date_equal_counts_made_afresh(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)

    async def scenario() -> None:
        store = Store(tmp_path / "db")
        registry = KindRegistry()
        kept = DisruptionBudgets(store, registry)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
        replica_set = {"metadata": {"name": "r"}, "spec": {"replicas": 9}}
        store.put(Key("replicasets.apps", "team", "r"), replica_set)
        record = budget(store, minAvailable="50%")
        for _ in range(60):
            match chance.randrange(8):
                case 0:
                    if pods := list(store.list("pods")):
                        victim = chance.choice(pods)
                        store.remove(victim.key, victim.object())
                case 1:
                    app = chance.choice("xy")
                    record = budget(store, minAvailable="50%", selector={"matchLabels": {"app": app}})
                case _:
                    meta: dict[str, Any] = {}
                    if chance.random() < 0.3:
                        meta["ownerReferences"] = [owner]
                    if chance.random() < 0.2:
                        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
                    phase = chance.choice(["Running", "Running", "Pending", "Succeeded"])
                    pod(store, f"p{chance.randrange(10)}", chance.choice("xxy"), phase, **meta)
            assert kept.count(record) == DisruptionBudgets(store, registry).count(record)
        await store.close()

    asyncio.run(scenario())


def test_a_budget_without_a_healthy_pod_to_spare_refuses_an_eviction(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        budgets = DisruptionBudgets(store, KindRegistry())
        budget(store, minAvailable=1)
        first, second = pod(store, "a"), pod(store, "b")
        budgets.check_eviction(first)
        store.remove(first.key, first.object())
        with pytest.raises(StatusError, match="violate the pod's disruption budget"):
            budgets.check_eviction(second)
        await store.close()

    asyncio.run(scenario())


def test_a_pod_that_cannot_be_decoded_stops_no_write(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path / "db")
        budgets = DisruptionBudgets(store, KindRegistry())
        record = budget(store, maxUnavailable=1)
        pod(store, "a")
        assert budgets.count(record).healthy == 1
        bad = store.put(Key("pods", "team", "bad"), {"metadata": {"labels": {"app": "x"}}, "status": []})
        store.remove(bad.key, bad.object())
        assert budgets.count(record).healthy == 1
        await store.close()

    asyncio.run(scenario())
