"""Random small clusters in which volumes, devices, parts of GPUs and CPUs are scarce, and what becomes of decisions.

What a bind carries is written as the scheduler writes it, and completed as the controllers of a cluster would: claims
get their volumes, devices are reserved, and are released when their last pod is gone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from stromboli.api import names
from stromboli.api.types.devices import ResourceClaim, ResourceClaimStatus
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.api.types.storage import (
    ClaimReference,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumePhase,
)
from stromboli.engine.catalog import action
from stromboli.engine.cycle import Engine
from stromboli.engine.decisions import Bind, Decision, Evict, ReleaseClaim
from stromboli.engine.session import Session
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.model.cpus.cpu_ledger import CpuGrant
from stromboli.model.devices.claim_use import ClaimGrant
from stromboli.model.status import Status
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.policy.policy import load_policy
from stromboli.testing.policy_text import catalog_with
from tests.manifests import Manifest, decoded, group, policy, priority_class, queue
from tests.manifests import pod as pod_manifest
from tests.plugins.deviceshare.card_worlds import card, vgpu, vgpu_node
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology
from tests.properties.held_grants import ledger_sums
from tests.properties.living import LivingWorld
from tests.properties.rebuild import kept_sums

_changed = msgspec.structs.replace


@action("trial")
def trial(session: Session) -> None:
    """Everybody who waits is placed anywhere, and all of it is undone."""
    cluster, chance = session.cluster, random.Random(session.now)
    before = ledger_sums(cluster), kept_sums(cluster)
    with session.statement() as statement:
        for task in [task for task in cluster.tasks.values() if task.status is Status.PENDING]:
            node = chance.choice(cluster.columns.nodes)
            (statement.allocate if chance.random() < 0.7 else statement.pipeline)(task, node)
    assert (ledger_sums(cluster), kept_sums(cluster)) == before


CATALOG = catalog_with((), (trial,))
POLICY = load_policy(
    policy(
        "enqueue, trial, allocate, backfill, preempt",
        "priority gang conformance | predicates",
        ("deviceshare", {"deviceshare.VGPUEnable": True}),
        ("numa-aware", {"weight": 1}),
        "nodeorder",
    ),
    CATALOG,
)
KINDS = ("plain", "local", "shared volume", "provisioned", "template", "shared claim", "vgpu", "numa")
"""What a pod asks for besides CPU and memory."""


def _api(group: str, kind: str, name: str, spec: Manifest, **more: object) -> Manifest:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec, **more}


def _node_affinity(node: str) -> Manifest:
    term = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {"required": {"nodeSelectorTerms": [{"matchFields": [term]}]}}


def _storage_class(name: str, provisioner: str) -> Manifest:
    meta = {"name": name}
    late = {"provisioner": provisioner, "volumeBindingMode": names.WAIT_FOR_FIRST_CONSUMER}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, **late}


def cluster_objects(chance: random.Random, nodes: int = 0) -> list[Manifest]:
    """So many nodes, or up to three, with little of everything."""
    objects: list[Manifest] = [
        queue("default"),
        priority_class("high", 100),
        priority_class("low", 1),
        _storage_class("local", "kubernetes.io/no-provisioner"),
        _storage_class("made", "disks.example.com"),
        _api("storage.k8s.io/v1", "CSIDriver", "disks.example.com", {"storageCapacity": True}),
        _api("resource.k8s.io/v1", "DeviceClass", "gpu", {"selectors": []}),
        _claim_template("one-gpu"),
    ]
    for name in [f"n{number}" for number in range(nodes or chance.choice((1, 2, 2, 3)))]:
        cards = [card(f"GPU-{name}-{number}", count=2) for number in range(chance.choice((1, 2)))]
        objects += [
            vgpu_node(name, *cards, cpu=chance.choice((4, 8)), memory="16Gi", pods=20),
            numa_topology(name, chance.choice(("restricted", "best-effort", "single-numa-node"))),
            _slice(name, chance.choice((1, 2))),
            _api(
                "storage.k8s.io/v1",
                "CSINode",
                name,
                {"drivers": [{"name": "disks.example.com", "nodeID": name}]},
            ),
            *(_volume(f"disk-{name}-{number}", name) for number in range(chance.choice((0, 1, 2)))),
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIStorageCapacity",
                "metadata": {"name": f"room-{name}", "namespace": "kube-system"},
                "storageClassName": "made",
                "nodeTopology": {"matchLabels": {"host": name}},
                "capacity": chance.choice(("1Gi", "2Gi")),
            },
        ]
    for manifest in objects:
        if manifest["kind"] == "Node":
            manifest["metadata"]["labels"] = {"host": manifest["metadata"]["name"]}
    return objects


def _claim_template(name: str) -> Manifest:
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": meta,
        "spec": {"spec": DEVICES},
    }


DEVICES: Manifest = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def _slice(node: str, devices: int) -> Manifest:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"gpu-{number}"} for number in range(devices)]
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": listed}
    return _api("resource.k8s.io/v1", "ResourceSlice", f"{node}-gpus", spec)


def _volume(name: str, node: str) -> Manifest:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "nodeAffinity": _node_affinity(node),
    }
    return _api("v1", "PersistentVolume", name, spec, status={"phase": "Available"})


def _volume_claim(name: str, storage_class: str) -> Manifest:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def _resource_claim(name: str, **meta: object) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": DEVICES,
    }


def job_objects(name: str, chance: random.Random, palette: Sequence[str], urgency: str) -> list[Manifest]:
    """A gang of up to four pods, of which each may ask for something else, with the claims that they name."""
    size = chance.choice((1, 2, 3, 4))
    kinds = [chance.choice(palette) for _ in range(chance.choice((1, 2)))]
    terms = {"phase": "Inqueue", "priorityClassName": urgency}
    objects = [group(name, chance.choice((1, size)), **terms)]
    for number in range(size):
        objects += _pod_objects(f"{name}-{number}", name, urgency, kinds[number % len(kinds)])
    known = {(each["kind"], each["metadata"]["name"]): each for each in objects}  # shared claims come once
    return list(known.values())


def _pod_objects(name: str, job: str, urgency: str, kind: str) -> list[Manifest]:
    value = 100 if urgency == "high" else 1
    spec: Manifest = {"priorityClassName": urgency, "priority": value}
    others: list[Manifest] = []
    if kind in ("local", "shared volume", "provisioned"):
        claim = f"{job}-data" if kind == "shared volume" else f"{name}-data"
        others.append(_volume_claim(claim, "made" if kind == "provisioned" else "local"))
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    elif kind == "template":
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "controller": True}
        others.append(
            _resource_claim(f"{name}-gpu", ownerReferences=[{**owner, "uid": f"Pod/default/{name}"}])
        )
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    elif kind == "shared claim":
        others.append(_resource_claim(f"{job}-gpu"))
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"{job}-gpu"}]
    if kind == "numa":
        made = numa_pod(name, 2, group=job, spec=spec)
    else:
        made = pod_manifest(name, job, cpu="1", spec=spec)
    if kind == "vgpu":
        shares = {name: str(amount) for name, amount in vgpu(memory=3000, cores=30).items()}
        made["spec"]["containers"][0]["resources"]["limits"] = shares
    if kind == "template":
        made["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
    return [*others, made]


class GrantWorld(LivingWorld):
    """A living world whose scheduler may be restarted, and in which what a bind needs may fail to be written."""

    def __init__(self, objects: Iterable[Manifest]):
        super().__init__(map(decoded, objects), lambda: Engine(POLICY, CATALOG))

    def restart(self) -> None:
        """A scheduler begins anew, with the objects alone."""
        self.intake = self.rebuilt_intake(list(self.objects.values()))
        self.engine = self.make_engine()

    def rebuilt_intake(self, objects: Iterable[Object]):  # type: ignore[no-untyped-def]
        """A model of objects, as another scheduler with the same policy would have it."""
        intake = type(self.intake)()
        if (models := self.intake.cluster.cards.models) is not None:
            intake.cluster.share_cards(models)
        for obj in objects:
            intake.put(obj)
        return intake

    # -- what decisions do

    def come_true(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            if isinstance(decision, Bind):
                self.write_grants(decision)
                self.bind(decision)
            elif isinstance(decision, Evict):
                self.terminate(self._pod(decision))
            elif isinstance(decision, ReleaseClaim):
                self._release(decision)
            else:
                super().come_true((decision,))

    def fail(self, binds: Iterable[Bind]) -> None:
        """Binds that cannot be written are taken back in the model."""
        for bind in binds:
            task = self.intake.cluster.tasks[bind.uid]
            self.intake.cluster.move(task, Status.PENDING, None)

    def write_grants(self, decision: Bind) -> None:
        for grant in decision.grants:
            if isinstance(grant, VolumeGrant):
                self._bind_volume(grant, decision.node)
            elif isinstance(grant, ClaimGrant):
                self._reserve(grant)

    def _bind_volume(self, grant: VolumeGrant, node: str) -> None:
        claim = self.objects[PersistentVolumeClaim, f"{grant.namespace}/{grant.claim}"]
        assert isinstance(claim, PersistentVolumeClaim)
        name = grant.volume or f"pvc-{grant.claim}"
        reference = ClaimReference(claim.metadata.namespace, claim.name, claim.metadata.uid)
        if (PersistentVolume, name) not in self.objects:
            self._provision(name, node)
        volume = self.objects[PersistentVolume, name]
        assert isinstance(volume, PersistentVolume)
        assert volume.spec.claim_ref in (None, reference), f"{name} is given twice"
        spec = _changed(volume.spec, claim_ref=reference)
        self.put(_changed(volume, spec=spec, status=VolumePhase("Bound")))
        notes = {**claim.metadata.annotations, names.BIND_COMPLETED: "yes"}
        meta = _changed(claim.metadata, annotations=notes)
        spec = _changed(claim.spec, volume_name=name)
        self.put(_changed(claim, metadata=meta, spec=spec, status=VolumePhase("Bound")))

    def _provision(self, name: str, node: str) -> None:
        """A driver makes a volume of 1 GiB, and reports that it has so much less."""
        made = _volume(name, node)
        made["spec"]["storageClassName"] = "made"
        self.put(made)
        report = self.objects[CSIStorageCapacity, f"kube-system/room-{node}"]
        assert isinstance(report, CSIStorageCapacity)
        left = int(str(report.capacity).removesuffix("Gi")) - 1
        assert left >= 0, f"more is provisioned on {node} than there is"
        self.put(_changed(report, capacity=f"{left}Gi"))

    def _reserve(self, grant: ClaimGrant) -> None:
        claim = self.objects[ResourceClaim, f"{grant.namespace}/{grant.name}"]
        assert isinstance(claim, ResourceClaim)
        status = claim.status
        if grant.allocation is not None and status.allocation is not None:
            assert status.allocation == grant.allocation, f"{claim.key} is allocated twice"
        reserved = {each.uid: each for each in (*status.reserved_for, grant.consumer)}
        allocation = status.allocation or grant.allocation
        self.put(_changed(claim, status=ResourceClaimStatus(allocation, tuple(reserved.values()))))

    def bind(self, decision: Bind) -> None:
        """The pod has its node, with the annotations that go with the bind, and runs."""
        pod = self.objects[Pod, f"{decision.namespace}/{decision.name}"]
        assert isinstance(pod, Pod)
        notes = dict(pod.metadata.annotations)
        for grant in decision.grants:
            if isinstance(grant, CardGrant | CpuGrant):
                notes.update(grant.annotations)
        meta = _changed(pod.metadata, annotations=notes)
        spec = _changed(pod.spec, node_name=decision.node)
        status = _changed(pod.status, phase="Running", conditions=())
        self.put(_changed(pod, metadata=meta, spec=spec, status=status))

    def terminate(self, pod: Pod) -> None:
        """A pod that is deleted lingers until `bury`."""
        meta = _changed(pod.metadata, deletion_timestamp=datetime.fromtimestamp(self.now, UTC))
        self.put(_changed(pod, metadata=meta))

    def bury(self) -> None:
        """Whoever is terminating is gone."""
        for gone in [pod for pod in self.pods() if pod.metadata.deletion_timestamp is not None]:
            self.delete(gone)

    def pods(self) -> Iterable[Pod]:
        return (obj for obj in self.objects.values() if isinstance(obj, Pod))

    def delete(self, pod: Pod) -> None:
        """A pod goes, and with it its reservations and the claims that were made for it."""
        self.drop(self.objects[Pod, pod.key])
        for claim in [obj for obj in self.objects.values() if isinstance(obj, ResourceClaim)]:
            if any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references):
                self.drop(claim)
                continue
            left = tuple(each for each in claim.status.reserved_for if each.uid != pod.metadata.uid)
            if len(left) < len(claim.status.reserved_for):
                status = _changed(claim.status, reserved_for=left) if left else ResourceClaimStatus()
                self.put(_changed(claim, status=status))

    def _release(self, decision: ReleaseClaim) -> None:
        claim = self.objects.get((ResourceClaim, f"{decision.namespace}/{decision.name}"))
        if isinstance(claim, ResourceClaim) and claim.metadata.uid == decision.uid:
            if decision.delete:
                self.drop(claim)
            else:
                self.put(_changed(claim, status=ResourceClaimStatus()))
