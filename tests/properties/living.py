"""A cluster that lives: objects at rest, an engine, and decisions that come true as an API server would have it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import ClassVar

import msgspec

from stromboli.api import names
from stromboli.api.types.meta import Condition, Object
from stromboli.api.types.native_group import NativePodGroup, condition_type
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.engine.catalog import Action
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from stromboli.engine.plugin import Plugin
from stromboli.model.intake.object_intake import Intake
from stromboli.testing.policy_text import ACTIONS, catalog_with, policy_of
from tests.manifests import EPOCH, Manifest, decoded

_catalog = lru_cache(8)(catalog_with)
_changed = msgspec.structs.replace


def engine(
    *tiers: str,
    actions: str = ACTIONS,
    plugin_classes: Iterable[type[Plugin]] = (),
    action_functions: Iterable[Action] = (),
    interruptible: bool = True,
) -> Engine:
    """An engine without a world, whose tiers are lists of plugin names."""
    catalog = _catalog(tuple(plugin_classes), tuple(action_functions))
    policy = policy_of(catalog, actions, " | ".join(tiers), "")
    return Engine(policy, catalog, interruptible=interruptible)


class LivingWorld:
    """All objects by name, a model that hears of every change, and what was decided so far."""

    def __init__(
        self,
        objects: Iterable[Object | Manifest],
        make_engine: Callable[[], Engine],
        reports_starts: bool = False,
    ):
        """`reports_starts`: a pod that is bound reports when it started."""
        self._reports_starts = reports_starts
        self.intake = Intake()
        self.objects: dict[tuple[type[Object], str], Object] = {}
        self.make_engine = make_engine
        self.engine = make_engine()
        self.now = EPOCH + 1000
        for obj in objects:
            self.put(obj)

    def put(self, given: Object | Manifest) -> None:
        obj = given if isinstance(given, Object) else decoded(given)
        self.objects[type(obj), obj.key] = obj
        self.intake.put(obj)

    def drop(self, obj: Object) -> None:
        del self.objects[type(obj), obj.key]
        self.intake.drop(obj)

    def cycle(self) -> Outcome:
        outcome = self.engine.cycle(self.intake.cluster, self.now)
        self.now += 1
        return outcome

    def come_true(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            effect = self._EFFECTS.get(type(decision))
            if effect is not None:
                effect(self, decision)

    def step(self) -> Outcome:
        """A cycle whose decisions come true before the next."""
        outcome = self.cycle()
        self.come_true(outcome.decisions)
        return outcome

    # -- what decisions do to objects

    def _pod(self, decision: Bind | Evict | PodCondition) -> Pod:
        pod = self.objects[Pod, f"{decision.namespace}/{decision.name}"]
        assert isinstance(pod, Pod)
        return pod

    def _bind(self, decision: Bind) -> None:
        pod = self._pod(decision)
        spec = _changed(pod.spec, node_name=decision.node)
        pod = _changed(pod, spec=spec, status=_changed(pod.status, phase="Running", conditions=()))
        self.put(started_at(pod, self.now) if self._reports_starts else pod)

    def _evict(self, decision: Evict) -> None:
        self.drop(self._pod(decision))

    def _tell_pod(self, decision: PodCondition) -> None:
        pod = self._pod(decision)
        condition = Condition(names.CONDITION_POD_SCHEDULED, "False", decision.reason, decision.message)
        status = _changed(pod.status, conditions=(condition,))
        if decision.nominated_node:
            status = _changed(status, nominated_node_name=decision.nominated_node)
        self.put(_changed(pod, status=status))

    def _tell_group(self, decision: PodGroupStatus) -> None:
        group = self.objects[PodGroup, f"{decision.namespace}/{decision.name}"]
        assert isinstance(group, PodGroup)
        conditions = {condition.type: condition for condition in group.status.conditions}
        for condition in decision.conditions:
            conditions[condition.type] = Condition(
                condition.type, condition.status, condition.reason, condition.message
            )
        status = _changed(
            group.status,
            phase=decision.phase,
            running=decision.running,
            succeeded=decision.succeeded,
            failed=decision.failed,
            conditions=tuple(conditions.values()),
        )
        self.put(_changed(group, status=status))

    def _tell_queue(self, decision: QueueStatus) -> None:
        queue = self.objects[Queue, decision.name]
        assert isinstance(queue, Queue)
        self.put(_changed(queue, status=_changed(queue.status, allocated=dict(decision.allocated))))

    def _tell_native(self, decision: NativeGroupCondition) -> None:
        group = self.objects[NativePodGroup, f"{decision.namespace}/{decision.name}"]
        assert isinstance(group, NativePodGroup)
        kind = condition_type(group.api_version)
        condition = Condition(kind, decision.status, decision.reason, decision.message)
        self.put(_changed(group, status=_changed(group.status, conditions=(condition,))))

    _EFFECTS: ClassVar[dict[type[Decision], Callable[..., None]]] = {
        Bind: _bind,
        Evict: _evict,
        PodCondition: _tell_pod,
        PodGroupStatus: _tell_group,
        NativeGroupCondition: _tell_native,
        QueueStatus: _tell_queue,
    }

    # -- what else happens

    def surprise(self, fresh: Iterable[Object], chance: random.Random) -> None:
        """Some objects come, some pods finish or go away, some nodes change."""
        for obj in fresh:
            known = self.objects.get((type(obj), obj.key))
            if isinstance(obj, Pod) and known is not None:
                self._age(known, chance)
            elif chance.random() < 0.5:
                self.put(obj)

    def _age(self, pod: Object, chance: random.Random) -> None:
        assert isinstance(pod, Pod)
        what = chance.random()
        if what < 0.2:
            self.drop(pod)
        elif what < 0.5 and pod.status.phase == "Running":
            phase = chance.choice(("Succeeded", "Failed"))
            self.put(_changed(pod, status=_changed(pod.status, phase=phase)))


def started_at(pod: Pod, moment: float) -> Pod:
    """A pod that reports when it started."""
    return _changed(pod, status=_changed(pod.status, start_time=datetime.fromtimestamp(moment, UTC)))


def plain(decisions: Iterable[Decision]) -> list[str]:
    """Decisions to compare: sorted, without the name of the cycle that took them."""
    return sorted(_without_cycle(decision) for decision in decisions)


def _without_cycle(decision: Decision) -> str:
    if isinstance(decision, PodGroupStatus):
        nameless = tuple(_changed(condition, transition_id="") for condition in decision.conditions)
        decision = _changed(decision, conditions=nameless)
    return str(decision)


WORDS = (Event, PodCondition, PodGroupStatus, NativeGroupCondition)
"""What is told about a job that is not tried is what it met when it was."""


def deeds(outcome: Outcome) -> tuple[list[str], dict[str, str]]:
    """What a cycle does, whatever it tells: decisions and who is held for room."""
    decided = [decision for decision in outcome.decisions if not isinstance(decision, WORDS)]
    return plain(decided), dict(outcome.pipelined)


def binds(decisions: Iterable[Decision]) -> list[tuple[str, str]]:
    """Who goes where, in the order of the decisions."""
    return [(decision.key, decision.node) for decision in decisions if isinstance(decision, Bind)]


def events(decisions: Iterable[Decision]) -> list[Event]:
    return [decision for decision in decisions if isinstance(decision, Event)]
