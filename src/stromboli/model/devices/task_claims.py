"""The claims of a task: those that exist, their problems, and the consumers that reserve them (spec 04 2.12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from stromboli.api import device_messages as messages
from stromboli.api.types.devices import ConsumerReference, DeviceClaim, ResourceClaimSpec
from stromboli.model.amounts import Amounts, shift
from stromboli.model.devices.claim_plan import CREATE_CLASS
from stromboli.model.devices.claim_use import DeviceAmounts, device_amounts
from stromboli.model.devices.extended_resources import asked_resources, extended_requests
from stromboli.model.remedy import Rank, Remedy, Why

if TYPE_CHECKING:
    from stromboli.api.types.devices import DeviceClass, ResourceClaim
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.devices.claim_use import ClaimUse
    from stromboli.model.devices.device_ledger import DeviceLedger
    from stromboli.model.devices.pod_claims import PodClaim
    from stromboli.model.dimensions import Dimensions
    from stromboli.model.task import Task

MAX_CONSUMERS = 256
"""Maximum consumers of a claim at the same time: the limit of an API server."""
NATIVE_GROUPS = "scheduling.k8s.io"
_CREATE_TEMPLATE = "create the ResourceClaimTemplate that it references: its claim is generated from it"
_SEPARATE_CLAIM = Remedy("wait until the other pod releases the claim, or use a separate claim")


def task_claims(ledger: DeviceLedger, task: Task) -> list[ClaimUse]:
    """The claims of a task that exist, each once, in the order of its pod."""
    keys = dict.fromkeys(f"{task.namespace}/{claim.claim}" for claim in task.claims)
    uses = (ledger.claims.get(key) for key in keys)
    return [use for use in uses if use is not None and use.object is not None]


def claimed_amounts(ledger: DeviceLedger, dims: Dimensions, *tasks: Task) -> Amounts:
    """What the claims, each once, and extended resources of tasks count against limits, by the keys of queues."""
    total: Amounts = {}
    claims = dict.fromkeys(use for task in tasks for use in task_claims(ledger, task))
    listed = [use.content.amounts for use in claims if use.content is not None]
    for amounts in (*listed, *(extended_amounts(task.shape.spec, ledger.extended) for task in tasks)):
        shift(total, {dims.index[name]: amount for name, amount in amounts.items() if name in dims.index})
    return total


def extended_amounts(spec: PodSpec, served: Mapping[str, str]) -> DeviceAmounts:
    """The devices of a pod's extended resources, by the keys of queues, even if a node may list these."""
    resources = asked_resources(spec, served) if served else []
    if not resources:
        return {}
    return device_amounts(ResourceClaimSpec(DeviceClaim(extended_requests(spec, resources, served).requests)))


def claim_problem(ledger: DeviceLedger, classes: dict[str, DeviceClass], task: Task) -> Why | None:
    """Why no node can accept a task because of its claims, in Kubernetes' wording."""
    for claim in task.claims:
        if problem := _lookup_problem(ledger, task, claim):
            return problem
    for use in task_claims(ledger, task):
        if problem := _use_problem(use, classes, task):
            return problem
    text = _container_problem(task.shape.spec)
    return Why(text) if text else None


def _container_problem(spec: PodSpec) -> str | None:
    """Check for a container that uses a claim missing in its pod; API servers refuse such pods."""
    known = {entry.name for entry in spec.resource_claims}
    for container in (*spec.containers, *spec.init_containers):
        for claim in container.resources.claims:
            if claim.name not in known:
                return messages.NOT_OF_POD.format(container=container.name, name=claim.name)
    return None


def _mistake(text: str, remedy: str) -> Why:
    return Why(text, Remedy(remedy, rank=Rank.MISTAKE))


def _lookup_problem(ledger: DeviceLedger, task: Task, claim: PodClaim) -> Why | None:
    """Why this task cannot use a claim on any node."""
    if not claim.claim:
        if claim.template:
            text = messages.NOT_CREATED.format(namespace=task.namespace, pod=task.name)
            return _mistake(text, _CREATE_TEMPLATE)
        return Why(messages.UNSUPPORTED.format(namespace=task.namespace, pod=task.name, name=claim.name))
    use = ledger.claims.get(f"{task.namespace}/{claim.claim}")
    if use is None or use.object is None:
        text = messages.NOT_FOUND.format(namespace=task.namespace, name=claim.claim)
        return _mistake(text, "create the ResourceClaim")
    if use.object.metadata.deletion_timestamp is not None:
        return Why(messages.BEING_DELETED.format(name=claim.claim))
    if not claim.template or use.controller == task.uid or _is_of_group(use.object, task):
        return None
    group = _native_group(task)
    text = messages.OF_ANOTHER_GROUP if group else messages.OF_ANOTHER_POD
    return Why(text.format(namespace=task.namespace, name=claim.claim, pod=task.name, group=group))


def _use_problem(use: ClaimUse, classes: dict[str, DeviceClass], task: Task) -> Why | None:
    if use.object is None:
        return None
    if use.allocation is None:
        return next(_request_problems(use.object, classes), None)
    reserved = use.object.status.reserved_for
    if len(reserved) >= MAX_CONSUMERS and consumer_uid(task, use) not in [each.uid for each in reserved]:
        return Why(messages.IN_USE, _SEPARATE_CLAIM)
    return None


def _request_problems(claim: ResourceClaim, classes: dict[str, DeviceClass]) -> Iterator[Why]:
    """Check for requests of unknown kinds, and of classes that do not exist."""
    for request in claim.spec.devices.requests:
        asked = [(request.name, request.exactly.device_class_name)] if request.exactly else []
        asked += [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
        if not asked:
            text = messages.UNKNOWN_REQUEST
            yield Why(text.format(namespace=claim.namespace, name=claim.name, request=request.name))
        for name, class_name in asked:
            if not class_name:
                yield Why(messages.CLASS_UNNAMED.format(request=name))
            elif class_name not in classes:
                yield _mistake(messages.CLASS_MISSING.format(request=name, name=class_name), CREATE_CLASS)


# -- the consumer of a claim


def consumer(task: Task, use: ClaimUse) -> ConsumerReference:
    """The consumer that reserves a claim for a task: its native PodGroup if the claim is the group's, else the pod."""
    job = task.job
    if job is not None and job.native is not None and job.group is not None and _is_groups_claim(task, use):
        meta = job.group.metadata
        return ConsumerReference(NATIVE_GROUPS, "podgroups", meta.name, meta.uid)
    return ConsumerReference("", "pods", task.name, task.uid)


def consumer_uid(task: Task, use: ClaimUse) -> str:
    return consumer(task, use).uid


def _is_groups_claim(task: Task, use: ClaimUse) -> bool:
    native = task.job.native if task.job is not None else None
    return native is not None and any(
        claim.is_entry(entry)
        for claim in task.claims
        if f"{task.namespace}/{claim.claim}" == use.key
        for entry in native.resource_claims
    )


def _native_group(task: Task) -> str:
    """The name of the native PodGroup of a task; empty if it has none."""
    return task.job.name if task.job is not None and task.job.native is not None else ""


def _is_of_group(claim: ResourceClaim, task: Task) -> bool:
    """Whether a claim was made for the native PodGroup of a task, and not for an earlier group of the same name."""
    job = task.job
    if job is None or job.native is None or job.group is None:
        return False
    group = job.group.metadata
    return any(
        owner.controller
        and owner.kind == "PodGroup"
        and (owner.name, owner.uid) == (group.name, group.uid)
        and owner.api_version.startswith(f"{NATIVE_GROUPS}/")
        for owner in claim.metadata.owner_references
    )
