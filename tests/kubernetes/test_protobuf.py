"""Objects that the real API server encodes in protobuf read as the JSON that it sends of them."""

from __future__ import annotations

import json
import ssl
import urllib.request
from typing import Any

import pytest

from stromboli.embedded.protobuf.protobuf_reader import MEDIA, read
from tests.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.real_only
OBJECTS = """
apiVersion: v1
kind: Pod
metadata: {name: protobuf, labels: {a: b}, annotations: {a: ""}}
spec:
  containers:
  - {name: a, image: i, resources: {limits: {cpu: "1"}, claims: [{name: gpu}]}}
  volumes: [{name: v, emptyDir: {}}, {name: w, projected: {sources: [{downwardAPI: {}}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  securityContext: {}
  affinity: {podAntiAffinity: {}}
  terminationGracePeriodSeconds: 0
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: protobuf}
spec: {maxUnavailable: 0, selector: {}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: protobuf}
spec: {podSelector: {}, ingress: [{}], egress: [{to: [{namespaceSelector: {}}], ports: [{port: 80}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: protobuf}
spec:
  replicas: 0
  selector: {matchLabels: {a: b}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 20%}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: i}]}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: protobuf}
spec:
  selectors: [{cel: {expression: "true"}}]
  config: [{opaque: {driver: a.example.com, parameters: {apiVersion: a/v1, kind: B, list: [1, 2.5, null]}}}]
  extendedResourceName: example.com/gpu
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: protobuf}
spec:
  devices:
    requests:
    - name: a
      exactly: {deviceClassName: protobuf, count: 2, selectors: [{cel: {expression: "true"}}]}
    - name: b
      firstAvailable: [{name: c, deviceClassName: protobuf}, {name: d, deviceClassName: protobuf, count: 3}]
    constraints: [{requests: [a], matchAttribute: a.example.com/numa}]
    config: [{requests: [a], opaque: {driver: a.example.com, parameters: {}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: protobuf}
spec:
  metadata: {labels: {a: b}}
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: protobuf, allocationMode: All}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: protobuf}
spec:
  driver: a.example.com
  pool: {name: p, generation: 0, resourceSliceCount: 1}
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}
  devices:
  - name: a
    attributes: {model: {string: x}, index: {int: 0}, spare: {bool: false}, driver: {version: 1.0.0}}
    capacity: {memory: {value: 40Gi}}
  - {name: b}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buffers.protobuf.example.com}
spec:
  group: protobuf.example.com
  scope: Namespaced
  names: {plural: buffers, singular: buffer, kind: Buffer, shortNames: [bu]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size, priority: 1}]
    selectableFields: [{jsonPath: .spec.text}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, format: int32, minimum: 0, maximum: 5, default: 0}
              text: {type: string, enum: [a, b], minLength: 0, default: a}
              fraction: {type: number, maximum: 0.5}
              list: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              open: {type: object, additionalProperties: true}
              map: {type: object, additionalProperties: {type: integer, nullable: true}}
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
              default: {type: object, default: {}}
            x-kubernetes-validations: [{rule: "self.size < 5", message: less}]
          status: {type: object, properties: {size: {type: integer}}}
"""


@pytest.fixture(scope="module")
def objects(plane: ControlPlane) -> None:
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=OBJECTS)


def fetched(plane: ControlPlane, path: str, accept: str) -> bytes:
    headers = {"Authorization": f"Bearer {plane.token}", "Accept": accept}
    trust = ssl.create_default_context(cafile=str(plane.folder / "pki" / "ca.crt"))
    request = urllib.request.Request(plane.server + path, headers=headers)
    with urllib.request.urlopen(request, timeout=30, context=trust) as response:
        content: bytes = response.read()
    return content


def without_empty(content: Any) -> Any:
    """Go writes structs that are not set as `{}`, and lists as null."""
    if isinstance(content, dict):
        kept = {key: without_empty(value) for key, value in content.items()}
        return {key: value for key, value in kept.items() if value not in ({}, None, "")}
    return [*map(without_empty, content)] if isinstance(content, list) else content


PATHS = [
    "/api/v1/namespaces/default/pods/protobuf",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets/protobuf",
    "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/protobuf",
    "/apis/apps/v1/namespaces/default/deployments/protobuf",
    "/apis/resource.k8s.io/v1/deviceclasses/protobuf",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/protobuf",
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates/protobuf",
    "/apis/resource.k8s.io/v1/resourceslices/protobuf",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/buffers.protobuf.example.com",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobs.batch.volcano.sh",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.scheduling.volcano.sh",
]


@pytest.mark.parametrize("path", PATHS)
def test_protobuf_reads_as_json(plane: ControlPlane, objects: None, path: str) -> None:
    decoded = read(fetched(plane, path, MEDIA))
    expected = json.loads(fetched(plane, path, "application/json"))
    assert without_empty(decoded) == without_empty(expected)


def test_fields_that_are_set_but_empty_are_kept(plane: ControlPlane, objects: None) -> None:
    pod, budget, policy, *_ = (read(fetched(plane, path, MEDIA)) for path in PATHS)
    assert pod["spec"]["volumes"][0] == {"name": "v", "emptyDir": {}}
    assert pod["spec"]["affinity"] == {"podAntiAffinity": {}}
    assert budget["spec"] == {"maxUnavailable": 0, "selector": {}}
    assert policy["spec"]["egress"][0]["to"] == [{"namespaceSelector": {}}]
