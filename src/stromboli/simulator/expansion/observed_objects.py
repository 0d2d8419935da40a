"""What the files hold already of what controllers make, and the objects that controllers and admission look up."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from stromboli.admission.rules.rule_context import QueueIndex
from stromboli.api import names
from stromboli.api.pods import FINISHED
from stromboli.api.types.meta import Object
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import Namespace, PodGroup, Queue
from stromboli.api.types.storage import PersistentVolumeClaim
from stromboli.api.types.workloads import ReplicaSet
from stromboli.controllers.owner_references import controller_of


class OwnerKey(NamedTuple):
    """An owner by its kind and name: manifests that were never submitted have no uid."""

    group: str
    kind: str
    namespace: str
    name: str


class OwnedPod(NamedTuple):
    name: str
    phase: str
    node: str

    @property
    def ended(self) -> bool:
        return self.phase in FINISHED


class ObservedObjects:
    """Objects as far as expanding workloads needs them."""

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        """The phases of all pods, by `namespace/name`."""
        self.owned: dict[OwnerKey, list[OwnedPod]] = defaultdict(list)
        self.uids: dict[OwnerKey, str] = {}
        """Of owners, as the objects that they own name them."""
        self.groups: set[str] = set()
        self.owned_groups: dict[OwnerKey, str] = {}
        """The names of PodGroups, by their owner."""
        self.owned_sets: set[OwnerKey] = set()
        """Owners of ReplicaSets."""
        self.claims: set[str] = set()
        self.queues = QueueIndex()
        self.nodes: list[Node] = []
        self.namespace_queues: dict[str, str] = {}

    def see(self, obj: Object) -> None:
        """Note an object of the files."""
        owner = owner_key(obj)
        if owner is not None:
            self.uids.setdefault(owner, _uid(obj))
        match obj:
            case Pod():
                self.pods[obj.key] = obj.status.phase
                if owner is not None:
                    self.owned[owner].append(OwnedPod(obj.name, obj.status.phase, obj.spec.node_name))
            case PodGroup():
                self.groups.add(obj.key)
                if owner is not None:
                    self.owned_groups[owner] = obj.name
            case ReplicaSet() if owner is not None:
                self.owned_sets.add(owner)
            case PersistentVolumeClaim():
                self.claims.add(obj.key)
            case Queue():
                self.queues.put(obj)
            case Node():
                self.nodes.append(obj)
            case Namespace() if names.QUEUE_NAME in obj.metadata.annotations:
                self.namespace_queues[obj.name] = obj.metadata.annotations[names.QUEUE_NAME]

    def has_claim(self, obj: Object) -> bool:
        """Whether an object is a claim that exists."""
        return isinstance(obj, PersistentVolumeClaim) and obj.key in self.claims


def owner_key(obj: Object) -> OwnerKey | None:
    """The owner that controls an object."""
    owner = controller_of(obj)
    if owner is None:
        return None
    return OwnerKey(owner.api_version.rpartition("/")[0], owner.kind, obj.namespace, owner.name)


def _uid(obj: Object) -> str:
    owner = controller_of(obj)
    return owner.uid if owner is not None else ""
