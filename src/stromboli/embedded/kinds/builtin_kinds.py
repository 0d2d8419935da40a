"""The kinds that the server has from the start, in the order in which discovery lists them."""

from __future__ import annotations

from stromboli.embedded.kinds.builtin import (
    cluster_role,
    cluster_role_binding,
    config_map,
    controller_revision,
    cron_job,
    csi_driver,
    csi_node,
    csi_storage_capacity,
    custom_resource_definition,
    daemon_set,
    deployment,
    device_class,
    endpoint_slice,
    endpoints,
    event,
    horizontal_pod_autoscaler,
    ingress,
    job,
    lease,
    limit_range,
    mutating_webhook_configuration,
    namespace,
    network_policy,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_disruption_budget,
    pod_group,
    pod_template,
    priority_class,
    replica_set,
    replication_controller,
    resource_claim,
    resource_claim_template,
    resource_quota,
    resource_slice,
    role,
    role_binding,
    secret,
    service,
    service_account,
    stateful_set,
    storage_class,
    validating_webhook_configuration,
    volume_attachment,
    workload,
)
from stromboli.embedded.kinds.builtin.metrics import METRICS
from stromboli.embedded.kinds.builtin.reviews import REVIEWS
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.strategy import DEFINED, Strategy

__all__ = ("BUILT_IN", "METRICS", "REVIEWS", "is_built_in", "strategy_of")

BUILT_IN: tuple[Kind, ...] = tuple(
    module.KIND
    for module in (
        pod,
        node,
        namespace,
        service,
        service_account,
        config_map,
        secret,
        event,
        endpoints,
        limit_range,
        pod_template,
        resource_quota,
        replication_controller,
        persistent_volume_claim,
        persistent_volume,
        lease,
        priority_class,
        pod_group,
        workload,
        pod_disruption_budget,
        job,
        cron_job,
        deployment,
        replica_set,
        stateful_set,
        daemon_set,
        controller_revision,
        network_policy,
        ingress,
        endpoint_slice,
        horizontal_pod_autoscaler,
        role,
        role_binding,
        cluster_role,
        cluster_role_binding,
        storage_class,
        volume_attachment,
        csi_node,
        csi_driver,
        csi_storage_capacity,
        device_class,
        resource_claim,
        resource_claim_template,
        resource_slice,
        custom_resource_definition,
        mutating_webhook_configuration,
        validating_webhook_configuration,
    )
)
_STRATEGIES = {kind.id: kind.strategy for kind in (*BUILT_IN, *METRICS)}

_IDS = frozenset(kind.id for kind in (*BUILT_IN, *REVIEWS, *METRICS))


def strategy_of(resource: str) -> Strategy:
    """The strategy of a resource, by its id: `pods`, `jobs.batch`."""
    return _STRATEGIES.get(resource, DEFINED)


def is_built_in(resource: str) -> bool:
    """Whether a resource is served from the start, by its id."""
    return resource in _IDS
