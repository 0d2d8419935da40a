"""What we print and what we allow, compared with what a real API server prints and allows for the same objects."""

from __future__ import annotations

import json
import random
import ssl
import time
import urllib.request
from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec
import pytest
import yaml

from stromboli.embedded.rbac.authorizer import Authorizer
from stromboli.embedded.rbac.policy_rules import Attributes, User
from stromboli.embedded.tables.crd_printers import crd_printer
from stromboli.embedded.tables.table import table
from tests.built_in_kinds import printer_for
from tests.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.real_only
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_VOLATILE = {"Age", "Last Seen", "First Seen", "Duration", "AGE"}

OBJECTS = """
kind: Node
apiVersion: v1
metadata: {name: worker, labels: {node-role.kubernetes.io/gpu: "", kubernetes.io/role: big}}
spec: {unschedulable: true}
status:
  conditions: [{type: Ready, status: "True"}]
  addresses: [{type: InternalIP, address: 10.1.2.3}]
  nodeInfo: {kubeletVersion: v1, osImage: Linux, kernelVersion: "6", containerRuntimeVersion: none}
---
kind: Pod
apiVersion: v1
metadata: {name: plain}
spec: {containers: [{name: a, image: i}, {name: b, image: i}]}
---
kind: Pod
apiVersion: v1
metadata: {name: gated}
spec: {schedulingGates: [{name: x/y}], containers: [{name: a, image: i}], readinessGates: [{conditionType: x/y}]}
---
kind: Pod
apiVersion: v1
metadata: {name: starting}
spec: {nodeName: worker, initContainers: [{name: i, image: i}, {name: j, image: i}], containers: [{name: a, image: i}]}
status:
  phase: Pending
  initContainerStatuses:
  - {name: i, image: i, imageID: "", ready: false, restartCount: 0, state: {terminated: {exitCode: 0}}}
  - {name: j, image: i, imageID: "", ready: false, restartCount: 2, state: {running: {}}}
---
kind: Pod
apiVersion: v1
metadata: {name: broken}
spec: {nodeName: worker, containers: [{name: a, image: i}, {name: b, image: i}]}
status:
  phase: Running
  podIP: 10.0.0.7
  podIPs: [{ip: 10.0.0.7}]
  containerStatuses:
  - name: a
    image: i
    imageID: ""
    ready: false
    restartCount: 4
    state: {waiting: {reason: CrashLoopBackOff}}
    lastState: {terminated: {exitCode: 1, finishedAt: "2020-01-01T00:00:00Z"}}
  - {name: b, image: i, imageID: "", ready: true, restartCount: 0, state: {running: {}}}
---
kind: Pod
apiVersion: v1
metadata: {name: done}
spec: {nodeName: worker, containers: [{name: a, image: i}]}
status:
  phase: Failed
  containerStatuses:
  - {name: a, image: i, imageID: "", ready: false, restartCount: 0, state: {terminated: {exitCode: 3, signal: 9}}}
---
kind: Service
apiVersion: v1
metadata: {name: web}
spec: {type: NodePort, selector: {b: "2", a: "1"}, ports: [{port: 80, name: x}, {port: 53, protocol: UDP, name: y}]}
---
kind: Service
apiVersion: v1
metadata: {name: headless}
spec: {clusterIP: None, externalIPs: [1.2.3.4]}
---
kind: Service
apiVersion: v1
metadata: {name: outside}
spec: {type: ExternalName, externalName: example.com}
---
kind: Secret
apiVersion: v1
metadata: {name: s}
stringData: {a: x}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: c}
data: {a: x}
binaryData: {b: eA==}
---
kind: PersistentVolume
apiVersion: v1
metadata: {name: volume}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany, ReadWriteOnce]
  storageClassName: slow
  hostPath: {path: /x}
  claimRef: {namespace: default, name: claim}
---
kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], storageClassName: slow, resources: {requests: {storage: 1Gi}}}
---
kind: StorageClass
apiVersion: storage.k8s.io/v1
metadata: {name: slow, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: none
allowVolumeExpansion: true
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: d}
spec:
  replicas: 3
  selector:
    matchLabels: {a: b}
    matchExpressions: [{key: c, operator: In, values: [y, x]}, {key: e, operator: Exists}]
  template:
    metadata: {labels: {a: b, c: x, e: f}}
    spec: {containers: [{name: one, image: i1}, {name: two, image: i2}]}
---
kind: ReplicaSet
apiVersion: apps/v1
metadata: {name: r}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: one, image: i1}]}}
---
kind: StatefulSet
apiVersion: apps/v1
metadata: {name: st}
spec:
  serviceName: x
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: one, image: i1}]}}
---
kind: DaemonSet
apiVersion: apps/v1
metadata: {name: ds}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {k: v}, containers: [{name: one, image: i1}]}}
---
kind: Job
apiVersion: batch/v1
metadata: {name: j}
spec:
  parallelism: 3
  template: {spec: {restartPolicy: Never, containers: [{name: one, image: i1}]}}
---
kind: Job
apiVersion: batch/v1
metadata: {name: k}
spec:
  completions: 4
  template: {spec: {restartPolicy: Never, containers: [{name: one, image: i1}]}}
---
kind: CronJob
apiVersion: batch/v1
metadata: {name: cj}
spec:
  schedule: "* * * * *"
  timeZone: Etc/UTC
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: one, image: i1}]}}}}
---
kind: PodDisruptionBudget
apiVersion: policy/v1
metadata: {name: b}
spec: {minAvailable: 50%, selector: {matchLabels: {a: b}}}
---
kind: PriorityClass
apiVersion: scheduling.k8s.io/v1
metadata: {name: rated-seven}
value: 7
preemptionPolicy: Never
---
kind: ResourceQuota
apiVersion: v1
metadata: {name: q}
spec: {hard: {pods: "9", limits.cpu: "4", requests.cpu: "2"}}
status: {hard: {pods: "9", limits.cpu: "4", requests.cpu: "2"}, used: {pods: "1", limits.cpu: "0", requests.cpu: "1"}}
---
kind: Lease
apiVersion: coordination.k8s.io/v1
metadata: {name: l}
spec: {holderIdentity: me}
---
kind: Event
apiVersion: v1
metadata: {name: e}
involvedObject: {kind: Pod, name: plain, namespace: default, fieldPath: spec.x}
source: {component: me, host: here}
type: Normal
reason: Because
message: "said "
count: 3
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: rb}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: eve}
- {kind: ServiceAccount, name: eve, namespace: default}
---
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata: {name: n}
spec: {podSelector: {matchLabels: {a: b}}}
"""
LISTS = [
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumes",
    *(
        f"/api/v1/namespaces/default/{plural}"
        for plural in (
            "pods",
            "services",
            "secrets",
            "configmaps",
            "persistentvolumeclaims",
            "resourcequotas",
            "events",
        )
    ),
    *(
        f"/apis/apps/v1/namespaces/default/{plural}"
        for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")
    ),
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/batch/v1/namespaces/default/cronjobs",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
    f"{RBAC}/namespaces/default/rolebindings",
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
]


