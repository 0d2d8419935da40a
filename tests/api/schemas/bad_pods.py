"""Pods of which Kubernetes refuses the spec, for tests here and for the real API server as their oracle."""

from __future__ import annotations

from typing import Any

Content = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod(**spec: Any) -> Content:
    return {"containers": [{"name": "main", "image": "busybox"}], **spec}


def container(**more: Any) -> Content:
    return {"containers": [{"name": "main", "image": "busybox", **more}]}


def resources(requests: Content | None = None, **limits: Any) -> Content:
    return container(resources={"requests": requests or {}, "limits": limits})


def node_affinity(**requirement: Any) -> Content:
    terms = [{"matchExpressions": [{"key": "zone", **requirement}]}]
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})


def near(**term: Any) -> Content:
    return pod(affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}})


def spread(**more: Any) -> Content:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return pod(topologySpreadConstraints=[{**constraint, **more}])


def variable(**more: Any) -> Content:
    return container(env=[{"name": "A", **more}])


def mount(*mounts: Content) -> Content:
    return {**container(volumeMounts=list(mounts)), "volumes": [{"name": "v", "emptyDir": {}}]}


def claims(*used: Content, of: tuple[Content, ...] = ({"name": "gpu", "resourceClaimName": "c"},)) -> Content:
    return {**container(resources={"claims": list(used)}), "resourceClaims": list(of)}


