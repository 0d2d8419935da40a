"""CRDs: Volcano's kinds as an API server needs them described, in step with the types that read them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deploy import crds
from stromboli.api.decoding import decode
from stromboli.api.types import scheduling
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.numa_topology import Numatopology
from tests.deploy import schemas
from tests.deploy.manifests import (
    CRDS,
    DEPLOY,
    Manifest,
    accepted_samples,
    name_of,
    refused_samples,
    schema_of,
)

# spec 05 15: kind, group, version, scope, short names, status subresource, columns
TABLE = """
Job          batch.volcano.sh      v1alpha1 Namespaced vcjob,vj             yes STATUS,minAvailable,RUNNINGS,AGE,QUEUE
CronJob      batch.volcano.sh      v1alpha1 Namespaced cronvcjob,cronvj     yes -
Command      bus.volcano.sh        v1alpha1 Namespaced -                    no  -
PodGroup     scheduling.volcano.sh v1beta1  Namespaced pg,podgroup-v1beta1  no  STATUS,minMember,RUNNINGS,AGE,QUEUE
Queue        scheduling.volcano.sh v1beta1  Cluster    q,queue-v1beta1      yes PARENT
JobFlow      flow.volcano.sh       v1alpha1 Namespaced jf                   yes Status,Age
JobTemplate  flow.volcano.sh       v1alpha1 Namespaced jt                   yes -
Numatopology nodeinfo.volcano.sh   v1alpha1 Cluster    numatopo             no  -
HyperNode    topology.volcano.sh   v1alpha1 Cluster    hn                   yes Tier,TierName,NodeCount,Age
NodeShard    shard.volcano.sh      v1alpha1 Cluster    nsh                  yes AGE
"""
KEYS_OF_LISTS = {
    "containers[].ports[].protocol": "TCP",
    "initContainers[].ports[].protocol": "TCP",
    "ephemeralContainers[].ports[].protocol": "TCP",
    "imagePullSecrets[].name": "",
}
"""Keys that identify the items of a list need a default."""
ACCEPTED = accepted_samples()
REFUSED = refused_samples()


def _kind(crd: Manifest) -> str:
    return str(crd["spec"]["names"]["kind"])


@pytest.mark.parametrize("row", TABLE.strip().splitlines(), ids=lambda row: row.split()[0])
def test_a_kind_is_what_it_is_in_volcano(row: str) -> None:
    kind, group, version, scope, short, status, columns = row.split()
    (crd,) = (crd for crd in CRDS if _kind(crd) == kind)
    (only,) = crd["spec"]["versions"]
    assert crd["metadata"]["name"] == f"{crd['spec']['names']['plural']}.{group}"
    assert (crd["spec"]["group"], only["name"], crd["spec"]["scope"]) == (group, version, scope)
    assert ",".join(crd["spec"]["names"].get("shortNames", ["-"])) == short
    assert only.get("subresources") == ({"status": {}} if status == "yes" else None)
    shown = only.get("additionalPrinterColumns", [])
    assert ",".join(column["name"] for column in shown) == columns.replace("-", "")
    assert [column["name"] for column in shown if column.get("priority")] == ["QUEUE"] * ("QUEUE" in columns)
    assert only["served"]
    assert only["storage"]
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_there_are_no_other_kinds() -> None:
    assert len(CRDS) == len(TABLE.strip().splitlines())


@pytest.mark.parametrize("crd", CRDS, ids=_kind)
def test_schemas_are_structural(crd: Manifest) -> None:
    assert list(schemas.structural_problems(schema_of(_kind(crd)))) == []


@pytest.mark.parametrize("crd", CRDS, ids=_kind)
def test_columns_show_fields_that_exist(crd: Manifest) -> None:
    known = {path for path, _ in schemas.nodes(schema_of(_kind(crd)))} | {".metadata.creationTimestamp"}
    for column in crd["spec"]["versions"][0].get("additionalPrinterColumns", []):
        assert column["jsonPath"] in known


@pytest.mark.parametrize("crd", CRDS, ids=_kind)
def test_every_field_is_described_down_to_those_of_pods(crd: Manifest) -> None:
    """A misspelt field is dropped, and `kubectl` says so; amounts are open to be numbers or texts."""
    open_parts = {path: node for path, node in schemas.nodes(schema_of(_kind(crd))) if node.get(schemas.OPEN)}
    assert [path for path, node in open_parts.items() if not schemas.is_amount(node)] == []
    assert all(".template." in path or ".volumeClaim." in path for path in open_parts)


def test_the_files_are_up_to_date() -> None:
    """`make crds` writes them."""
    written = {path.name: path.read_text() for path in (DEPLOY / "crds").glob("*_*.yaml")}
    assert written.keys() == crds.generated().keys()
    assert [name for name, text in crds.generated().items() if written[name] != text] == []


@pytest.mark.parametrize("crd", CRDS, ids=_kind)
def test_a_definition_is_small_enough_for_a_plain_apply(crd: Manifest) -> None:
    """kubectl keeps what it applied in an annotation of at most 256 KiB."""
    assert len(msgspec.json.encode(crd)) < 128 * 1024


def test_a_job_is_described_in_the_same_words_everywhere() -> None:
    def fields(kind: str, *path: str) -> Any:
        schema = schema_of(kind)
        for name in path:
            schema = schema["items"] if name == "[]" else schema["properties"][name]
        return schema["properties"]

    job = fields("Job", "spec")
    assert fields("JobTemplate", "spec") == job
    assert fields("CronJob", "spec", "jobTemplate", "spec") == job
    assert fields("JobFlow", "spec", "flows", "[]", "patch", "jobSpec") == job


def test_every_kind_has_an_accepted_and_a_refused_sample() -> None:
    kinds = {_kind(crd) for crd in CRDS}
    assert {sample["kind"] for sample in ACCEPTED} == kinds
    assert {sample["kind"] for _, sample in REFUSED} == kinds


@pytest.mark.parametrize("sample", ACCEPTED, ids=name_of)
def test_samples_are_accepted_and_stored_whole(sample: Manifest) -> None:
    schema = schema_of(sample["kind"])
    assert list(schemas.problems(schema, schemas.with_defaults(schema, sample))) == []


@pytest.mark.parametrize(("because", "sample"), REFUSED)
def test_mistakes_are_refused_at_the_field_to_blame(because: str, sample: Manifest) -> None:
    (problem,) = schemas.problems(schema_of(sample["kind"]), sample)
    assert problem.startswith(f".{because}:")


@pytest.mark.parametrize("sample", [sample for sample in ACCEPTED if decode(sample) is not None], ids=name_of)
def test_what_the_crds_accept_can_be_read(sample: Manifest) -> None:
    read = msgspec.to_builtins(decode(schemas.with_defaults(schema_of(sample["kind"]), sample)))
    assert read["metadata"]["name"] == sample["metadata"]["name"]
    assert read.get("spec", {}).keys() <= schema_of(sample["kind"])["properties"]["spec"]["properties"].keys()


def test_the_kinds_that_the_scheduler_reads_have_samples() -> None:
    read = {type(decode(sample)) for sample in ACCEPTED} - {type(None)}
    assert read == {scheduling.PodGroup, scheduling.Queue, scheduling.HyperNode, NodeShard, Numatopology}


def test_defaults_are_those_of_volcano() -> None:
    defaults = {
        (_kind(crd), path.removeprefix(".spec.")): node["default"]
        for crd in CRDS
        if _kind(crd) in ("PodGroup", "Queue", "HyperNode", "CronJob", "Job")
        for path, node in schemas.nodes(schema_of(_kind(crd)))
        if "default" in node and "jobTemplate" not in path
    }
    assert defaults == {
        ("PodGroup", "queue"): "default",
        ("PodGroup", "networkTopology.mode"): "hard",
        ("PodGroup", "subGroupPolicy[].subGroupSize"): 1,
        ("PodGroup", "subGroupPolicy[].minSubGroups"): 0,
        ("PodGroup", "subGroupPolicy[].networkTopology.mode"): "hard",
        ("Queue", "weight"): 1,
        ("Queue", "dequeueStrategy"): "traverse",
        ("Job", "maxRetry"): 3,
        ("Job", "queue"): "default",
        ("Job", "networkTopology.mode"): "hard",
        **{("Job", f"tasks[].template.spec.{path}"): default for path, default in KEYS_OF_LISTS.items()},
        ("Job", "tasks[].partitionPolicy.minPartitions"): 0,
        ("Job", "tasks[].partitionPolicy.networkTopology.mode"): "hard",
        ("CronJob", "concurrencyPolicy"): "Allow",
        ("CronJob", "suspend"): False,
        ("CronJob", "successfulJobsHistoryLimit"): 3,
        ("CronJob", "failedJobsHistoryLimit"): 1,
    }


@pytest.mark.parametrize("kind", [scheduling.PodGroup, scheduling.Queue, scheduling.HyperNode])
def test_types_and_schemas_agree(kind: type) -> None:
    info = msgspec.inspect.type_info(kind)
    schema = schema_of(kind.__name__)
    fields = {field.encode_name: field.type for field in info.fields}  # type: ignore[attr-defined]
    for part in ("spec", "status"):
        if part in fields:
            _compare(fields[part], schema["properties"][part], part)


def _compare(info: msgspec.inspect.Type, schema: Manifest, path: str) -> None:
    """Every field that we read is in the schema, and with the same limits."""
    if isinstance(info, msgspec.inspect.UnionType):
        (info,) = (member for member in info.types if not isinstance(member, msgspec.inspect.NoneType))
    if isinstance(info, msgspec.inspect.StructType):
        for field in info.fields:
            assert field.encode_name in schema["properties"], f"{path}.{field.encode_name}"
            _compare(field.type, schema["properties"][field.encode_name], f"{path}.{field.encode_name}")
    elif isinstance(info, msgspec.inspect.VarTupleType):
        _compare(info.item_type, schema["items"], f"{path}[]")
    elif isinstance(info, msgspec.inspect.LiteralType):
        assert {value for value in info.values if value} == set(schema["enum"]), path
    elif isinstance(info, msgspec.inspect.IntType):
        least = -(2**31) if schema["format"] == "int32" else -(2**63)
        assert info.ge == schema.get("minimum", least), path
        assert info.le in (schema.get("maximum"), 2**31 - 1), path
    elif isinstance(info, msgspec.inspect.DictType):
        assert "additionalProperties" in schema, path


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"description": "no type"}, "needs a type"),
        ({"type": "array"}, "an array needs items"),
        ({"type": "string", "minimum": 1}, "does not go with a string: minimum"),
        ({"type": "string", "nulable": True}, "does not go with a string: nulable"),
        ({"type": "object", "description": "empty"}, "an object needs fields"),
        (
            {"type": "object", "required": ["a"], "properties": {"b": {"type": "string"}}},
            "requires what it does",
        ),
        ({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}, "has fields of"),
        ({"type": "integer", "minimum": 1, "default": 0}, "default: : 0 is out of range"),
        ({"type": "string", "enum": ["a"], "default": "b"}, "default: : must be one of"),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                "x-kubernetes-list-map-keys": ["a"],
            },
            "the key a of a list must be required or have a default",
        ),
        ({"anyOf": [{"type": "string"}], "x-kubernetes-int-or-string": True}, "an int-or-string is exactly"),
    ],
)
def test_a_schema_that_is_not_structural_would_be_noticed(field: Manifest, problem: str) -> None:
    root = {"type": "object", "properties": {"metadata": {"type": "object"}, "field": field}}
    assert any(complaint.startswith(f".field: {problem}") for complaint in schemas.structural_problems(root))