@pytest.fixture(scope="module")
def full(plane: ControlPlane) -> Iterator[ControlPlane]:
    """With one of each, statuses included."""
    for content in yaml.safe_load_all(OBJECTS):
        plane.kubectl("apply", "--server-side", "--validate=false", "-f", "-", stdin=json.dumps(content))
        if "status" in content and content["kind"] != "Node":
            patch = json.dumps({"status": content["status"]})
            kind, name = content["kind"].lower(), content["metadata"]["name"]
            plane.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "-p", patch)
    yield plane
    plane.kubectl("delete", "resourcequota/q", "storageclass/slow")  # both hold for other tests, too


def get(plane: ControlPlane, path: str, accept: str = "application/json") -> Any:
    request = urllib.request.Request(
        plane.server + path, headers={"Authorization": f"Bearer {plane.token}", "Accept": accept}
    )
    trust = ssl.create_default_context(cafile=str(plane.folder / "pki" / "ca.crt"))
    with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
        return json.load(answer)


def compared(theirs: Any, ours: Any) -> tuple[Any, Any]:
    """Columns, and rows without what changes by the second."""
    sides = []
    for side in (theirs, msgspec.to_builtins(ours)):
        names = [column["name"] for column in side["columnDefinitions"]]
        rows = [
            {name: cell for name, cell in zip(names, row["cells"], strict=True) if name not in _VOLATILE}
            for row in side["rows"]
        ]
        sides.append(([(column["name"], column["priority"]) for column in side["columnDefinitions"]], rows))
    return sides[0], sides[1]


