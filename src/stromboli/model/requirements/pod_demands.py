"""What a pod requires of its placement and only a plugin can honour; equal pods share the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from stromboli.api import card_names, names
from stromboli.api.resources.qos import GUARANTEED, qos_class
from stromboli.api.resources.quantity import exact
from stromboli.api.types.pod import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Resources,
    Volume,
)
from stromboli.model.requirements.placement_requirement import (
    DEVICE_SHARING,
    LABEL_KEYS,
    NODE_FILTERS,
    NODE_PREFERENCES,
    NPU_CORES,
    NUMA_POLICY,
    OPERATING_SYSTEM,
    PREFERRED_LABEL_KEYS,
    PREFERRED_NUMA_POLICY,
    RESOURCE_CLAIMS,
    RESOURCE_STRATEGY,
    REVOCABLE_ZONE,
    VOLUME_BINDING,
    VOLUME_LIMITS,
    Demand,
)

SHOWN = 3
"""Maximum names that a demand shows; a pod may have hundreds."""
_VGPU = "volcano.sh/vgpu-"
_SHARED_DEVICES = (
    _VGPU,
    "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",
)
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
_NO_NUMA_POLICY = ("", "none")
_PLUGIN_ANNOTATIONS = {
    names.REVOCABLE_ZONE: REVOCABLE_ZONE,
    names.RESOURCE_STRATEGY_SCORING_TYPE: RESOURCE_STRATEGY,
    names.RESOURCE_STRATEGY_WEIGHT: RESOURCE_STRATEGY,
}


def spec_demands(spec: PodSpec) -> tuple[Demand, ...]:
    """The requirements of a pod's spec."""
    return tuple(_of_spec(spec))


def metadata_demands(
    spec: PodSpec, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> tuple[Demand, ...]:
    """The requirements of a pod's labels and annotations."""
    numa = _numa_policy(spec, annotations)
    keys: tuple[Demand, ...] = ()
    if spec.affinity is not None and (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity):
        keys = tuple(_label_keys(spec.affinity, labels))
    return numa + keys + tuple(_plugin_annotations(annotations))


def _plugin_annotations(annotations: Mapping[str, str]) -> Iterator[Demand]:
    """Annotations that one plugin reads."""
    for key, requirement in _PLUGIN_ANNOTATIONS.items():
        if annotations.get(key):
            yield Demand(requirement, f"annotation {key}", annotations[key][:63])


def _numa_policy(spec: PodSpec, annotations: Mapping[str, str]) -> tuple[Demand, ...]:
    """It counts for pods of class Guaranteed alone (spec 04 7)."""
    policy = annotations.get(names.NUMA_TOPOLOGY_POLICY, "")
    if policy in _NO_NUMA_POLICY or qos_class(spec) != GUARANTEED:
        return ()
    requirement = PREFERRED_NUMA_POLICY if policy == "best-effort" else NUMA_POLICY
    return (Demand(requirement, f"annotation {names.NUMA_TOPOLOGY_POLICY}", policy[:63]),)


def _label_keys(affinity: Affinity, labels: Mapping[str, str]) -> Iterator[Demand]:
    """Keys of pod affinity terms whose values, labels of the pod, are not in the selector of the term."""
    for field, terms in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        for requirement, selecting in (
            (LABEL_KEYS, terms.required if terms else ()),
            (PREFERRED_LABEL_KEYS, tuple(each.term for each in terms.preferred) if terms else ()),
        ):
            keys = [key for term in selecting for key in _missing_keys(term) if key in labels]
            if keys:
                yield Demand(requirement, f"label keys of spec.affinity.{field}", _few(keys))


def _missing_keys(term: PodAffinityTerm) -> Iterator[str]:
    expressions = term.label_selector.match_expressions if term.label_selector else ()
    for operator, keys in (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys)):
        selected = {each.key for each in expressions if each.operator == operator}
        yield from (key for key in keys if key not in selected)


