"""Every field that a schema has is read, or listed here as one that does not bear on placement.

What bears on placement and is read without being honoured by every policy is the table
`model.requirements.placement_requirement`. A field that is new in a schema fails here until somebody decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import inspect

from stromboli.api.schemas.builtin_schemas import named
from stromboli.api.schemas.crd_schemas import from_crd
from stromboli.api.schemas.schema import Schema
from stromboli.api.types.pod import PodSpec
from stromboli.api.types.scheduling import PodGroupSpec, QueueSpec
from stromboli.api.types.volcano_job import JobSpec

CRDS = Path(__file__).parents[3] / "deploy" / "crds"

OF_CONTAINERS = """
args command env envFrom imagePullPolicy lifecycle livenessProbe ports[].name readinessProbe resizePolicy
restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty
volumeDevices volumeMounts workingDir
"""
OF_PODS = """
automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks ephemeralContainers
hostAliases hostIPC hostPID hostUsers hostname hostnameOverride imagePullSecrets readinessGates restartPolicy
securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain
tolerations[].tolerationSeconds
"""
WRITTEN_OUT = "hostNetwork runtimeClassName"
"""What follows from these the API server writes into hostPort, nodeSelector, tolerations and overhead."""
OF_VOLUMES = """
azureFile cephfs configMap downwardAPI emptyDir fc flexVolume flocker gitRepo glusterfs hostPath image.pullPolicy nfs
persistentVolumeClaim.readOnly photonPersistentDisk projected quobyte scaleIO secret storageos
"""
OF_DISKS = """
awsElasticBlockStore.fsType awsElasticBlockStore.partition azureDisk.cachingMode azureDisk.diskName azureDisk.fsType
azureDisk.kind cinder.fsType cinder.secretRef gcePersistentDisk.fsType gcePersistentDisk.partition
iscsi.chapAuthDiscovery iscsi.chapAuthSession iscsi.fsType iscsi.initiatorName iscsi.iscsiInterface iscsi.lun
iscsi.portals iscsi.secretRef iscsi.targetPortal portworxVolume.fsType rbd.fsType rbd.keyring rbd.secretRef rbd.user
"""
"""What Kubernetes' own scheduler does not read of disks either."""
OF_CLAIM_TEMPLATES = (
    "metadata spec.dataSource spec.dataSourceRef spec.selector spec.volumeAttributesClassName spec.volumeName"
)
"""The claim that is made from the template is an object of its own."""

NOT_PLACEMENT = {
    "Pod": {
        *(f"spec.{name}" for name in (*OF_PODS.split(), *WRITTEN_OUT.split())),
        *(f"spec.{of}[].{name}" for of in ("containers", "initContainers") for name in OF_CONTAINERS.split()),
        *(f"spec.volumes[].{name}" for name in (*OF_VOLUMES.split(), *OF_DISKS.split())),
        *(f"spec.volumes[].ephemeral.volumeClaimTemplate.{name}" for name in OF_CLAIM_TEMPLATES.split()),
    },
    "PodGroup": set[str](),
    "Queue": set[str](),
    "Job": {"spec.runningEstimate"},
}


def spec_schema(name: str) -> Schema:
    """The schema of a built-in spec, or of the spec of a custom resource, which has a file."""
    if not name.endswith(".yaml"):
        return named(name)
    definition = yaml.load((CRDS / name).read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    schema = from_crd(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return schema.properties["spec"]


def structs(hint: inspect.Type) -> Iterator[inspect.StructType]:
    """The structs that a type consists of."""
    if isinstance(hint, inspect.UnionType):
        for part in hint.types:
            yield from structs(part)
    elif isinstance(hint, inspect.VarTupleType | inspect.ListType):
        yield from structs(hint.item_type)
    elif isinstance(hint, inspect.DictType):
        yield from structs(hint.value_type)
    elif isinstance(hint, inspect.StructType):
        yield hint


def unread(schema: Schema, hint: inspect.Type, path: str) -> Iterator[str]:
    """The fields of a schema that a type does not read; of a struct without fields the presence alone matters."""
    struct = next(structs(hint), None)
    while schema.items or (schema.additional_properties and not schema.properties):
        inner = schema.items or schema.additional_properties
        assert inner is not None
        schema, path = inner, f"{path}[]"
    if struct is None or not struct.fields:
        return
    read = {field.encode_name: field for field in struct.fields}
    for key, value in schema.properties.items():
        if key in read:
            yield from unread(value, read[key].type, f"{path}.{key}")
        else:
            yield f"{path}.{key}"


@pytest.mark.parametrize(
    ("kind", "schema", "spec"),
    [
        ("Pod", "io.k8s.api.core.v1.PodSpec", PodSpec),
        ("PodGroup", "scheduling.volcano.sh_podgroups.yaml", PodGroupSpec),
        ("Queue", "scheduling.volcano.sh_queues.yaml", QueueSpec),
        ("Job", "batch.volcano.sh_jobs.yaml", JobSpec),
    ],
)
def test_every_field_is_read_or_does_not_bear_on_placement(kind: str, schema: str, spec: Any) -> None:
    assert set(unread(spec_schema(schema), inspect.type_info(spec), "spec")) == NOT_PLACEMENT[kind]


def test_a_field_that_is_new_in_a_schema_is_noticed() -> None:
    grown = Schema(type="object", properties={"nodeName": Schema(), "nodeColour": Schema()})
    assert list(unread(grown, inspect.type_info(PodSpec), "spec")) == ["spec.nodeColour"]
