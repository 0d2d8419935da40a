"""PodGroups for pods that have none, as the PodGroup controller makes them, under the name of the pods' owner."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stromboli.admission.rules.podgroup_rules import default
from stromboli.admission.rules.rule_context import Context
from stromboli.api import names
from stromboli.api.pods import is_active
from stromboli.api.types.pod import Pod
from stromboli.controllers.owner_references import controller_of
from stromboli.controllers.podgroup.implied_groups import Annotations, group_name, group_of
from stromboli.controllers.watched_kinds import Pod as WatchedPod
from stromboli.controllers.workloads.workload import Manifest
from stromboli.simulator.expansion.observed_objects import ObservedObjects, OwnerKey, owner_key

GROUP_VERSION = "scheduling.volcano.sh/v1beta1"


def needs_group(pod: Pod) -> bool:
    """Whether a pod is for our scheduler and has no group, Volcano's or Kubernetes' own."""
    return (
        pod.spec.scheduler_name == names.SCHEDULER_NAME
        and pod.spec.scheduling_group is None
        and not pod.metadata.annotations.get(names.GROUP_NAME)
        and is_active(pod)
    )


class BarePods:
    """Gives pods their groups; all pods of one owner share one."""

    def __init__(self, observed: ObservedObjects) -> None:
        self._observed = observed
        self._groups: dict[OwnerKey | str, str] = {}
        """The names of groups, by the owner of their pods, or by the pod if it has none."""

    def join_group(self, pod: Pod, owner: str, annotations: Annotations) -> Manifest | None:
        """Put a pod into the group of its owner; the manifest of that group if it does not exist yet.

        `owner` is the name under which the user knows it, `annotations` are those of the pod's owner.
        """
        watched = msgspec.convert(msgspec.to_builtins(pod), WatchedPod)
        key = owner_key(pod) or pod.key
        is_new = key not in self._groups
        if is_new:
            self._groups[key] = self._name(pod, owner, group_name(watched))
        group = self._groups[key]
        exists = f"{pod.namespace}/{group}" in self._observed.groups
        pod.metadata.annotations[names.GROUP_NAME] = group
        if not is_new or exists:
            return None
        self._observed.groups.add(f"{pod.namespace}/{group}")
        return self._manifest(watched, group, annotations)

    def _name(self, pod: Pod, owner: str, implied: str) -> str:
        """The name that the controller gave it, or that of the owner if that is free."""
        if f"{pod.namespace}/{implied}" in self._observed.groups:
            return implied
        reference = controller_of(pod)
        name = owner or (reference.name if reference is not None else pod.name)
        return implied if f"{pod.namespace}/{name}" in self._observed.groups else name

    def _manifest(self, pod: WatchedPod, name: str, annotations: Mapping[str, str]) -> Manifest:
        manifest = group_of(pod, [annotations])
        manifest["metadata"]["name"] = name
        manifest["spec"].setdefault("queue", names.DEFAULT_QUEUE)
        queue = self._observed.namespace_queues.get(pod.namespace)
        default(manifest, Context(namespace_queue=queue))
        return {"apiVersion": GROUP_VERSION, "kind": "PodGroup", **manifest}