@pytest.mark.parametrize("path", LISTS)
def test_tables_are_those_of_a_real_server(full: ControlPlane, path: str) -> None:
    parts = path.split("/")
    group = "" if parts[1] == "api" else parts[2]
    listed = get(full, path)
    for item in listed["items"]:
        item.setdefault("kind", listed["kind"].removesuffix("List"))
    ours = table(printer_for(f"{parts[-1]}.{group}" if group else parts[-1]), listed["items"], time.time())
    theirs, mine = compared(get(full, path, TABLE), ours)
    assert mine == theirs


def test_tables_of_volcanos_kinds_are_those_of_a_real_server(full: ControlPlane) -> None:
    full.kubectl(
        "apply",
        "-f",
        "-",
        stdin=json.dumps(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "default"},
                "spec": {"minMember": 3},
            }
        ),
    )
    crd = get(full, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh")
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    layout = crd_printer(crd["spec"]["versions"][0]["additionalPrinterColumns"])
    ours = table(layout, get(full, path)["items"], time.time())
    theirs, mine = compared(get(full, path, TABLE), ours)
    assert mine == theirs


ROLES = """
kind: ClusterRole
metadata: {name: mixed, labels: {gather: "yes"}}
rules:
- {verbs: [get, list], apiGroups: [""], resources: [pods, pods/log]}
- {verbs: ["*"], apiGroups: [apps], resources: ["*/scale"]}
- {verbs: [update], apiGroups: ["*"], resources: [configmaps], resourceNames: [one]}
- {verbs: [get], nonResourceURLs: ["/metrics", "/logs/*"]}
---
kind: ClusterRoleBinding
metadata: {name: mixed}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: mixed}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: staff}]
---
kind: Role
metadata: {name: local, namespace: default}
rules:
- {verbs: [create, delete], apiGroups: ["", batch], resources: [pods, jobs]}
---
kind: RoleBinding
metadata: {name: local, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: local}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ann}]
---
kind: RoleBinding
metadata: {name: editor, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:aggregate-to-edit"}
subjects: [{kind: ServiceAccount, name: bot, namespace: default}]
"""
USERS = [
    User("ann"),
    User("ben", ("staff",)),
    User("system:serviceaccount:default:bot"),
    User("root", ("system:masters",)),
]
USERS.append(User("nobody", ("system:authenticated",)))


def test_rights_are_those_of_a_real_server(plane: ControlPlane) -> None:
    """Of roles that gather from others nobody is asked: here is no controller that would do it for the server."""
    for content in yaml.safe_load_all(ROLES):
        plane.apply({"apiVersion": "rbac.authorization.k8s.io/v1", **content})
    kinds = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
    rights = Authorizer((kind, item) for kind in kinds for item in get(plane, f"{RBAC}/{kind}")["items"])
    resources = [
        ("", "pods", ""),
        ("", "pods", "log"),
        ("apps", "deployments", "scale"),
        ("apps", "deployments", ""),
    ]
    resources += [("", "configmaps", ""), ("batch", "jobs", ""), ("", "secrets", ""), ("", "nodes", "")]
    verbs, spaces, named = (
        ("get", "list", "create", "update", "delete"),
        ("", "default", "other"),
        ("", "one", "two"),
    )
    attributes = [
        Attributes(verb, group, resource, part, name, space)
        for verb, (group, resource, part), name, space in product(verbs, resources, named, spaces)
    ]
    attributes += [
        Attributes("get", path=path)
        for path in ("/metrics", "/metrics/x", "/logs/a", "/logs", "/healthz", "/api/v1")
    ]
    sample = random.Random(5).sample(list(product(USERS, attributes)), 400)
    different = [
        (user, attributes)
        for user, attributes in sample
        if rights.authorize(user, attributes).allowed is not theirs(plane, user, attributes)
    ]
    assert different == []


def theirs(plane: ControlPlane, user: User, attributes: Attributes) -> bool:
    spec: dict[str, Any] = {"user": user.name, "groups": list(user.groups)}
    if attributes.path:
        spec["nonResourceAttributes"] = {"verb": attributes.verb, "path": attributes.path}
    else:
        spec["resourceAttributes"] = {
            key: value for key, value in attributes._asdict().items() if key != "path" and value
        }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = json.loads(plane.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body))
    return bool(answer["status"]["allowed"])
