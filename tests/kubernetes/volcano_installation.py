"""A cluster as Volcano leaves it (spec 05 15 and 17, 06 2, 07 2.1): its installation by Helm, and work in every stage.

Objects are written here as Volcano's programs write them; none of our own code makes them. Its scheduler and its
controllers do not run: whatever they had to do before the test begins is done.
"""

from __future__ import annotations

import base64
import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from stromboli.admission.webhook_certificates import issue
from tests.deploy.manifests import DEPLOY, build
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.process_kubelet import MERGE, NODE

Json = Any
SYSTEM = "volcano-system"
TEAM = "research"
HELM = {"meta.helm.sh/release-name": "volcano", "meta.helm.sh/release-namespace": SYSTEM}
BY_HELM = {"app.kubernetes.io/managed-by": "Helm"}
REPLICAS = {"volcano-scheduler": 1, "volcano-controllers": 1, "volcano-admission": 1}
BATCH, FLOW = "/apis/batch.volcano.sh/v1alpha1", "/apis/flow.volcano.sh/v1alpha1"
SCHEDULING, TOPOLOGY = "/apis/scheduling.volcano.sh/v1beta1", "/apis/topology.volcano.sh/v1alpha1"
POLICY = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
WEBHOOKS = {
    "jobs/mutate": ("mutatejob", "batch.volcano.sh", "v1alpha1", ["CREATE"]),
    "jobs/validate": ("validatejob", "batch.volcano.sh", "v1alpha1", ["CREATE", "UPDATE"]),
    "podgroups/validate": ("validatepodgroup", "scheduling.volcano.sh", "v1beta1", ["CREATE"]),
    "queues/mutate": ("mutatequeue", "scheduling.volcano.sh", "v1beta1", ["CREATE"]),
    "queues/validate": ("validatequeue", "scheduling.volcano.sh", "v1beta1", ["CREATE", "UPDATE", "DELETE"]),
    "hypernodes/validate": ("validatehypernodes", "topology.volcano.sh", "v1alpha1", ["CREATE", "UPDATE"]),
    "cronjobs/validate": ("validatecronjob", "batch.volcano.sh", "v1alpha1", ["CREATE", "UPDATE"]),
}
"""What the chart asks about unless told otherwise, by path."""
TIME = "2026-01-05T10:00:00Z"


def definitions() -> list[Json]:
    """Volcano's CRDs: pod templates without a schema, no descriptions, one field more than ours and one less."""
    made = []
    for ours in build(DEPLOY / "crds"):
        crd = _loosened(copy.deepcopy(ours))
        crd["metadata"]["annotations"] = {
            "controller-gen.kubebuilder.io/version": "v0.19.0",
            "helm.sh/resource-policy": "keep",
            **HELM,
        }
        crd["metadata"]["labels"] = BY_HELM
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].get("spec")
        if crd["spec"]["names"]["kind"] == "HyperNode":
            spec["properties"]["building"] = {"type": "string"}
        if crd["spec"]["names"]["kind"] == "Queue":
            del spec["properties"]["dequeueStrategy"]
        made.append(crd)
    return [*made, _colocation()]


