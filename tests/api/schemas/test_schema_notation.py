"""The notation of built-in kinds, and that everything written in it can be read."""

import pytest

from stromboli.api.schemas import builtin_schemas
from stromboli.api.schemas.compiled_schema import compiled
from stromboli.api.schemas.schema_notation import Notation

TEXT = """in example.v1 of example.com/v1

kind Job -- Runs pods.
  spec: JobSpec -- What to run.

type JobSpec atomic
  parallelism: int32 >= 0 <= 9 = 1 -- How many -- at a time.
  policy: Never|Always = Never
  template!: Template retain
  ports: [Port] by number,protocol
  seen: [Port] keyed number
  old: [Port] merged by number
  names: [string] set merge
  limits: {quantity} atomic
  strategy: Strategy = {}
  percent: intstr = 25%

type Template

type Strategy
  steps: int64 = 3

type Port
  number!: int32
  protocol: string = TCP

in meta of v1

type ObjectMeta
  name: string
"""


def test_every_word_of_the_notation() -> None:
    job = Notation([TEXT]).kind("example.com/v1", "Job")
    assert job is not None
    assert (job.name, job.description, list(job.properties)) == (
        "example.v1.Job",
        "Runs pods.",
        ["apiVersion", "kind", "metadata", "spec"],
    )
    spec = job.properties["spec"]
    assert (spec.description, spec.map_type, spec.required) == ("What to run.", "atomic", ("template",))
    fields = spec.properties
    parallelism = fields["parallelism"]
    assert (parallelism.type, parallelism.format, parallelism.minimum, parallelism.maximum) == (
        "integer",
        "int32",
        0,
        9,
    )
    assert (parallelism.default, parallelism.description) == (1, "How many -- at a time.")
    assert (fields["policy"].enum, fields["policy"].default) == (("Never", "Always"), "Never")
    assert fields["template"].patch_strategies == ("retainKeys",)
    ports = fields["ports"]
    assert (ports.list_type, ports.list_map_keys, ports.merge_key) == (
        "map",
        ("number", "protocol"),
        "number",
    )
    assert ports.patch_strategies == ("merge",)
    assert (fields["seen"].list_type, fields["seen"].merge_key) == ("map", "")
    assert (fields["old"].list_type, fields["old"].merge_key) == ("atomic", "number")
    assert (fields["names"].list_type, fields["names"].patch_strategies) == ("set", ("merge",))
    assert fields["limits"].map_type == "atomic"
    assert fields["strategy"].default == {}
    assert fields["percent"].default == "25%"


def test_a_line_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match="cannot read the line '  nonsense'"):
        Notation(["in x of v1\n\ntype A\n  nonsense\n"]).type("A")


@pytest.mark.parametrize(("api_version", "kind"), builtin_schemas.notation().kinds)
def test_every_built_in_kind_can_be_read_and_used(api_version: str, kind: str) -> None:
    schema = builtin_schemas.schema(api_version, kind)
    assert schema is not None
    compiled(schema)({})


def test_a_batch_user_finds_the_kinds_they_need() -> None:
    for api_version, kind in (
        *(("v1", kind) for kind in ("Pod", "Node", "Namespace", "Service", "ConfigMap", "Secret", "Event")),
        ("batch/v1", "Job"),
        ("apps/v1", "Deployment"),
        ("policy/v1", "PodDisruptionBudget"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ):
        assert builtin_schemas.schema(api_version, kind) is not None
    assert builtin_schemas.schema("v1", "Nonsense") is None