def _of_spec(spec: PodSpec) -> Iterator[Demand]:
    resources = [container.resources for container in (*spec.containers, *spec.init_containers)]
    claims = [claim.name for claim in spec.resource_claims]
    if names_of_claims := claims or [claim.name for each in resources for claim in each.claims]:
        yield Demand(
            RESOURCE_CLAIMS, "spec.resourceClaims" if claims else "resources.claims", _few(names_of_claims)
        )
    asked = _resources([*resources, *([spec.resources] if spec.resources else [])])
    for requirement, wanted in (
        (RESOURCE_CLAIMS, [name for name in asked if name.startswith(_DEVICE_CLASS)]),
        (DEVICE_SHARING, [name for name in asked if shares_devices(name) and not is_vgpu(name)]),
        (NPU_CORES, [name for name in asked if name == card_names.NPU_CORE]),
    ):
        if wanted:
            yield Demand(requirement, "resources.requests", _few(wanted))
    if vgpus := [name for name in asked if is_vgpu(name)]:
        yield Demand(DEVICE_SHARING, "resources.requests", _few(vgpus), card_names.VGPU_REGISTER)
    if spec.volumes:
        yield from _of_volumes(spec.volumes)
    for requirement, fields in (
        (NODE_FILTERS, list(_filtering(spec))),
        (NODE_PREFERENCES, list(_preferring(spec))),
    ):
        if fields:
            yield Demand(requirement, ", ".join(fields), "")
    if (
        spec.os is not None
        and spec.os.name not in ("", "linux")
        and names.OS not in (spec.node_selector or {})
    ):
        yield Demand(OPERATING_SYSTEM, "spec.os", spec.os.name[:63])


def _filtering(spec: PodSpec) -> Iterator[str]:
    """The fields that keep a pod from nodes."""
    if spec.node_selector:
        yield "spec.nodeSelector"
    for field, terms in _affinities(spec):
        if terms is not None and terms.required:
            yield f"required spec.affinity.{field}"
    if any(port.host_port for container in spec.containers for port in container.ports):
        yield "hostPort of containers"
    if any(spread.when_unsatisfiable == names.DO_NOT_SCHEDULE for spread in spec.topology_spread_constraints):
        yield "spec.topologySpreadConstraints"


def _preferring(spec: PodSpec) -> Iterator[str]:
    """The fields by which a pod prefers nodes."""
    for field, terms in _affinities(spec):
        if terms is not None and terms.preferred:
            yield f"preferred spec.affinity.{field}"
    if any(spread.when_unsatisfiable == names.SCHEDULE_ANYWAY for spread in spec.topology_spread_constraints):
        yield "spec.topologySpreadConstraints (ScheduleAnyway)"


def _affinities(spec: PodSpec) -> Iterator[tuple[str, NodeAffinity | PodAffinity | None]]:
    if spec.affinity is not None:
        yield "nodeAffinity", spec.affinity.node_affinity
        yield "podAffinity", spec.affinity.pod_affinity
        yield "podAntiAffinity", spec.affinity.pod_anti_affinity


def _of_volumes(volumes: Iterable[Volume]) -> Iterator[Demand]:
    claimed = [volume.name for volume in volumes if volume.persistent_volume_claim or volume.ephemeral]
    if claimed:
        yield Demand(VOLUME_BINDING, "spec.volumes", _few(claimed))
    attached = [volume.name for volume in volumes if volume.attached_disk]
    if attached:
        yield Demand(VOLUME_LIMITS, "spec.volumes", _few(attached))


def _resources(resources: Iterable[Resources]) -> list[str]:
    """The names of all requested resources, each once."""
    asked: dict[str, None] = {}
    for each in resources:
        for amounts in (each.requests, each.limits):
            for name in amounts:
                if "/" in name and exact(amounts[name]) > Fraction(0):
                    asked[name] = None
    return list(asked)


def shares_devices(resource: str) -> bool:
    """Whether a resource is a part of a device, by the names of Volcano's device models (spec 04 10.3-10.6)."""
    whole_card_memory = resource.startswith("huawei.com/") and resource.endswith("-memory")
    return resource.startswith(_SHARED_DEVICES) or whole_card_memory


def is_vgpu(resource: str) -> bool:
    """Whether a resource is a part of a GPU that Volcano's vGPU device plugin serves."""
    return resource.startswith(_VGPU)


def _few(texts: list[str]) -> str:
    shown = ", ".join(text[:63] for text in texts[:SHOWN])
    return f"{shown}, ..." if len(texts) > SHOWN else shown
