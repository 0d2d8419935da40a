"""A cluster of two teams, one of which has a secret in all that can be named; and users with rights on parts of it."""

from __future__ import annotations

from typing import Any

from tests.embedded.api_requests import MERGE, ApiCaller

SECRET = "zzsecretzz"
"""In names, labels and messages of the other team."""
SECRET_CPUS = "7919"
"""That a pod of the other team asks for."""
TEAM, OTHER_TEAM = "team", f"{SECRET}-space"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/{}/pods"
EVENTS = "/api/v1/namespaces/{}/events"
Rule = dict[str, list[str]]


def rule(verbs: str, *resources: str) -> Rule:
    """`resource.group` each."""
    parts = [each.partition(".") for each in resources]
    return {
        "verbs": verbs.split(),
        "apiGroups": sorted({group for _, _, group in parts}),
        "resources": [resource for resource, _, _ in parts],
    }


WORKLOADS = ("pods", "events", "podgroups.scheduling.volcano.sh", "jobs.batch.volcano.sh")


async def token_of(api: ApiCaller, name: str) -> str:
    """Of a new service account."""
    await api.post(ACCOUNTS, {"metadata": {"name": name}})
    token: str = (await api.post(f"{ACCOUNTS}/{name}/token", {"spec": {}}))["status"]["token"]
    return token


async def grant(api: ApiCaller, account: str, *rules: Rule, namespace: str = "") -> str:
    """The address of the binding."""
    where = f"{ROLES}/namespaces/{namespace}/" if namespace else f"{ROLES}/cluster"
    kind = "Role" if namespace else "ClusterRole"
    await api.post(f"{where}roles", {"metadata": {"name": account}, "rules": list(rules)})
    subject = {"kind": "ServiceAccount", "namespace": "default", "name": account}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": account}
    binding = {"metadata": {"name": account}, "roleRef": reference, "subjects": [subject]}
    await api.post(f"{where}rolebindings", binding)
    return f"{where}rolebindings/{account}"


async def put(api: ApiCaller, path: str, name: str, status: Any = None, **fields: Any) -> None:
    """A new object; its status goes its own way where there is one."""
    labels = fields.pop("labels", {})
    metadata = {
        "name": name,
        "labels": labels,
        "annotations": {"note": name, **fields.pop("annotations", {})},
    }
    await api.post(path, {"metadata": metadata, "status": status or {}, **fields})
    if status is not None:
        code, answer = await api.request("PATCH", f"{path}/{name}/status", {"status": status}, MERGE)
        assert code in (200, 404), answer  # 404: the kind has no such way, and its status was created


def pod_spec(cpus: str, node: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpus}}}
    return {"containers": [container], **({"nodeName": node} if node else {})}


async def add_job(
    api: ApiCaller, namespace: str, name: str, queue: str, cpus: str = "1", node: str = ""
) -> None:
    """A Job with its PodGroup and one pod, which runs or waits."""
    phase = "Running" if node else "Inqueue"
    task = {"name": "main", "replicas": 1, "template": {"spec": pod_spec(cpus, "")}}
    spec = {"queue": queue, "minAvailable": 1, "schedulerName": "volcano", "tasks": [task]}
    state = {"state": {"phase": "Running" if node else "Pending"}}
    await put(api, JOBS.format(namespace), name, state, spec=spec, labels={"app": name})
    said = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": f"{name} does not fit",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "transitionID": "1",
    }
    status = {"phase": phase, "conditions": [] if node else [said]}
    group = {"queue": queue, "minMember": 1}
    await put(api, GROUPS.format(namespace), name, status, spec=group)
    annotations = {"scheduling.k8s.io/group-name": name, "volcano.sh/job-name": name}
    status = {"phase": "Running" if node else "Pending", "message": f"{name} says so"}
    await put(
        api,
        PODS.format(namespace),
        f"{name}-main-0",
        status,
        spec=pod_spec(cpus, node),
        annotations=annotations,
        labels={"volcano.sh/job-name": name},
    )
    await add_eviction(api, namespace, name)


async def add_eviction(api: ApiCaller, namespace: str, name: str, text: str = "") -> None:
    event = {
        "metadata": {"name": f"{name}-evicted{text}"},
        "involvedObject": {"kind": "Pod", "namespace": namespace, "name": f"{name}-main-0"},
        "reason": "Evict",
        "message": f"Pod is evicted, because of {name}{text}",
        "type": "Normal",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    await api.post(EVENTS.format(namespace), event)


async def add_node(api: ApiCaller, name: str) -> None:
    amounts = {"cpu": "10000", "memory": "64Gi", "pods": "100"}
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    await put(api, NODES, name, status, labels={"rack": name})


async def populate(api: ApiCaller) -> None:
    """Two namespaces, two queues, two nodes and two HyperNodes; a running and a waiting job in each namespace."""
    for namespace in (TEAM, OTHER_TEAM):
        await put(api, "/api/v1/namespaces", namespace)
    for name in ("node-1", f"{SECRET}-node"):
        await add_node(api, name)
        member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        await put(api, HYPER_NODES, f"rack-{name}", spec={"tier": 1, "members": [member]})
    for name in ("team-queue", f"{SECRET}-queue"):
        await put(api, QUEUES, name, {"state": "Open"}, spec={"weight": 1})
    await add_job(api, TEAM, "train", "team-queue", node="node-1")
    await add_job(api, TEAM, "wait", "team-queue")
    await add_job(api, OTHER_TEAM, f"{SECRET}-train", f"{SECRET}-queue", SECRET_CPUS, f"{SECRET}-node")
    await add_job(api, OTHER_TEAM, f"{SECRET}-wait", f"{SECRET}-queue", SECRET_CPUS)