REF = {"fieldRef": {"fieldPath": "metadata.name"}}
BAD_PODS: dict[str, Content] = {
    "no containers": {"containers": []},
    "a container without a name and an image": {"containers": [{}]},
    "a bad name": {"containers": [{"name": "A_", "image": "i"}]},
    "a name twice": {
        "containers": [{"name": "a", "image": "i"}],
        "initContainers": [{"name": "a", "image": "i"}],
    },
    "a port of the host without a number": {**container(ports=[{"name": "web"}]), "hostNetwork": True},
    "an image with a space": {"containers": [{"name": "a", "image": " i"}]},
    "a restart policy": pod(restartPolicy="Sometimes"),
    "a DNS policy": pod(dnsPolicy="Nowhere"),
    "a pull policy": container(imagePullPolicy="Often"),
    "a deadline": pod(activeDeadlineSeconds=0),
    "a deadline in ages": pod(activeDeadlineSeconds=2**31),
    "a hostname": pod(hostname="A_"),
    "a subdomain": pod(subdomain="a.b"),
    "a node name": pod(nodeName="X_"),
    "a node selector": pod(nodeSelector={"a b": "c d"}),
    "an account": pod(serviceAccountName="X_"),
    "more requested than allowed": resources({"cpu": "2"}, cpu="1"),
    "a negative request": resources({"memory": "-1"}),
    "half a device": container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
    "a device without a limit": resources({"nvidia.com/gpu": "1"}),
    "other devices than allowed": container(
        resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}
    ),
    "a resource without a domain": resources({"gpu": "1"}),
    "a resource with a bad name": resources({"a b/c": "1"}),
    "a port": container(ports=[{"containerPort": 70000}]),
    "a port of the host": container(ports=[{"containerPort": 80, "hostPort": 70000}]),
    "the name of a port": container(ports=[{"containerPort": 80, "name": "A_long_name_for_it"}]),
    "the name of a port twice": container(
        ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]
    ),
    "a protocol": container(ports=[{"containerPort": 80, "protocol": "HTTP"}]),
    "another port on the network of the host": {
        **container(ports=[{"containerPort": 80, "hostPort": 81}]),
        "hostNetwork": True,
    },
    "a variable": container(env=[{"name": "A=B"}]),
    "a variable without a name": container(env=[{"value": "x"}]),
    "a variable from nowhere": variable(valueFrom={}),
    "a variable from two places": variable(valueFrom={**REF, "secretKeyRef": {"name": "s", "key": "k"}}),
    "a variable with a value and a source": variable(value="x", valueFrom=REF),
    "a mount of nothing": mount({"name": "data", "mountPath": "/d"}),
    "two mounts at one path": mount({"name": "v", "mountPath": "/d"}, {"name": "v", "mountPath": "/d"}),
    "a volume without a name": pod(volumes=[{"emptyDir": {}}]),
    "a volume with a bad name": pod(volumes=[{"name": "A_"}]),
    "a volume twice": pod(volumes=[{"name": "v"}, {"name": "v"}]),
    "a volume of two sorts": pod(volumes=[{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]),
    "a claim that the pod has not": claims({"name": "npu"}),
    "a claim of a pod without any": claims({"name": "npu"}, of=()),
    "a claim that the pod has not, of several": claims(
        {"name": "npu"}, of=({"name": "b", "resourceClaimName": "c"}, {"name": "a", "resourceClaimName": "c"})
    ),
    "a claim used twice": claims({"name": "gpu"}, {"name": "gpu"}),
    "a request of a claim used twice": claims(
        {"name": "gpu", "request": "a"}, {"name": "gpu", "request": "a"}
    ),
    "a claim and a request of it": claims({"name": "gpu"}, {"name": "gpu", "request": "a"}),
    "a request of a claim and the claim": claims({"name": "gpu", "request": "a"}, {"name": "gpu"}),
    "a request with a bad name": claims({"name": "gpu", "request": "A_"}),
    "a claim of an init container": {
        **pod(),
        "initContainers": [{"name": "a", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
    },
    "a claim from two places": pod(
        resourceClaims=[{"name": "a", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}]
    ),
    "a claim from nowhere": pod(resourceClaims=[{"name": "a"}]),
    "a claim of the pod without a name": pod(resourceClaims=[{"resourceClaimName": "c"}]),
    "a claim of the pod with a bad name": pod(resourceClaims=[{"name": "A_", "resourceClaimName": "c"}]),
    "a claim of the pod twice": pod(
        resourceClaims=[{"name": "a", "resourceClaimName": "c"}, {"name": "a", "resourceClaimName": "d"}]
    ),
    "a claim with a bad name": pod(resourceClaims=[{"name": "a", "resourceClaimName": "C_"}]),
    "a template of claims with a bad name": pod(
        resourceClaims=[{"name": "a", "resourceClaimTemplateName": "C_"}]
    ),
    "claims of the pod as a whole": pod(resources={"claims": [{"name": "npu"}]}),
    "no term": pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
    "In without values": node_affinity(operator="In"),
    "Exists with values": node_affinity(operator="Exists", values=["a"]),
    "Gt with two values": node_affinity(operator="Gt", values=["1", "2"]),
    "an operator": node_affinity(operator="Near", values=["a"]),
    "a key": node_affinity(key="a b", operator="Exists"),
    "a weight": pod(
        affinity={"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {"matchExpressions": []}}]}}
    ),
    "a weight of pods": pod(
        affinity={"podAffinity": {PREFERRED: [{"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}]}}
    ),
    "a bad topology": near(topologyKey="a b"),
    "a bad label to be near": near(labelSelector={"matchLabels": {"a b": "c"}}),
    "an operator to be near": near(
        labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}
    ),
    "In without values to be near": near(
        labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}
    ),
    "a toleration of nothing": pod(tolerations=[{"operator": "Equal", "value": "x"}]),
    "an operator of a toleration": pod(tolerations=[{"key": "k", "operator": "Maybe"}]),
    "a value of what exists": pod(tolerations=[{"key": "k", "operator": "Exists", "value": "x"}]),
    "a bad value": pod(tolerations=[{"key": "k", "operator": "Equal", "value": "a b"}]),
    "a bad key": pod(tolerations=[{"key": "a b", "operator": "Exists"}]),
    "an effect": pod(tolerations=[{"key": "k", "operator": "Exists", "effect": "Never"}]),
    "seconds for another effect": pod(
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]
    ),
    "a skew": spread(maxSkew=0),
    "domains": spread(minDomains=0),
    "no topology to spread over": spread(topologyKey=""),
    "what to do": spread(whenUnsatisfiable="Wait"),
}
"""By what is wrong with them."""
