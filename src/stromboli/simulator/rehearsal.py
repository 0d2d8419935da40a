"""A world in memory: what is decided in one cycle has come true by the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from msgspec.structs import replace

from stromboli.api.decoding import decode
from stromboli.api.manifests.object_defaults import Priorities, case_defaults
from stromboli.api.object_checks import check_object
from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.pod import Pod
from stromboli.engine.decisions import Bind, Decision, Evict, QueueAnnotation, ReleaseClaim
from stromboli.engine.waiting.fixed_point import REPORTS
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.simulator.claim_effects import ClaimEffects
from stromboli.simulator.granted_volumes import bind_granted_volumes
from stromboli.simulator.job_manifests import Terms, job_manifests, priority_class, priority_class_name


class Rehearsal:
    """A cluster without machines: bound pods run, evicted pods vanish, time passes by `sleep`."""

    def __init__(self, intake: Intake | None = None, now: float = 0.0) -> None:
        self.intake = intake or Intake()
        self._now = now
        self._decided: list[Decision] = []
        self._made = 0
        self.claims = ClaimEffects(self.intake)
        """What becomes of ResourceClaims."""

    # -- the world as a scheduler sees it

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster

    def sync(self) -> None:
        """Everything decided so far comes true."""
        decided, self._decided = self._decided, []
        for decision in decided:
            if not isinstance(decision, REPORTS):
                self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        if isinstance(decision, QueueAnnotation):
            self.annotate(decision.name, decision.key, decision.value)
        elif isinstance(decision, ReleaseClaim):
            self.claims.release(decision)
        elif isinstance(decision, Bind | Evict) and (task := self.cluster.tasks.get(decision.uid)):
            if isinstance(decision, Bind):
                self.claims.grant(decision)
                self.start(task)
            else:
                self.evict(task, decision)

    def execute(self, decisions: Sequence[Decision]) -> None:
        self._decided.extend(decisions)

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds

    # -- what else may happen in it

    def add(self, manifest: Object | Mapping[str, Any]) -> None:
        """An object is new, or takes the place of the one of its name: completed as an API server would.

        Unless it says otherwise, what is added first is oldest: all of it in January 2026, a second apart.
        """
        object = manifest if isinstance(manifest, Object) else decode(manifest)
        if object is None:
            raise ValueError(f"a scheduler does not read {manifest!r}")
        case_defaults(object, self._made, Priorities(self.cluster.objects.priority_classes.values()))
        check_object(object)
        self.intake.put(object)
        self._made += 1

    def add_job(self, name: str, **terms: Unpack[Terms]) -> None:
        """A PodGroup and its pods `NAME-0`, `NAME-1`, ..., with the PriorityClass it needs."""
        if "priority" in terms:
            value = terms["priority"]
            if priority_class_name(value) not in self.cluster.objects.priority_classes:
                self.add(priority_class(value))
        for manifest in job_manifests(name, **terms):
            self.add(manifest)

    def start(self, task: Task) -> None:
        """A bound pod runs, and what it was given besides amounts is true."""
        if task.grants:
            bind_granted_volumes(self.intake, task)
        task.scheduled_at = task.started = self._now
        for grant in task.grants:
            if isinstance(grant, CardGrant):  # annotations come with the binding
                task.annotations = {**task.annotations, **dict(grant.annotations)}
        self.cluster.move(task, Status.RUNNING, task.node)

    def finish(self, task: Task, failed: bool = False) -> None:
        """A running pod is done, well or badly, and holds nothing any more."""
        self.cluster.move(task, Status.FAILED if failed else Status.SUCCEEDED, None)
        self.claims.pod_ended(task, gone=False)

    def annotate(self, queue: str, key: str, value: str) -> None:
        """A queue, if it is there, has one more annotation."""
        known = self.cluster.queues.get(queue)
        if known is not None and known.object is not None:
            meta = known.object.metadata
            meta = replace(meta, annotations={**meta.annotations, key: value})
            known.object = replace(known.object, metadata=meta)
            self.cluster.feed.note_queue(known)

    def evict(self, task: Task, decision: Evict) -> None:
        """A pod is evicted, as was decided."""
        self.vanish(task)

    def vanish(self, task: Task) -> None:
        """A pod is gone, as after an eviction."""
        self.intake.drop(Pod(metadata=ObjectMeta(name=task.name, namespace=task.namespace, uid=task.uid)))
        self.claims.pod_ended(task, gone=True)