def _loosened(schema: Json) -> Json:
    """Without descriptions, and anything goes below a pod template."""
    if isinstance(schema, list):
        return [_loosened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "containers" in schema.get("properties", {}):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    described = isinstance(schema.get("description"), str)
    return {key: _loosened(part) for key, part in schema.items() if not (described and key == "description")}


def _colocation() -> Json:
    """A kind of Volcano's that we do not have."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": "colocationconfigurations", "kind": "ColocationConfiguration"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "colocationconfigurations.config.volcano.sh", "annotations": HELM},
        "spec": {"group": "config.volcano.sh", "scope": "Namespaced", "names": names, "versions": [version]},
    }


# -- what the chart installs


def _meta(name: str, space: str = SYSTEM, **labels: str) -> Json:
    place = {"namespace": space} if space else {}
    return {"name": name, **place, "labels": {**BY_HELM, **labels}, "annotations": HELM}


def _deployment(component: str, app: str, image: str, **pod: Json) -> Json:
    labels = {"app": app}
    container = {"name": f"volcano-{component}", "image": f"docker.io/volcanosh/{image}:v1.15.0"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(f"volcano-{component}", app=app),
        "spec": {
            "replicas": REPLICAS[f"volcano-{component}"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"rollme/helm-revision": "1"}},
                "spec": {
                    "serviceAccountName": f"volcano-{component}",
                    "priorityClassName": "system-cluster-critical",
                    "containers": [{**container, "args": pod.pop("args")}],
                    **pod,
                },
            },
        },
    }


def _admission() -> Json:
    made = _deployment(
        "admission",
        "volcano-admission",
        "vc-webhook-manager",
        args=[
            f"--enabled-admission={','.join(f'/{path}' for path in WEBHOOKS)}",
            "--tls-cert-file=/admission.local.config/certificates/tls.crt",
            "--tls-private-key-file=/admission.local.config/certificates/tls.key",
            "--ca-cert-file=/admission.local.config/certificates/ca.crt",
            f"--webhook-namespace={SYSTEM}",
            "--webhook-service-name=volcano-admission-service",
            "--enable-healthz=true",
            "--logtostderr",
            "--port=8443",
        ],
        volumes=[{"name": "admission-certs", "secret": {"secretName": "volcano-admission-secret"}}],
    )
    mount = {"name": "admission-certs", "mountPath": "/admission.local.config/certificates", "readOnly": True}
    made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
    return made


def _service(component: str, app: str, **port: Json) -> Json:
    spec = {"selector": {"app": app}, "ports": [{"protocol": "TCP", **port}]}
    meta = _meta(f"volcano-{component}-service", app=app)
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _rights(component: str) -> list[Json]:
    group = "rbac.authorization.k8s.io"
    name = f"volcano-{component}"
    rules = [
        {"apiGroups": ["scheduling.volcano.sh"], "resources": ["queues"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            "verbs": ["get", "list", "watch", "create", "update"],
        },
    ]
    subject = {"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}
    role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    binding = {"metadata": _meta(f"{name}-role", ""), "roleRef": role, "subjects": [subject]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(name)},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": _meta(name, ""), "rules": rules},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", **binding},
    ]


def _config(name: str, key: str, text: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(name), "data": {key: text}}


def _webhook(path: str, bundle: str) -> Json:
    name, group, version, operations = WEBHOOKS[path]
    plural, _, verb = path.partition("/")
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [SYSTEM, "kube-system"]}
    service = {"name": "volcano-admission-service", "namespace": SYSTEM, "path": f"/{path}", "port": 443}
    rule = {"apiGroups": [group], "apiVersions": [version], "resources": [plural], "operations": operations}
    webhook = {
        "name": f"{name}.volcano.sh",
        "clientConfig": {"service": service, "caBundle": bundle},
        "rules": [{**rule, "scope": "*"}],
        "namespaceSelector": {"matchExpressions": [elsewhere]},
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{'Mutating' if verb == 'mutate' else 'Validating'}WebhookConfiguration",
        "metadata": _meta(f"volcano-admission-service-{path.replace('/', '-')}", ""),
        "webhooks": [webhook],
    }


def install_components(plane: ControlPlane) -> None:
    """What `helm install volcano` leaves but for webhooks: CRDs, three components, their configuration, two queues."""
    for crd in definitions():
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=helm"
        plane.request("POST", path, crd)
    plane.wait_established()
    for space in (SYSTEM, TEAM):
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
    service = f"volcano-admission-service.{SYSTEM}.svc"
    keys = issue([service], datetime.now(UTC))
    secret = {"ca.crt": keys.authority, "tls.crt": keys.certificate, "tls.key": keys.key}
    data = {name: base64.b64encode(content).decode() for name, content in secret.items()}
    meta = {"name": "volcano-admission-secret", "namespace": SYSTEM}
    flags = ["--logtostderr", "--enable-healthz=true", "--leader-elect=true", "-v=3"]
    plane.apply(
        *(part for component in ("scheduler", "controllers", "admission") for part in _rights(component)),
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data},
        _config("volcano-scheduler-configmap", "volcano-scheduler.conf", POLICY),
        _config("volcano-controller-configmap", "volcano-controller.conf", "networkTopologyDiscovery: []\n"),
        _config("volcano-admission-configmap", "volcano-admission.conf", "resourceGroups: []\n"),
        _deployment("scheduler", "volcano-scheduler", "vc-scheduler", args=flags),
        _deployment("controllers", "volcano-controller", "vc-controller-manager", args=flags),
        _admission(),
        _service("scheduler", "volcano-scheduler", name="metrics", port=8080, targetPort=8080),
        _service("controllers", "volcano-controller", name="metrics", port=8081, targetPort=8081),
        _service("admission", "volcano-admission", port=443, targetPort=8443),
    )
    for name, holder in (("volcano", "scheduler"), ("vc-controller-manager", "controllers")):
        _lease(plane, name, f"volcano-{holder}-6d5f_8c4e")
    _queue(plane, "root", spec={"weight": 1, "reclaimable": False})
    _queue(plane, "default", spec={"weight": 1, "parent": "root", "reclaimable": True})


def install_webhooks(plane: ControlPlane) -> None:
    """What the API server asks Volcano about, with the authority that its webhook server writes there."""
    path = f"/api/v1/namespaces/{SYSTEM}/secrets/volcano-admission-secret"
    bundle = json.loads(plane.request("GET", path))["data"]["ca.crt"]
    plane.apply(*(_webhook(path, bundle) for path in WEBHOOKS))


def _lease(plane: ControlPlane, name: str, holder: str) -> None:
    """Held by a component that was killed: nobody gave it back, and it is about to run out."""
    renewed = (datetime.now(UTC) - timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "acquireTime": renewed,
        "renewTime": renewed,
    }
    path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
    plane.request("POST", path, {"metadata": {"name": name}, "spec": spec})


# -- work


def start_work(plane: ControlPlane) -> None:
    """Nodes, queues, and jobs in every stage."""
    for number in range(4):
        _node(plane, f"node-{number}", cpu=8)
    for name, members in (("rack-0", ("node-0", "node-1")), ("rack-1", ("node-2", "node-3"))):
        _hyper_node(plane, name, members)
    _queue(plane, "science", spec={"weight": 4, "parent": "root", "reclaimable": True})
    _queue(plane, "closed", state="Closed", spec={"weight": 1, "parent": "root", "reclaimable": True})
    _job(plane, "running", pods=("node-0", "node-1"), phase="Running", queue="science")
    _job(plane, "waiting", pods=("", "", ""), phase="Pending")
    _job(plane, "half", pods=("node-2", "", ""), phase="Pending")
    _job(plane, "suspended", pods=(), replicas=2, phase="Aborted")
    _job(plane, "unwanted", pods=("node-3",), phase="Running")
    _job(plane, "done", pods=("node-3",), phase="Completed")
    _plain_pod(plane)
    _flow(plane)
    _cron_job(plane)


def add_infrastructure_node(plane: ControlPlane) -> None:
    """For the pods of components; no work goes there."""
    _node(plane, NODE, cpu=8, unschedulable=True)


def _node(plane: ControlPlane, name: str, cpu: int, **spec: Json) -> None:
    room = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
    plane.request("POST", "/api/v1/nodes", {"metadata": {"name": name}, "spec": spec, "status": status})


def _hyper_node(plane: ControlPlane, name: str, members: tuple[str, ...]) -> None:
    exact = [{"type": "Node", "selector": {"exactMatch": {"name": member}}} for member in members]
    body = _whole(TOPOLOGY, "HyperNode", {"name": name}, {"tier": 1, "members": exact, "building": "b7"})
    _post(plane, f"{TOPOLOGY}/hypernodes", body, {"nodeCount": len(members)})


def _queue(plane: ControlPlane, name: str, spec: Json, state: str = "Open") -> None:
    body = _whole(SCHEDULING, "Queue", {"name": name}, spec)
    _post(plane, f"{SCHEDULING}/queues", body, {"state": state, "allocated": {"cpu": "0", "memory": "0"}})


def _job(
    plane: ControlPlane,
    name: str,
    pods: tuple[str, ...],
    phase: str,
    replicas: int = 0,
    queue: str = "default",
) -> None:
    """A job with the status that Volcano wrote, its PodGroup and its pods, each on a node or on none."""
    size = replicas or len(pods)
    template = {"spec": {**_pod_spec(), "restartPolicy": "OnFailure"}}
    task = {"name": "worker", "replicas": size, "minAvailable": size, "maxRetry": 3, "template": template}
    spec = {"schedulerName": "volcano", "queue": queue, "minAvailable": size, "maxRetry": 3, "tasks": [task]}
    phases: dict[str, int] = {}
    for node in pods:
        pod_phase = "Succeeded" if phase == "Completed" else "Running" if node else "Pending"
        phases[pod_phase] = phases.get(pod_phase, 0) + 1
    status = {
        "state": {"phase": phase, "lastTransitionTime": TIME},
        "conditions": [{"status": phase, "lastTransitionTime": TIME}],
        "minAvailable": size,
        **{pod_phase.lower(): count for pod_phase, count in phases.items()},
        **({"taskStatusCount": {"worker": {"phase": phases}}} if phases else {}),
        **({"version": 1} if phase in ("Aborted", "Completed") else {}),
    }
    body = _whole(BATCH, "Job", {"name": name, "namespace": TEAM}, spec)
    job = _post(plane, f"{BATCH}/namespaces/{TEAM}/jobs", body, status)
    group = f"{name}-{job['metadata']['uid']}"
    if phase not in ("Aborted", "Completed"):
        _group(plane, job, group, size, phase)
    for index, node in enumerate(pods):
        _job_pod(plane, job, group, index, node, "Succeeded" if phase == "Completed" else "")


def _group(plane: ControlPlane, job: Json, name: str, size: int, phase: str) -> None:
    state = "Running" if phase == "Running" else "Inqueue"
    reason = {"reason": "NotEnoughResources", "message": f"{size}/0 tasks in gang unschedulable"}
    condition = {"type": "Unschedulable", "status": "True", "transitionID": "a1", "lastTransitionTime": TIME}
    if state == "Running":
        condition |= {"type": "Scheduled"}
        reason = {"reason": "tasks in gang are ready to be scheduled"}
    meta = {"name": name, "namespace": TEAM, "ownerReferences": [_owner(job, BATCH, "Job")]}
    spec = {"minMember": size, "minTaskMember": {"worker": size}, "queue": job["spec"]["queue"]}
    resources = {
        "cpu": str(2 * size),
        "requests.cpu": str(2 * size),
        "pods": str(size),
        "count/pods": str(size),
    }
    body = _whole(SCHEDULING, "PodGroup", meta, {**spec, "minResources": resources})
    body["status"] = {"phase": state, "conditions": [{**condition, **reason}]}
    plane.request("POST", f"{SCHEDULING}/namespaces/{TEAM}/podgroups", body)


def _job_pod(plane: ControlPlane, job: Json, group: str, index: int, node: str, phase: str) -> None:
    name, queue = job["metadata"]["name"], job["spec"]["queue"]
    shared = {
        "volcano.sh/job-name": name,
        "volcano.sh/queue-name": queue,
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": "worker",
    }
    alone = {
        "scheduling.k8s.io/group-name": group,
        "volcano.sh/job-retry-count": "0",
        "volcano.sh/job-version": "0",
        "volcano.sh/template-uid": f"{name}-worker",
    }
    meta = {
        "name": f"{name}-worker-{index}",
        "namespace": TEAM,
        "labels": {**shared, "volcano.sh/job-namespace": TEAM},
        "annotations": {**shared, **alone},
        "ownerReferences": [_owner(job, BATCH, "Job")],
    }
    _pod(plane, meta, node, phase)


def _pod(plane: ControlPlane, meta: Json, node: str, phase: str = "") -> None:
    body = {
        "metadata": meta,
        "spec": {**_pod_spec(), "restartPolicy": "OnFailure", "schedulerName": "volcano"},
    }
    path = f"/api/v1/namespaces/{TEAM}/pods"
    plane.request("POST", path, body)
    if node:
        target = {"metadata": {"name": meta["name"]}, "target": {"kind": "Node", "name": node}}
        plane.request("POST", f"{path}/{meta['name']}/binding", target)
    if phase:
        plane.request("PATCH", f"{path}/{meta['name']}/status", {"status": {"phase": phase}}, MERGE)


def _pod_spec() -> Json:
    asks = {"requests": {"cpu": "2"}}
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.example.com/train:1", "resources": asks}],
    }


def _plain_pod(plane: ControlPlane) -> None:
    """A pod of no job, with the PodGroup that Volcano makes for it."""
    group = "podgroup-1d0cf4c8-6a3b-4c8e-9a54-3a0f2f6f7c11"
    meta = {"name": "notebook", "namespace": TEAM, "annotations": {"scheduling.k8s.io/group-name": group}}
    _pod(plane, meta, "node-3")
    pod = json.loads(plane.request("GET", f"/api/v1/namespaces/{TEAM}/pods/notebook"))
    owned = {"name": group, "namespace": TEAM, "ownerReferences": [_owner(pod, "/api/v1", "Pod")]}
    body = _whole(SCHEDULING, "PodGroup", owned, {"minMember": 1, "queue": "default"})
    body["status"] = {"phase": "Running", "running": 1}
    plane.request("POST", f"{SCHEDULING}/namespaces/{TEAM}/podgroups", body)


def _flow(plane: ControlPlane) -> None:
    """Two steps: the first one is done, the second one waits for controllers."""
    task = {
        "name": "worker",
        "replicas": 1,
        "template": {"spec": {**_pod_spec(), "restartPolicy": "OnFailure"}},
    }
    spec = {"minAvailable": 1, "schedulerName": "volcano", "queue": "default", "maxRetry": 3, "tasks": [task]}
    for step in ("fetch", "train"):
        meta = {"name": step, "namespace": TEAM}
        plane.request(
            "POST", f"{FLOW}/namespaces/{TEAM}/jobtemplates", _whole(FLOW, "JobTemplate", meta, spec)
        )
    flows = [{"name": "fetch"}, {"name": "train", "dependsOn": {"targets": ["fetch"]}}]
    spec_of_flow = {"flows": flows, "jobRetainPolicy": "retain"}
    body = _whole(FLOW, "JobFlow", {"name": "study", "namespace": TEAM}, spec_of_flow)
    flow = _post(plane, f"{FLOW}/namespaces/{TEAM}/jobflows", body, {"state": {"phase": "Running"}})
    made_by = {
        "volcano.sh/createdByJobTemplate": f"{TEAM}.fetch",
        "volcano.sh/createdByJobFlow": f"{TEAM}.study",
    }
    meta = {"name": "study-fetch", "namespace": TEAM, "labels": made_by, "annotations": made_by}
    meta["ownerReferences"] = [_owner(flow, FLOW, "JobFlow")]
    status = {"state": {"phase": "Completed", "lastTransitionTime": TIME}, "minAvailable": 1, "version": 1}
    _post(plane, f"{BATCH}/namespaces/{TEAM}/jobs", _whole(BATCH, "Job", meta, spec), status)


def _cron_job(plane: ControlPlane) -> None:
    """Due once a year, at New Year."""
    task = {
        "name": "worker",
        "replicas": 1,
        "template": {"spec": {**_pod_spec(), "restartPolicy": "OnFailure"}},
    }
    spec = {"schedule": "0 0 1 1 *", "timeZone": "UTC", "jobTemplate": {"spec": {"tasks": [task]}}}
    body = _whole(BATCH, "CronJob", {"name": "yearly", "namespace": TEAM}, spec)
    status = {"lastScheduleTime": "2026-01-01T00:00:00Z", "lastSuccessfulTime": "2026-01-01T00:10:00Z"}
    _post(plane, f"{BATCH}/namespaces/{TEAM}/cronjobs", body, status)


def command_abort(plane: ControlPlane, name: str) -> None:
    """What `vcctl job suspend` writes, while no controllers run."""
    job = json.loads(plane.request("GET", f"{BATCH}/namespaces/{TEAM}/jobs/{name}"))
    owner = _owner(job, BATCH, "Job")
    body = {"metadata": {"generateName": f"{name}-abortjob-"}, "action": "AbortJob", "target": owner}
    path = f"/apis/bus.volcano.sh/v1alpha1/namespaces/{TEAM}/commands"
    plane.request("POST", path, {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", **body})


def _whole(root: str, kind: str, meta: Json, spec: Json) -> Json:
    return {"apiVersion": root.removeprefix("/apis/"), "kind": kind, "metadata": meta, "spec": spec}


def _owner(owner: Json, root: str, kind: str) -> Json:
    return {
        "apiVersion": root.removeprefix("/apis/").removeprefix("/api/"),
        "kind": kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _post(plane: ControlPlane, path: str, body: Json, status: Json) -> Json:
    """Make an object, and write its status as its controller does."""
    made = json.loads(plane.request("POST", path, body))
    place = f"{path}/{made['metadata']['name']}/status"
    return json.loads(plane.request("PATCH", place, {"status": status}, MERGE))
